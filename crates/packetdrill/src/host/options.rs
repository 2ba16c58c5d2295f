//! setsockopt, getsockopt, fcntl and ioctl.

use std::collections::BTreeMap;

use anabranch_core::tcp::KeepAlive;
use anabranch_core::time::Duration;

use super::Host;
use super::args::{Args, Reply, field, int, words};
use super::socket::Stage;
use crate::outcome::{Step, Stop};
use crate::script::Value;

impl Host {
    pub(super) fn set_option(&mut self, args: &Args<'_>) -> Step<Reply> {
        let Some(index) = self.socket_index(args)? else { return Ok(Reply::Error("ENOTSOCK")) };
        let names = args.words(2)?;
        let [name] = names[..] else {
            return Err(Stop::invalid(args.line, "expected the name of an option"));
        };
        let value = args.value(3)?;
        // A constant such as IP_PMTUDISC_DONT counts as 0.
        let number = int(value).unwrap_or(0);
        let socket = &mut self.sockets[index];
        let link = match socket.stage {
            Stage::Connected(link) => self.links.get_mut(link),
            Stage::New | Stage::Listening { .. } => None,
        };
        // The kernel limits sizes too.
        let size = number.clamp(0, 1 << 25) as u32;
        match name {
            "SO_SNDBUF" => {
                let doubled = size.saturating_mul(2).max(4608);
                (socket.config.send_buffer, socket.most_buffer) = (doubled, None);
                if let Some(link) = link {
                    link.set_send_buffer(doubled);
                    link.most_buffer = None;
                }
            }
            "SO_RCVBUF" => {
                // Linux doubles the value for its own needs and advertises half of that.
                let size = size.max(1152);
                socket.config.receive_buffer = size;
                if let Some(link) = link {
                    link.connection.set_receive_buffer(size);
                }
            }
            "SO_LINGER" => {
                let flag = |name| field(value, name).and_then(int).unwrap_or(0);
                socket.resets = flag("onoff") != 0 && flag("linger") == 0;
            }
            "TCP_MAXSEG" => {
                let Some(mss) = u16::try_from(number).ok().filter(|mss| (88..=32767).contains(mss)) else {
                    return Ok(Reply::Error("EINVAL"));
                };
                socket.config.mss = socket.config.mss.min(mss);
                socket.values.insert(name.to_owned(), number);
            }
            "TCP_NOTSENT_LOWAT" => {
                // 0 means the host's value.
                let lowat = if number == 0 { self.settings.notsent_lowat } else { number as u32 };
                socket.lowat = Some(lowat);
                if let Some(link) = link {
                    link.lowat = lowat;
                }
                socket.values.insert(name.to_owned(), number);
            }
            "TCP_CORK" => {
                socket.cork = number != 0;
                if let Some(link) = link.filter(|_| number == 0) {
                    link.release();
                }
            }
            "TCP_NODELAY" => {
                if let Some(link) = link {
                    link.nodelay = number != 0;
                    if link.nodelay {
                        link.release();
                    }
                }
                socket.values.insert(name.to_owned(), number);
            }
            "SO_TIMESTAMPING" => {
                let flags = match value {
                    Value::List(list) => list.first().and_then(words).unwrap_or_default(),
                    _ => Vec::new(),
                };
                if let Some(link) = link {
                    let acked = link.connection.info().bytes_acked;
                    link.stamping.want(&flags, acked);
                }
            }
            "SO_KEEPALIVE" | "TCP_KEEPIDLE" | "TCP_KEEPINTVL" | "TCP_KEEPCNT" => {
                socket.values.insert(name.to_owned(), number);
                socket.config.keep_alive = keep_alive(&socket.values, self.settings.keep_alive);
                if let Some(link) = link {
                    link.connection.set_keep_alive(self.now, socket.config.keep_alive);
                }
            }
            "TCP_INQ" => socket.inq = number != 0,
            "TCP_USER_TIMEOUT" => {
                let millis = u64::try_from(number).ok().filter(|millis| *millis <= i32::MAX as u64);
                let Some(millis) = millis else { return Ok(Reply::Error("EINVAL")) };
                socket.user_timeout = (millis > 0).then(|| Duration::from_millis(millis));
                if let Some(link) = link {
                    link.connection.set_user_timeout(self.now, socket.user_timeout);
                }
                socket.values.insert(name.to_owned(), number);
            }
            name if HARMLESS.contains(&name) || number == 0 => {
                socket.values.insert(name.to_owned(), number);
            }
            other => {
                return Err(Stop::not_applicable(args.line, format_args!("the socket option `{other}`")));
            }
        }
        self.drain();
        Ok(Reply::Done(0))
    }

