//! Sockets and their life cycle: socket, bind, listen, accept, connect, shutdown, close.

use std::collections::{BTreeMap, VecDeque};

use anabranch_core::tcp::Config;
use anabranch_core::time::Duration;

use super::args::{Args, Reply};
use super::{File, Host, Link, MARGIN};
use crate::outcome::{Step, Stop};

/// A TCP socket.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) stage: Stage,
    /// Whether its connections offer Multipath TCP.
    pub(super) multipath: bool,
    /// Configuration of its connections.
    pub(super) config: Config,
    pub(super) nonblocking: bool,
    pub(super) port: u16,
    /// `SO_LINGER` with a time of 0: close sends a reset.
    pub(super) resets: bool,
    /// `TCP_CORK`.
    pub(super) cork: bool,
    /// `TCP_NOTSENT_LOWAT`, once set.
    pub(super) lowat: Option<u32>,
    /// `TCP_INQ`.
    pub(super) inq: bool,
    /// Limit up to which the send buffer grows; `None` once `SO_SNDBUF` was set.
    pub(super) most_buffer: Option<u32>,
    /// `TCP_USER_TIMEOUT`, once set.
    pub(super) user_timeout: Option<Duration>,
    /// Options that are stored only for `getsockopt`.
    pub(super) values: BTreeMap<String, i64>,
}

/// State of a socket.
#[derive(Debug)]
pub(super) enum Stage {
    New,
    Listening {
        /// Connections waiting to be accepted.
        ready: VecDeque<usize>,
    },
    /// Index into `Host::links`.
    Connected(usize),
}

impl Host {
    /// Allocates the descriptor that a call returns: the one that the script names, else the lowest
    /// free one.
    fn new_descriptor(&mut self, wanted: Option<i64>, file: File) -> i64 {
        let free = (3..).find(|fd| !self.files.contains_key(fd)).unwrap_or(i64::MAX);
        let fd = wanted.filter(|fd| *fd >= 0 && !self.files.contains_key(fd)).unwrap_or(free);
        self.files.insert(fd, file);
        fd
    }

    pub(super) fn add_file(&mut self, wanted: Option<i64>, file: File) -> Reply {
        Reply::Done(self.new_descriptor(wanted, file))
    }

    pub(super) fn socket_call(&mut self, args: &Args<'_>) -> Step<Reply> {
        let (kind, protocol) = (args.words(1)?, args.words(2)?);
        if kind.contains(&"SOCK_DGRAM") || kind.contains(&"SOCK_RAW") {
            return Err(Stop::not_applicable(args.line, "sockets of other protocols than TCP"));
        }
        let multipath = protocol == ["IPPROTO_MPTCP"];
        if protocol != ["IPPROTO_TCP"] && !protocol.is_empty() && !multipath {
            return Ok(Reply::Error("EPROTONOSUPPORT"));
        }
        self.sockets.push(Socket {
            stage: Stage::New,
            multipath,
            config: self.settings.config,
            nonblocking: kind.contains(&"SOCK_NONBLOCK"),
            port: LISTENING_PORT,
            resets: false,
            cork: false,
            lowat: None,
            inq: false,
            user_timeout: None,
            most_buffer: Some(self.settings.most_send_buffer),
            values: BTreeMap::new(),
        });
        let index = self.sockets.len() - 1;
        Ok(self.add_file(args.wanted, File::Socket(index)))
    }

    pub(super) fn listen(&mut self, args: &Args<'_>) -> Step<Reply> {
        let Some(index) = self.socket_index(args)? else { return Ok(Reply::Error("ENOTSOCK")) };
        let socket = &mut self.sockets[index];
        match socket.stage {
            Stage::New => {
                socket.stage = Stage::Listening { ready: VecDeque::new() };
                self.current = None;
                Ok(Reply::Done(0))
            }
            Stage::Listening { .. } => Ok(Reply::Done(0)),
            Stage::Connected(_) => Ok(Reply::Error("EINVAL")),
        }
    }

    pub(super) fn accept(&mut self, args: &Args<'_>) -> Step<Reply> {
        let Some(index) = self.socket_index(args)? else { return Ok(Reply::Error("ENOTSOCK")) };
        let nonblocking = args.get(3).is_some() && args.words(3)?.contains(&"SOCK_NONBLOCK");
        let socket = &mut self.sockets[index];
        let Stage::Listening { ready } = &mut socket.stage else { return Ok(Reply::Error("EINVAL")) };
        let Some(link) = ready.pop_front() else {
            return Ok(if socket.nonblocking { Reply::Error("EAGAIN") } else { Reply::Wait(None) });
        };
        let child = Socket {
            stage: Stage::Connected(link),
            multipath: socket.multipath,
            config: socket.config,
            nonblocking,
            port: socket.port,
            resets: socket.resets,
            cork: socket.cork,
            lowat: socket.lowat,
            inq: socket.inq,
            user_timeout: socket.user_timeout,
            most_buffer: socket.most_buffer,
            values: socket.values.clone(),
        };
        self.sockets.push(child);
        let index = self.sockets.len() - 1;
        self.announce(link);
        self.drain();
        Ok(self.add_file(args.wanted, File::Socket(index)))
    }

