//! Executes the events of a script in order and in simulated time.

mod mapping;
mod multipath;
mod segments;

use std::collections::BTreeMap;

use anabranch_core::time::{Duration, Instant};

use self::mapping::Mapping;
use self::multipath::Names;
use crate::code::{Figures, Interpreter};
use crate::host::{Attempt, Host, Reply, START};
use crate::outcome::{Step, Stop};
use crate::script::{Action, Call, Event, Script, Time, Value};
use crate::settings::Settings;

/// Runs a script to its end or to the first difference.
pub(crate) fn run(script: &Script) -> Step {
    let settings = Settings::of(script)?;
    if script.events.is_empty() {
        return Err(Stop::invalid(0, "no events: the script tests nothing; is the file cut or empty?"));
    }
    let mut runner = Runner {
        host: Host::new(settings),
        interpreter: Interpreter::default(),
        mappings: BTreeMap::new(),
        names: Names::default(),
        last: None,
        blocked: None,
    };
    for event in &script.events {
        runner.event(event)?;
    }
    runner.finish_blocked(script.events.last().map_or(0, |event| event.line))
}

struct Runner<'a> {
    host: Host,
    interpreter: Interpreter,
    /// Number mappings between script and host, by flow.
    mappings: BTreeMap<usize, Mapping>,
    names: Names,
    /// The previous event.
    last: Option<Last>,
    blocked: Option<Blocked<'a>>,
}

/// An event that has happened.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// Its begin time in the script.
    at: Instant,
    /// True if the script gives a single time and not a range.
    anchored: bool,
}

/// When an event should happen, by the host's clock.
#[derive(Clone, Copy, Debug)]
struct When {
    from: Instant,
    to: Instant,
    any: bool,
}

/// A call that has not returned.
#[derive(Debug)]
struct Blocked<'a> {
    attempt: Attempt<'a>,
    /// When it should return.
    end: Instant,
    /// When it times out by itself.
    until: Option<Instant>,
}

impl<'a> Runner<'a> {
    fn event(&mut self, event: &'a Event) -> Step {
        let (when, origin) = self.when(event.time);
        let line = event.line;
        let anchored = matches!(event.time, Time::Absolute(_) | Time::Relative(_));
        if let (Time::Absolute(_), Some(last)) = (event.time, self.last)
            && when.from < last.at
        {
            return Err(Stop::invalid(line, "the time of this event is before the event above"));
        }
        // `outbound` waits for its segment and advances the time itself.
        if !matches!(event.action, Action::Outbound(_)) {
            self.advance(when.from)?;
        }
        match &event.action {
            Action::Inbound(packet) => self.inbound(line, packet)?,
            Action::Outbound(packet) => self.outbound(line, packet, when)?,
            Action::Call(call) => {
                let end = call.end.map(|end| match event.time {
                    Time::Absolute(_) => START + end,
                    _ => origin + end,
                });
                self.call(line, call, end)?;
            }
            Action::Shell(shell) => self.host.settings.command(shell)?,
            Action::Code(code) => {
                let link = self.host.current.and_then(|flow| self.host.link(flow));
                self.interpreter.execute(line, code, &Figures::of(link, self.host.now()))?;
            }
        }
        self.last = Some(Last { at: when.from, anchored });
        self.retry_blocked()
    }

    /// The times of an event, and the reference point of its relative times.
    fn when(&self, time: Time) -> (When, Instant) {
        let anchored = matches!(time, Time::Absolute(_) | Time::Relative(_));
        let origin = match self.last {
            Some(last) if last.anchored && anchored => last.at,
            _ => self.host.now(),
        };
        let since_start = |at: Instant| START + at.saturating_since(Instant::ZERO);
        let (from, to) = match time {
            Time::Absolute(at) => (since_start(at), since_start(at)),
            Time::AbsoluteRange(from, to) => (since_start(from), since_start(to)),
            Time::Relative(span) => (origin + span, origin + span),
            Time::RelativeRange(from, to) => (origin + from, origin + to),
            Time::Any => (origin, origin),
        };
        (When { from, to, any: time == Time::Any }, origin)
    }

    /// Tolerance for an event at `at`.
    fn tolerance(&self, at: Instant) -> Duration {
        let settings = &self.host.settings;
        let since = self.last.map_or(Duration::ZERO, |last| at.saturating_since(last.at));
        settings.tolerance.max(since.mul_ratio(settings.tolerance_permille, 1000))
    }