    pub(super) fn get_option(&mut self, args: &Args<'_>) -> Step<Reply> {
        let Some(index) = self.socket_index(args)? else { return Ok(Reply::Error("ENOTSOCK")) };
        let names = args.words(2)?;
        let [name] = names[..] else {
            return Err(Stop::invalid(args.line, "expected the name of an option"));
        };
        let socket = &self.sockets[index];
        let link = match socket.stage {
            Stage::Connected(link) => self.links.get_mut(link),
            Stage::New | Stage::Listening { .. } => None,
        };
        let kept = socket.values.get(name).copied();
        let value = match (name, link) {
            ("SO_ERROR", Some(link)) => match link.error.take() {
                None => 0,
                Some(error) => errno(error).unwrap_or(-1),
            },
            ("TCP_MAXSEG", Some(link)) => i64::from(link.connection.info().mss),
            ("TCP_MAXSEG", None) => kept.unwrap_or(536),
            ("SO_SNDBUF", Some(link)) => i64::from(link.send_buffer),
            ("SO_SNDBUF", None) => i64::from(socket.config.send_buffer),
            ("SO_RCVBUF", _) => i64::from(socket.config.receive_buffer) * 2,
            ("TCP_KEEPIDLE", _) => kept.unwrap_or(self.settings.keep_alive.idle.as_millis() as i64 / 1000),
            ("TCP_KEEPINTVL", _) => {
                kept.unwrap_or(self.settings.keep_alive.interval.as_millis() as i64 / 1000)
            }
            ("TCP_KEEPCNT", _) => kept.unwrap_or(self.settings.keep_alive.probes.into()),
            ("TCP_INFO", _) => return Ok(Reply::Done(0)),
            _ => match kept {
                Some(value) => value,
                None if HARMLESS.contains(&name) || KEPT.contains(&name) => 0,
                None => {
                    return Err(Stop::not_applicable(args.line, format_args!("the socket option `{name}`")));
                }
            },
        };
        let expected = args.value(3)?;
        let matches = match expected {
            Value::Any => true,
            Value::List(list) => match &list[..] {
                [Value::Word(word)] => errno(word) == Some(value),
                [Value::Any] | [] => true,
                _ => int(expected).is_none_or(|expected| expected == value),
            },
            _ => int(expected).is_none_or(|expected| expected == value),
        };
        if matches {
            return Ok(Reply::Done(0));
        }
        let message = format!("`{name}`: expected {}, got {value}", int(expected).unwrap_or_default());
        Err(Stop::failed(args.line, message))
    }

    pub(super) fn fcntl(&mut self, args: &Args<'_>) -> Step<Reply> {
        let Some(index) = self.socket_index(args)? else { return Ok(Reply::Error("ENOTSOCK")) };
        let socket = &mut self.sockets[index];
        match args.words(1)?[..] {
            ["F_GETFL"] => Ok(Reply::Done(O_RDWR | if socket.nonblocking { O_NONBLOCK } else { 0 })),
            ["F_SETFL"] => {
                socket.nonblocking = match args.value(2)? {
                    Value::Int(flags) => flags & O_NONBLOCK != 0,
                    _ => args.words(2)?.contains(&"O_NONBLOCK"),
                };
                Ok(Reply::Done(0))
            }
            _ => Err(Stop::not_applicable(args.line, "this command of `fcntl`")),
        }
    }

    pub(super) fn ioctl(&mut self, args: &Args<'_>) -> Step<Reply> {
        if self.socket_index(args)?.is_none() {
            return Ok(Reply::Error("ENOTSOCK"));
        }
        let Some((_, link)) = self.link_of(args.int(0)?) else { return Ok(Reply::Error("EINVAL")) };
        let link = &self.links[link];
        let info = link.connection.info();
        let value = match args.words(1)?[..] {
            ["SIOCINQ" | "FIONREAD"] => i64::from(info.readable),
            ["SIOCOUTQ" | "TIOCOUTQ"] => i64::from(info.buffered) + link.held as i64,
            ["SIOCOUTQNSD"] => i64::from(info.unsent) + link.held as i64,
            _ => return Err(Stop::not_applicable(args.line, "this request of `ioctl`")),
        };
        match args.get(2).and_then(int) {
            Some(expected) if expected != value => {
                Err(Stop::failed(args.line, format_args!("ioctl: expected {expected}, got {value}")))
            }
            _ => Ok(Reply::Done(0)),
        }
    }
}

/// Keep-alive from a socket's options, with the host's values for options that are not set.
fn keep_alive(values: &BTreeMap<String, i64>, host: KeepAlive) -> Option<KeepAlive> {
    let value = |name| values.get(name).copied().filter(|value| *value > 0);
    let seconds =
        |name, or| value(name).map_or(or, |seconds| Duration::from_secs(seconds.min(MOST_SECONDS) as u64));
    value("SO_KEEPALIVE")?;
    Some(KeepAlive {
        idle: seconds("TCP_KEEPIDLE", host.idle),
        interval: seconds("TCP_KEEPINTVL", host.interval),
        probes: value("TCP_KEEPCNT").map_or(host.probes, |probes| probes.min(127) as u8),
    })
}

/// MAX_TCP_KEEPIDLE and MAX_TCP_KEEPINTVL.
const MOST_SECONDS: i64 = 32_767;

/// Linux's number of an error.
pub(super) fn errno(name: &str) -> Option<i64> {
    ERRORS.iter().find(|(found, _)| *found == name).map(|(_, number)| *number)
}

const ERRORS: &[(&str, i64)] =
    &[("EPIPE", 32), ("ECONNRESET", 104), ("ETIMEDOUT", 110), ("ECONNREFUSED", 111), ("EINPROGRESS", 115)];

const O_RDWR: i64 = 2;
const O_NONBLOCK: i64 = 2048;

/// Options without an effect that a script can observe.
const HARMLESS: &[&str] = &[
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "SO_ZEROCOPY",
    "SO_PRIORITY",
    "SO_MARK",
    "SO_DONTROUTE",
    "IP_FREEBIND",
    "IP_TOS",
    "IPV6_TCLASS",
    "IP_MTU_DISCOVER",
    "IPV6_MTU_DISCOVER",
    "TCP_QUICKACK",
];

/// Options that are 0 unless they are set.
const KEPT: &[&str] = &["TCP_NODELAY", "TCP_NOTSENT_LOWAT", "TCP_USER_TIMEOUT", "SO_KEEPALIVE"];