    pub(super) fn connect(&mut self, args: &Args<'_>) -> Step<Reply> {
        let Some(index) = self.socket_index(args)? else { return Ok(Reply::Error("ENOTSOCK")) };
        let socket = &self.sockets[index];
        match socket.stage {
            Stage::Listening { .. } => return Ok(Reply::Error("EISCONN")),
            Stage::Connected(link) => {
                let nonblocking = socket.nonblocking;
                let link = &mut self.links[link];
                return Ok(if let Some(error) = link.error.take() {
                    Reply::Error(error)
                } else if link.established {
                    if args.began { Reply::Done(0) } else { Reply::Error("EISCONN") }
                } else if nonblocking {
                    Reply::Error("EALREADY")
                } else {
                    Reply::Wait(None)
                });
            }
            Stage::New => {}
        }
        let (iss, ports) =
            (self.next_iss(None), (EPHEMERAL_PORT.wrapping_add(self.links.len() as u16), LISTENING_PORT));
        let lowat = socket.lowat.unwrap_or(self.settings.notsent_lowat);
        let mut config = socket.config;
        let (advertised_mss, send_buffer) = (config.mss, config.send_buffer);
        config.send_buffer = send_buffer.saturating_add(MARGIN);
        let secrets = self.secrets(iss);
        let mut connection = self.active(config, socket.multipath, ports, secrets);
        connection.set_user_timeout(self.now, socket.user_timeout);
        let link = self.links.len();
        let most_buffer = socket.most_buffer;
        self.links.push(Link {
            lowat,
            advertised_mss,
            send_buffer,
            most_buffer,
            ..Link::new(connection, iss, ports)
        });
        let addresses = (self.settings.local(), self.settings.remote());
        self.first_flow(link, addresses, secrets);
        let socket = &mut self.sockets[index];
        socket.stage = Stage::Connected(link);
        let nonblocking = socket.nonblocking;
        self.drain();
        Ok(if nonblocking { Reply::Error("EINPROGRESS") } else { Reply::Wait(None) })
    }

    pub(super) fn shutdown(&mut self, args: &Args<'_>) -> Step<Reply> {
        let Some(index) = self.socket_index(args)? else { return Ok(Reply::Error("ENOTSOCK")) };
        let Stage::Connected(link) = self.sockets[index].stage else { return Ok(Reply::Error("ENOTCONN")) };
        let how = args.words(1)?;
        let link = &mut self.links[link];
        if link.is_closed() {
            return Ok(Reply::Error("ENOTCONN"));
        }
        let (read, write) = match how[..] {
            ["SHUT_RD"] => (true, false),
            ["SHUT_WR"] => (false, true),
            ["SHUT_RDWR"] => (true, true),
            _ => return Ok(Reply::Error("EINVAL")),
        };
        link.read_shut |= read;
        if write {
            link.write_shut = true;
            link.release_all();
            link.connection.close(self.now);
        }
        link.wakeups += 1;
        self.drain();
        Ok(Reply::Done(0))
    }

    pub(super) fn close(&mut self, args: &Args<'_>) -> Step<Reply> {
        let fd = args.int(0)?;
        let index = match self.files.remove(&fd) {
            None => return Ok(Reply::Error("EBADF")),
            Some(File::Epoll(_) | File::Data) => return Ok(Reply::Done(0)),
            Some(File::Socket(index)) => index,
        };
        let resets = self.sockets[index].resets;
        match std::mem::replace(&mut self.sockets[index].stage, Stage::New) {
            Stage::New => {}
            Stage::Listening { ready } => {
                for link in ready {
                    self.links[link].connection.abort(self.now);
                }
            }
            Stage::Connected(link) => {
                let link = &mut self.links[link];
                if resets {
                    link.connection.abort(self.now);
                } else {
                    link.release_all();
                    link.connection.release(self.now);
                }
            }
        }
        self.drain();
        Ok(Reply::Done(0))
    }
}

/// The port that `bind` assigns and `connect` dials.
const LISTENING_PORT: u16 = 8080;
/// The first local port of connecting sockets.
const EPHEMERAL_PORT: u16 = 49_152;
