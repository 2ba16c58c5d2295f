//! The error queue of a socket: timestamps of what was sent (`SO_TIMESTAMPING`).

use std::collections::VecDeque;

use anabranch_core::time::{Duration, Instant};

use super::args::{Args, Reply, field, int};
use super::{Host, Link, START};
use crate::outcome::{Step, Stop};
use crate::script::Value;

/// What a connection reports of the bytes that it sends.
#[derive(Debug, Default)]
pub(super) struct Stamping {
    /// Flags of `SO_TIMESTAMPING`, without their common beginning.
    wanted: Vec<String>,
    /// Bytes that were acknowledged when the flags were set: identifiers count from there.
    base: u64,
    /// The last byte of each write that is not acknowledged.
    marks: VecDeque<Mark>,
    /// What the program has not read, oldest first.
    queue: VecDeque<Message>,
}

/// The last byte of a write.
#[derive(Debug)]
struct Mark {
    /// Bytes of the stream up to there.
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

impl Link {
    /// `SO_TIMESTAMPING`.
    pub(super) fn want_stamps(&mut self, flags: &[&str]) {
        let flags = flags.iter().map(|flag| flag.trim_start_matches("SOF_TIMESTAMPING_").to_owned());
        self.stamping.wanted = flags.collect();
        self.stamping.base = self.connection.info().bytes_acked;
    }

    /// A write ends with the last byte that was taken.
    pub(super) fn mark_write(&mut self, now: Instant) {
        let end = self.written + (self.held + self.later.iter().sum::<usize>()) as u64;
        if !self.stamping.wanted.is_empty() {
            self.stamping.marks.push_back(Mark { end, sent: false });
            self.stamp(now);
        }
    }

    /// Reports what has left and what was acknowledged.
    pub(super) fn stamp(&mut self, now: Instant) {
        if self.stamping.marks.is_empty() {
            return;
        }
        let info = self.connection.info();
        let sent = self.written - u64::from(info.unsent).min(self.written);
        let Stamping { wanted, base, marks, queue } = &mut self.stamping;
        let wants = |flag: &str| wanted.iter().any(|wanted| wanted == flag);
        let mut report =
            |kind, end: u64| queue.push_back(Message { kind, at: now, id: (end - 1).saturating_sub(*base) });
        for mark in marks.iter_mut().filter(|mark| !mark.sent && mark.end <= sent) {
            mark.sent = true;
            for (flag, kind) in [("TX_SCHED", "SCM_TSTAMP_SCHED"), ("TX_SOFTWARE", "SCM_TSTAMP_SND")] {
                if wants(flag) {
                    report(kind, mark.end);
                }
            }
        }
        while let Some(mark) = marks.pop_front_if(|mark| mark.end <= info.bytes_acked) {
            if wants("TX_ACK") {
                report("SCM_TSTAMP_ACK", mark.end);
            }
        }
    }

    pub(super) fn has_messages(&self) -> bool {
        !self.stamping.queue.is_empty()
    }
}

impl Host {
    /// `recvmsg` with `MSG_ERRQUEUE`: compares the next message with the one that the script expects.
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
