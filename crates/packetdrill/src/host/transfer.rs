//! Reading and writing.

use bytes::Bytes;

use super::args::{Args, Reply, field, int};
use super::socket::Stage;
use super::{Host, Link};
use crate::outcome::{Step, Stop};
use crate::script::Value;

/// A buffer that a program passes to a call: a number of bytes, or an unmapped address.
struct Buffer {
    len: usize,
    null: bool,
}

impl Host {
    pub(super) fn receive_call(&mut self, args: &Args<'_>) -> Step<Reply> {
        let Some(index) = self.socket_index(args)? else {
            return Err(Stop::not_applicable(args.line, "reading from anything but a socket"));
        };
        let message = args.get(1).filter(|value| matches!(value, Value::Fields(_)));
        let (buffer, flags) = match (message, args.get(1)) {
            (Some(message), _) => (message_buffer(args, message)?, 2),
            (None, Some(Value::List(iov))) => (vector(args, iov)?, usize::MAX),
            (None, _) => (plain_buffer(args)?, 3),
        };
        let flags = if args.get(flags).is_some() { args.words(flags)? } else { Vec::new() };
        if let (["MSG_ERRQUEUE"], Some(message), Stage::Connected(link)) =
            (&flags[..], message, &self.sockets[index].stage)
        {
            return self.read_error(args, *link, message);
        }
        let known = ["MSG_DONTWAIT", "MSG_WAITALL", "MSG_NOSIGNAL", "MSG_PEEK"];
        if let Some(flag) = flags.iter().find(|flag| !known.contains(flag)) {
            return Err(Stop::not_applicable(args.line, format_args!("`{flag}`")));
        }
        let socket = &self.sockets[index];
        let Stage::Connected(link) = socket.stage else { return Ok(Reply::Error("ENOTCONN")) };
        let (nonblocking, inq) = (socket.nonblocking || flags.contains(&"MSG_DONTWAIT"), socket.inq);
        let link = &mut self.links[link];
        let readable = link.connection.info().readable as usize;
        let ended = link.peer_closed || link.read_shut || link.is_closed();
        if flags.contains(&"MSG_WAITALL") && readable < buffer.len && !ended && !nonblocking {
            return Ok(Reply::Wait(None));
        }
        // Linux's MPTCP does not wait for bytes without a reader.
        if buffer.len == 0 && (readable > 0 || link.connection.multi().is_some()) {
            return Ok(Reply::Done(0));
        }
        if buffer.null && readable > 0 {
            return Ok(Reply::Error("EFAULT"));
        }
        if flags.contains(&"MSG_PEEK") && readable > 0 {
            return Ok(Reply::Done(readable.min(buffer.len) as i64));
        }
        let mut read = 0;
        while let Some(data) = link.connection.read(buffer.len - read) {
            read += data.len();
        }
        if read == 0 {
            return Ok(if let Some(error) = link.error.take() {
                Reply::Error(error)
            } else if ended {
                Reply::Done(0)
            } else if nonblocking {
                Reply::Error("EAGAIN")
            } else {
                Reply::Wait(None)
            });
        }
        if let Some(message) = message {
            // Linux counts the end of the stream as one byte if nothing else is left.
            let left = i64::from(link.connection.info().readable);
            let left = if left == 0 { i64::from(link.peer_closed) } else { left };
            check_control(args, message, inq.then_some(left))?;
        }
        self.drain();
        Ok(Reply::Done(read as i64))
    }

    pub(super) fn send_call(&mut self, args: &Args<'_>, progress: &mut usize) -> Step<Reply> {
        let Some(index) = self.socket_index(args)? else {
            return Err(Stop::not_applicable(args.line, "writing to anything but a socket"));
        };
        let (buffer, flags) = match args.get(1) {
            Some(message @ Value::Fields(_)) => (message_buffer(args, message)?, 2),
            Some(Value::List(iov)) => (vector(args, iov)?, usize::MAX),
            // sendfile(out, in, offset, count)
            Some(Value::Int(_)) => (Buffer { len: args.size(3)?, null: false }, usize::MAX),
            _ => (plain_buffer(args)?, 3),
        };
        let flags = if args.get(flags).is_some() { args.words(flags)? } else { Vec::new() };
        let known = ["MSG_DONTWAIT", "MSG_EOR", "MSG_MORE", "MSG_NOSIGNAL", "MSG_ZEROCOPY"];
        if let Some(flag) = flags.iter().find(|flag| !known.contains(flag)) {
            return Err(Stop::not_applicable(args.line, format_args!("`{flag}`")));
        }
        let socket = &self.sockets[index];
        let Stage::Connected(link) = socket.stage else { return Ok(Reply::Error("EPIPE")) };
        let nonblocking = socket.nonblocking || flags.contains(&"MSG_DONTWAIT");
        let socket_corks = socket.cork;
        let holds = socket.cork || flags.contains(&"MSG_MORE");
        let index = link;
        let link = &mut self.links[index];
        if let Some(error) = link.error.take() {
            return Ok(Reply::Error(error));
        }
        if link.write_shut || link.is_closed() {
            return Ok(Reply::Error("EPIPE"));
        }
        if buffer.null && buffer.len > 0 {
            return Ok(Reply::Error("EFAULT"));
        }
        if args.began && !nonblocking && link.no_space && !link.is_writable() {
            // A writer sleeps until a third of the buffer is free.
            return Ok(Reply::Wait(None));
        }
        let (may, rto) = (link.established || !nonblocking, link.connection.info().rto);
        link.no_space = false;
        while may && *progress < buffer.len {
            let link = &mut self.links[index];
            let taken = link.place(buffer.len - *progress, holds);
            link.no_space = taken == 0;
            if taken == 0 {
                break;
            }
            if link.held > 0 {
                // Linux sends held-back bytes when its timer expires and nothing is in flight.
                link.held_until.get_or_insert(self.now + rto);
                link.held_for_more = !socket_corks;
            }
            *progress += taken;
            self.drain();
        }
        let link = &mut self.links[index];
        link.record_ended = flags.contains(&"MSG_EOR");
        Ok(if *progress == buffer.len || (nonblocking && *progress > 0) {
            if *progress > 0 {
                link.mark_write(self.now);
            }
            Reply::Done(*progress as i64)
        } else if nonblocking {
            Reply::Error("EAGAIN")
        } else {
            Reply::Wait(None)
        })
    }
}

