//! Dispatches system calls.

use super::args::{Args, Attempt, Reply, field, int};
use super::socket::{Socket, Stage};
use super::{File, Host};
use crate::outcome::{Step, Stop};
use crate::script::Value;

impl Host {
    /// Executes a call, or retries it after it had to wait.
    pub(crate) fn call(&mut self, attempt: &mut Attempt<'_>) -> Step<Reply> {
        let call = attempt.call;
        let args = Args {
            line: attempt.line,
            name: &call.name,
            values: &call.args,
            wanted: int(&call.result),
            began: attempt.began,
            since: attempt.since,
        };
        attempt.began = true;
        match call.name.as_str() {
            "socket" => self.socket_call(&args),
            "bind" => self.bind(&args),
            "listen" => self.listen(&args),
            "accept" | "accept4" => self.accept(&args),
            "connect" => self.connect(&args),
            "shutdown" => self.shutdown(&args),
            "close" => self.close(&args),
            "read" | "recv" | "recvfrom" | "readv" | "recvmsg" => self.receive_call(&args),
            "write" | "send" | "sendto" | "writev" | "sendmsg" | "sendfile" => {
                self.send_call(&args, &mut attempt.progress)
            }
            "setsockopt" => self.set_option(&args),
            "getsockopt" => self.get_option(&args),
            "fcntl" => self.fcntl(&args),
            "ioctl" => self.ioctl(&args),
            "poll" => self.poll(&args),
            "epoll_create" | "epoll_create1" => Ok(self.epoll_create(&args)),
            "epoll_ctl" => self.epoll_ctl(&args),
            "epoll_wait" => self.epoll_wait(&args),
            "open" => Ok(self.add_file(args.wanted, File::Data)),
            other => Err(Stop::not_applicable(attempt.line, format_args!("the system call `{other}`"))),
        }
    }

    fn bind(&mut self, args: &Args<'_>) -> Step<Reply> {
        let Some(index) = self.socket_index(args)? else { return Ok(Reply::Error("ENOTSOCK")) };
        if let Some(Value::Apply(name, port)) = args.get(1).and_then(|address| field(address, "sin_port"))
            && name == "htons"
            && let Some(port) = port.first().and_then(int)
        {
            self.sockets[index].port = u16::try_from(port)
                .map_err(|_| Stop::invalid(args.line, format_args!("{port} is not a port")))?;
        }
        Ok(Reply::Done(0))
    }

    /// The socket of the first argument; `None` if the descriptor is something else.
    pub(super) fn socket_index(&self, args: &Args<'_>) -> Step<Option<usize>> {
        let fd = args.int(0)?;
        match self.files.get(&fd) {
            Some(File::Socket(index)) => Ok(Some(*index)),
            Some(File::Epoll(_) | File::Data) => Ok(None),
            None => Err(Stop::failed(args.line, format_args!("descriptor {fd} is not open"))),
        }
    }

    /// The connection of a descriptor.
    pub(super) fn link_of(&self, fd: i64) -> Option<(&Socket, usize)> {
        let Some(File::Socket(index)) = self.files.get(&fd) else { return None };
        let socket = self.sockets.get(*index)?;
        match socket.stage {
            Stage::Connected(link) => Some((socket, link)),
            Stage::New | Stage::Listening { .. } => None,
        }
    }
}
