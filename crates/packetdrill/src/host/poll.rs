//! poll and epoll.

use std::collections::BTreeMap;

use anabranch_core::time::{Duration, Instant};

use super::args::{Args, Reply, field, int, words};
use super::socket::Stage;
use super::{File, Host};
use crate::outcome::{Step, Stop};
use crate::script::Value;

/// The state of an epoll descriptor.
#[derive(Debug, Default)]
pub(super) struct Epoll {
    watched: BTreeMap<i64, Watch>,
}

#[derive(Debug)]
struct Watch {
    /// Names of events without `EPOLL`.
    events: Vec<String>,
    edge: bool,
    once: bool,
    /// Number of wake-ups already reported.
    seen: Option<u64>,
    /// The program's data, as written in the script.
    data: Vec<(Option<String>, Value)>,
}

impl Host {
    /// The events ready at a descriptor, by name without `POLL` or `EPOLL`.
    fn readiness(&self, fd: i64) -> Vec<&'static str> {
        let mut ready = Vec::new();
        let Some(File::Socket(index)) = self.files.get(&fd) else { return ready };
        match &self.sockets[*index].stage {
            Stage::New => ready.extend(["HUP", "OUT", "WRNORM"]),
            Stage::Listening { ready: waiting } => {
                if !waiting.is_empty() {
                    ready.extend(["IN", "RDNORM"]);
                }
            }
            Stage::Connected(link) => {
                let link = &self.links[*link];
                let ended = link.peer_closed || link.read_shut || link.is_closed();
                if ended || link.connection.info().readable > 0 {
                    ready.extend(["IN", "RDNORM"]);
                }
                if ended {
                    ready.push("RDHUP");
                }
                if link.is_closed() || link.write_shut || link.is_writable() {
                    ready.extend(["OUT", "WRNORM"]);
                }
                if link.is_closed() || (ended && link.write_shut) {
                    ready.push("HUP");
                }
                if link.error.is_some() || link.stamping.has_messages() {
                    ready.push("ERR");
                }
            }
        }
        ready
    }

    fn wakeups(&self, fd: i64) -> u64 {
        self.link_of(fd).map_or(0, |(_, link)| self.links[link].wakeups)
    }

    pub(super) fn poll(&mut self, args: &Args<'_>) -> Step<Reply> {
        let Value::List(list) = args.value(0)? else {
            return Err(Stop::invalid(args.line, "`poll` needs a list of `{fd=, events=, revents=}`"));
        };
        let mut found = Vec::new();
        for entry in list {
            let wrong = || Stop::invalid(args.line, "`poll` needs `{fd=, events=, revents=}`");
            let fd = field(entry, "fd").and_then(int).ok_or_else(wrong)?;
            let wanted = field(entry, "events").and_then(words).ok_or_else(wrong)?;
            let expected = field(entry, "revents").and_then(words).ok_or_else(wrong)?;
            let ready = self.readiness(fd).into_iter();
            let mut ready: Vec<String> = ready
                .filter(|event| {
                    ["ERR", "HUP"].contains(event) || wanted.contains(&format!("POLL{event}").as_str())
                })
                .map(|event| format!("POLL{event}"))
                .collect();
            ready.sort_unstable();
            let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
            expected.sort_unstable();
            found.push((fd, ready, expected));
        }
        let count = found.iter().filter(|(_, ready, _)| !ready.is_empty()).count();
        let until = deadline(args, args.int(2)?);
        if count == 0 && until.is_none_or(|until| self.now < until) {
            for (fd, ..) in &found {
                self.wants_space(*fd);
            }
            return Ok(Reply::Wait(until));
        }
        for (fd, ready, expected) in found {
            if ready != expected {
                let (expected, ready) = (expected.join("|"), ready.join("|"));
                let message = format!("revents of descriptor {fd}: expected `{expected}`, got `{ready}`");
                return Err(Stop::failed(args.line, message));
            }
        }
        Ok(Reply::Done(count as i64))
    }

    fn wants_space(&mut self, fd: i64) {
        if let Some((_, link)) = self.link_of(fd) {
            self.links[link].no_space = true;
        }
    }

    pub(super) fn epoll_create(&mut self, args: &Args<'_>) -> Reply {
        self.add_file(args.wanted, File::Epoll(Epoll::default()))
    }

    pub(super) fn epoll_ctl(&mut self, args: &Args<'_>) -> Step<Reply> {
        let (epoll, op, fd) = (args.int(0)?, args.words(1)?, args.int(2)?);
        let known = self.files.contains_key(&fd);
        let Some(File::Epoll(epoll)) = self.files.get_mut(&epoll) else { return Ok(Reply::Error("EINVAL")) };
        let watched = epoll.watched.contains_key(&fd);
        match op[..] {
            _ if !known => Ok(Reply::Error("EBADF")),
            ["EPOLL_CTL_ADD"] if watched => Ok(Reply::Error("EEXIST")),
            ["EPOLL_CTL_MOD" | "EPOLL_CTL_DEL"] if !watched => Ok(Reply::Error("ENOENT")),
            ["EPOLL_CTL_DEL"] => {
                epoll.watched.remove(&fd);
                Ok(Reply::Done(0))
            }
            ["EPOLL_CTL_ADD" | "EPOLL_CTL_MOD"] => {
                let wrong = || Stop::invalid(args.line, "`epoll_ctl` needs `{events=, fd=}`");
                let Value::Fields(fields) = args.value(3)? else { return Err(wrong()) };
                let events = field(args.value(3)?, "events").and_then(words).ok_or_else(wrong)?;
                let watch = Watch {
                    edge: events.contains(&"EPOLLET"),
                    once: events.contains(&"EPOLLONESHOT"),
                    events: events.iter().map(|event| event.trim_start_matches("EPOLL").to_owned()).collect(),
                    seen: None,
                    data: fields
                        .iter()
                        .filter(|(name, _)| name.as_deref() != Some("events"))
                        .cloned()
                        .collect(),
                };
                epoll.watched.insert(fd, watch);
                Ok(Reply::Done(0))
            }
            _ => Ok(Reply::Error("EINVAL")),
        }
    }

    pub(super) fn epoll_wait(&mut self, args: &Args<'_>) -> Step<Reply> {
        let (epoll_fd, timeout) = (args.int(0)?, args.int(3)?);
        let most = usize::try_from(args.int(2)?).unwrap_or(0);
        let Some(File::Epoll(epoll)) = self.files.get(&epoll_fd) else { return Ok(Reply::Error("EINVAL")) };
        let mut found = Vec::new();
        for (fd, watch) in &epoll.watched {
            let ready = self.readiness(*fd).into_iter();
            let mut ready: Vec<&str> = ready
                .filter(|event| {
                    ["ERR", "HUP"].contains(event) || watch.events.iter().any(|wanted| wanted == event)
                })
                .collect();
            ready.sort_unstable();
            let wakeups = self.wakeups(*fd);
            let reported = watch.edge && watch.seen == Some(wakeups);
            if !ready.is_empty() && !reported && found.len() < most {
                found.push((*fd, ready, wakeups, watch.data.clone()));
            }
        }
        let until = deadline(args, timeout);
        if found.is_empty() && until.is_none_or(|until| self.now < until) {
            return Ok(Reply::Wait(until));
        }
        let expected = match args.value(1)? {
            Value::List(list) => &list[..],
            one => std::slice::from_ref(one),
        };
        for ((fd, ready, _, data), expected) in found.iter().zip(expected) {
            let mut events = field(expected, "events").and_then(words).unwrap_or_default();
            events.sort_unstable();
            let ready: Vec<String> = ready.iter().map(|event| format!("EPOLL{event}")).collect();
            if events != ready {
                let message = format!(
                    "events of descriptor {fd}: expected `{}`, got `{}`",
                    events.join("|"),
                    ready.join("|")
                );
                return Err(Stop::failed(args.line, message));
            }
            for (name, value) in data {
                let name = name.as_deref().unwrap_or_default();
                if field(expected, name).is_some_and(|expected| expected != value) {
                    return Err(Stop::failed(args.line, format_args!("`{name}` of the event differs")));
                }
            }
        }
        let count = found.len();
        if let Some(File::Epoll(epoll)) = self.files.get_mut(&epoll_fd) {
            for (fd, _, wakeups, _) in found {
                if let Some(watch) = epoll.watched.get_mut(&fd) {
                    watch.seen = Some(wakeups);
                    if watch.once {
                        watch.events.clear();
                    }
                }
            }
        }
        Ok(Reply::Done(count as i64))
    }
}

/// When a call with a timeout in milliseconds returns; `None` is never.
fn deadline(args: &Args<'_>, timeout: i64) -> Option<Instant> {
    let millis = u64::try_from(timeout).ok()?;
    Some(args.since + Duration::from_millis(millis.min(1_000_000_000)))
}
