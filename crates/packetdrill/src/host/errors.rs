//! The error queue of a socket: timestamps of sent bytes (`SO_TIMESTAMPING`).

use std::collections::VecDeque;

use anabranch_core::time::{Duration, Instant};

use super::args::{Args, Reply, field, int};
use super::{Host, START};
use crate::outcome::{Step, Stop};
use crate::script::Value;

/// The reports of a connection about the bytes that it sends.
#[derive(Debug, Default)]
pub(super) struct Stamping {
    /// Flags of `SO_TIMESTAMPING`, without their common prefix.
    wanted: Vec<String>,
    /// Number of bytes acknowledged when the flags were set: identifiers count from there.
    base: u64,
    /// The last byte of each write that is not acknowledged.
    marks: VecDeque<Mark>,
    /// Messages that the program has not read, oldest first.
    queue: VecDeque<Message>,
}

/// The last byte of a write.
#[derive(Debug)]
struct Mark {
    /// Position after the byte in the stream.
    end: u64,
    sent: bool,
}

#[derive(Debug)]
struct Message {
    /// `SCM_TSTAMP_SCHED`, `SCM_TSTAMP_SND` or `SCM_TSTAMP_ACK`.
    kind: &'static str,
    at: Instant,
    /// Number of the byte.
    id: u64,
}

impl Stamping {
    /// Sets `SO_TIMESTAMPING`, when `acked` bytes of the stream were acknowledged.
    pub(super) fn want(&mut self, flags: &[&str], acked: u64) {
        let flags = flags.iter().map(|flag| flag.trim_start_matches("SOF_TIMESTAMPING_").to_owned());
        self.wanted = flags.collect();
        self.base = acked;
    }

    /// Marks the end of a write: the stream is `end` bytes long.
    pub(super) fn mark(&mut self, end: u64) {
        if !self.wanted.is_empty() {
            self.marks.push_back(Mark { end, sent: false });
        }
    }

    /// Reports that `sent` bytes of the stream have left and `acked` bytes are acknowledged.
    pub(super) fn report(&mut self, now: Instant, sent: u64, acked: u64) {
        let Self { wanted, base, marks, queue } = self;
        let wants = |flag: &str| wanted.iter().any(|wanted| wanted == flag);
        let mut report = |kind, end: u64| {
            let id = (end - 1).saturating_sub(*base);
            queue.push_back(Message { kind, at: now, id });
        };
        for mark in marks.iter_mut().filter(|mark| !mark.sent && mark.end <= sent) {
            mark.sent = true;
            for (flag, kind) in [("TX_SCHED", "SCM_TSTAMP_SCHED"), ("TX_SOFTWARE", "SCM_TSTAMP_SND")] {
                if wants(flag) {
                    report(kind, mark.end);
                }
            }
        }
        while let Some(mark) = marks.pop_front_if(|mark| mark.end <= acked) {
            if wants("TX_ACK") {
                report("SCM_TSTAMP_ACK", mark.end);
            }
        }
    }

    /// True if a message waits for `recvmsg` with `MSG_ERRQUEUE`.
    pub(super) fn has_messages(&self) -> bool {
        !self.queue.is_empty()
    }
}

impl Host {
    /// `recvmsg` with `MSG_ERRQUEUE`: compares the next message with the one that the script
    /// expects.
    pub(super) fn read_error(&mut self, args: &Args<'_>, link: usize, message: &Value) -> Step<Reply> {
        let Some(next) = self.links[link].stamping.queue.pop_front() else {
            return Ok(Reply::Error("EAGAIN"));
        };
        let Some(Value::List(controls)) = field(message, "msg_control") else { return Ok(Reply::Done(0)) };
        let failed = |what: &str, next: &Message| {
            let at = next.at.saturating_since(START).as_nanos();
            let message = format!("{what} differs: got {} of byte {} at {at} ns", next.kind, next.id);
            Err(Stop::failed(args.line, message))
        };
        for control in controls {
            let Some(data) = field(control, "cmsg_data") else { continue };
            let number = |name| field(data, name).and_then(int).and_then(|value| u64::try_from(value).ok());
            if let (Some(seconds), Some(nanos)) = (number("scm_sec"), number("scm_nsec")) {
                let at = START + Duration::from_secs(seconds.min(1_000_000)) + Duration::from_nanos(nanos);
                if at.saturating_since(next.at).max(next.at.saturating_since(at)) > self.settings.tolerance {
                    return failed("the time", &next);
                }
            }
            if field(data, "ee_info").is_some_and(|info| *info != Value::Word(next.kind.to_owned())) {
                return failed("`ee_info`", &next);
            }
            if number("ee_data").is_some_and(|id| id != next.id) {
                return failed("`ee_data`", &next);
            }
        }
        Ok(Reply::Done(0))
    }
}