impl Link {
    /// Takes up to `wanted` bytes from the program, at most one of Linux's buffers. `holds` keeps
    /// back bytes that do not fill a segment. Linux checks for room only when it begins another
    /// buffer.
    fn place(&mut self, wanted: usize, holds: bool) -> usize {
        let info = self.connection.info();
        let unit = self.unit();
        let tail = (info.unsent as usize + self.held) % unit;
        if tail == 0 && (self.memory() >= self.send_buffer as usize || !self.is_low()) {
            return 0;
        }
        let taken = wanted.min(unit - tail);
        if self.record_ended || !self.later.is_empty() {
            match self.later.back_mut() {
                Some(record) if !self.record_ended => *record += taken,
                _ => self.later.push_back(taken),
            }
            return taken;
        }
        self.held += taken;
        if holds {
            let full = self.held - self.held % usize::from(info.mss.max(1));
            self.hand_over(full);
        } else {
            self.release();
        }
        taken
    }

    /// Passes all bytes to the connection, which is about to be closed.
    pub(super) fn release_all(&mut self) {
        self.held += self.later.drain(..).sum::<usize>();
        self.release();
    }

    /// Passes held-back bytes to the connection.
    pub(super) fn release(&mut self) {
        self.hand_over(self.held);
        self.held_until = None;
        self.held_for_more = false;
    }

    fn hand_over(&mut self, bytes: usize) {
        let mut data = Bytes::from(vec![0; bytes]);
        // An error means that the connection is closed, which the next call reports.
        if let Ok(taken) = self.connection.write(&mut data) {
            self.held -= taken;
            self.written += taken as u64;
        }
    }
}

/// `(fd, buffer, length, ...)`.
fn plain_buffer(args: &Args<'_>) -> Step<Buffer> {
    let null = args.value(1)? == &Value::Word("NULL".to_owned());
    Ok(Buffer { len: args.size(2)?, null })
}

/// The total length of an I/O vector.
fn vector(args: &Args<'_>, iov: &[Value]) -> Step<Buffer> {
    let wrong = || Stop::invalid(args.line, "an I/O vector is a list of `{..., length}`");
    let mut len = 0;
    for part in iov {
        let Value::Fields(fields) = part else { return Err(wrong()) };
        let [_, (_, size)] = &fields[..] else { return Err(wrong()) };
        let size = int(size).and_then(|size| usize::try_from(size).ok()).filter(|size| *size <= 1 << 28);
        len += size.ok_or_else(wrong)?;
    }
    Ok(Buffer { len, null: false })
}

fn message_buffer(args: &Args<'_>, message: &Value) -> Step<Buffer> {
    match field(message, "msg_iov") {
        Some(Value::List(iov)) => vector(args, iov),
        _ => Err(Stop::invalid(args.line, "a message needs `msg_iov(n)=[...]`")),
    }
}

/// Compares the control messages that the script expects: `TCP_CM_INQ` with the number of unread
/// bytes, or none.
fn check_control(args: &Args<'_>, message: &Value, inq: Option<i64>) -> Step {
    let Some(Value::List(controls)) = field(message, "msg_control") else { return Ok(()) };
    for control in controls {
        let kind = field(control, "cmsg_type");
        if kind != Some(&Value::Word("TCP_CM_INQ".to_owned())) {
            return Err(Stop::not_applicable(args.line, "control messages other than `TCP_CM_INQ`"));
        }
        let expected = field(control, "cmsg_data").and_then(int);
        if expected != inq {
            let message = format!("`cmsg_data`: expected {expected:?}, got {inq:?}");
            return Err(Stop::failed(args.line, message));
        }
    }
    Ok(())
}