    /// Advances time. No time passes between events at the same instant: a timer of zero length,
    /// such as one of a round trip of zero length, fires after all of these events.
    fn advance(&mut self, to: Instant) -> Step {
        if to > self.host.now() {
            while self.step(to)? {}
            self.host.advance(to);
        }
        self.retry_blocked()
    }

    /// Fires the next timer if it is due by `limit`.
    fn step(&mut self, limit: Instant) -> Step<bool> {
        let until = self.blocked.as_ref().and_then(|blocked| blocked.until);
        let next = self.host.next_timeout().into_iter().chain(until).min();
        let Some(at) = next.filter(|at| *at <= limit) else { return Ok(false) };
        // Timers of zero length could otherwise fire forever.
        if at <= self.host.now() && self.host.sent.len() > MOST_SENT {
            return Err(Stop::failed(0, "the connection sends without end"));
        }
        self.host.advance(at);
        self.retry_blocked()?;
        Ok(true)
    }

    fn call(&mut self, line: usize, call: &'a Call, end: Option<Instant>) -> Step {
        self.finish_blocked(line)?;
        let mut attempt = Attempt { line, call, since: self.host.now(), began: false, progress: 0 };
        match (self.host.call(&mut attempt)?, end) {
            (Reply::Wait(until), Some(end)) => {
                self.blocked = Some(Blocked { attempt, end, until });
                Ok(())
            }
            (Reply::Wait(_), None) => {
                let message = format!("`{}` blocks, but the script names no end", call.name);
                Err(Stop::failed(line, message))
            }
            (reply, Some(end)) => self.returned(line, call, reply, Some(end)),
            (reply, None) => self.returned(line, call, reply, None),
        }
    }

    /// Retries the blocked call.
    fn retry_blocked(&mut self) -> Step {
        let Some(mut blocked) = self.blocked.take() else { return Ok(()) };
        match self.host.call(&mut blocked.attempt)? {
            Reply::Wait(until) => {
                blocked.until = until;
                self.blocked = Some(blocked);
                Ok(())
            }
            reply => self.returned(blocked.attempt.line, blocked.attempt.call, reply, Some(blocked.end)),
        }
    }

    /// Waits for the blocked call.
    fn finish_blocked(&mut self, line: usize) -> Step {
        let Some(blocked) = &self.blocked else { return Ok(()) };
        let limit = (blocked.end + PATIENCE).max(self.host.now());
        while self.blocked.is_some() && self.step(limit)? {}
        match &self.blocked {
            None => Ok(()),
            Some(blocked) => {
                let message = format!(
                    "`{}` of line {} has not returned",
                    blocked.attempt.call.name, blocked.attempt.line
                );
                Err(Stop::failed(line, message))
            }
        }
    }

    /// Compares the result of a call with the script.
    fn returned(&self, line: usize, call: &Call, reply: Reply, end: Option<Instant>) -> Step {
        let name = &call.name;
        let (got, errno) = match reply {
            Reply::Done(value) => (value, None),
            Reply::Error(errno) => (-1, Some(errno)),
            Reply::Wait(_) => return Ok(()),
        };
        let expected = match &call.result {
            Value::Any => got,
            Value::Int(value) => *value,
            _ => return Err(Stop::not_applicable(line, "a result that is not a number")),
        };
        let same_error = |wanted: &str| {
            let wanted = if wanted == "EWOULDBLOCK" { "EAGAIN" } else { wanted };
            errno == Some(wanted)
        };
        if expected != got || call.errno.as_deref().is_some_and(|wanted| !same_error(wanted)) {
            let wanted = call.errno.as_deref().map_or_else(String::new, |errno| format!(" {errno}"));
            let errno = errno.map_or_else(String::new, |errno| format!(" {errno}"));
            let message = format!("`{name}`: expected {expected}{wanted}, got {got}{errno}");
            return Err(Stop::failed(line, message));
        }
        let Some(end) = end else { return Ok(()) };
        let now = self.host.now();
        if now + self.tolerance(end) < end || end + self.tolerance(end) < now {
            let message = format!("`{name}` returned at {}, expected {}", seconds(now), seconds(end));
            return Err(Stop::failed(line, message));
        }
        Ok(())
    }
}

/// Formats a time as the script's seconds.
fn seconds(at: Instant) -> String {
    let nanos = at.saturating_since(START).as_nanos();
    format!("{}.{:06} s", nanos / 1_000_000_000, nanos / 1000 % 1_000_000)
}

/// Time after which the runner stops waiting for an overdue event.
const PATIENCE: Duration = Duration::from_secs(2);
/// Limit of collected segments; no script expects as many.
const MOST_SENT: usize = 100_000;
