//! The grammar of scripts.

mod call;
mod multipath;
mod packet;

use std::collections::BTreeMap;

use anabranch_core::time::{Duration, Instant};

use crate::lexer::{self, Kind, NANOS, Token};
use crate::outcome::{Step, Stop};
use crate::script::{Action, Event, Script, Setting, Shell, Time};

/// Reads a whole script.
pub(crate) fn parse(text: &str) -> Step<Script> {
    let tokens = defined(lexer::tokens(text)?)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let mut script = Script::default();
    while let Some(Kind::Option(name, value)) = parser.peek() {
        let (name, value) = (name.clone(), value.clone());
        if name == "psp_udp_port" {
            return Err(Stop::not_applicable(parser.line(), "PSP"));
        }
        script.options.push(Setting { line: parser.line(), name, value });
        parser.at += 1;
    }
    script.init = parser.shell();
    while parser.peek().is_some() {
        if let Some(cleanup) = parser.shell() {
            // A command without a time ends the script: it restores the machine's settings.
            if parser.peek().is_some() {
                return Err(Stop::invalid(
                    cleanup.line,
                    "a shell command without a time must be the last event",
                ));
            }
            break;
        }
        script.events.push(parser.event()?);
    }
    Ok(script)
}

/// Replaces names by the values of `--define=NAME=VALUE`.
fn defined(tokens: Vec<Token>) -> Step<Vec<Token>> {
    let mut values = BTreeMap::new();
    for token in &tokens {
        if let Kind::Option(option, Some(value)) = &token.kind
            && option == "define"
        {
            let Some((name, value)) = value.split_once('=') else {
                return Err(Stop::invalid(token.line, "`--define` needs NAME=VALUE"));
            };
            values.insert(name.to_owned(), lexer::tokens(value)?);
        }
    }
    let mut all = Vec::with_capacity(tokens.len());
    for token in tokens {
        match &token.kind {
            Kind::Word(word) if values.contains_key(word) => {
                let line = token.line;
                all.extend(values[word].iter().map(|value| Token { line, kind: value.kind.clone() }));
            }
            _ => all.push(token),
        }
    }
    Ok(all)
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    /// Nesting depth of values.
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Kind> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Option<&Kind> {
        self.tokens.get(self.at + ahead).map(|token| &token.kind)
    }

    /// Line of the next token, or of the last one.
    fn line(&self) -> usize {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |token| token.line)
    }

    fn unexpected(&self, wanted: &str) -> Stop {
        let found = self.peek().map_or_else(|| "the end of the script".to_owned(), Kind::describe);
        Stop::invalid(self.line(), format_args!("expected {wanted}, found {found}"))
    }

    /// Takes the mark if it is next.
    fn accept(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(&Kind::Mark(mark));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, mark: char) -> Step {
        if self.accept(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{mark}`"))) }
    }

    /// Takes the name if it is next.
    fn accept_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Kind::Word(found)) if found == word);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, wanted: &str) -> Step<String> {
        match self.peek() {
            Some(Kind::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    /// An integer within the range of the type.
    fn int<N: TryFrom<i64>>(&mut self, wanted: &str) -> Step<N> {
        match self.peek() {
            Some(Kind::Int { value, text }) => match N::try_from(*value) {
                Ok(number) => {
                    self.at += 1;
                    Ok(number)
                }
                Err(_) => {
                    let message = format!("expected {wanted}, but `{text}` is out of range");
                    Err(Stop::invalid(self.line(), message))
                }
            },
            _ => Err(self.unexpected(wanted)),
        }
    }

    fn shell(&mut self) -> Option<Shell> {
        let Some(Kind::Shell(text)) = self.peek() else { return None };
        let shell = Shell { line: self.line(), text: text.clone() };
        self.at += 1;
        Some(shell)
    }

    fn event(&mut self) -> Step<Event> {
        let line = self.line();
        let time = self.time()?;
        let action = match self.peek() {
            Some(Kind::Mark('<')) => {
                self.at += 1;
                Action::Inbound(self.packet()?)
            }
            Some(Kind::Mark('>')) => {
                self.at += 1;
                Action::Outbound(self.packet()?)
            }
            Some(Kind::Code(code)) => {
                let code = code.clone();
                self.at += 1;
                Action::Code(code)
            }
            Some(Kind::Shell(_)) => match self.shell() {
                Some(shell) => Action::Shell(shell),
                None => return Err(self.unexpected("a shell command")),
            },
            Some(Kind::Word(_) | Kind::Ellipsis) => Action::Call(self.call()?),
            _ => return Err(self.unexpected("a packet, a system call, a command or a code snippet")),
        };
        let outbound = matches!(action, Action::Outbound(_));
        match time {
            Time::Any | Time::AbsoluteRange(..) | Time::RelativeRange(..) if !outbound => {
                Err(Stop::invalid(line, "only an outbound packet can have a range of times or `*`"))
            }
            _ => Ok(Event { line, time, action }),
        }
    }

    fn time(&mut self) -> Step<Time> {
        if self.accept('*') {
            return Ok(Time::Any);
        }
        let relative = self.accept('+');
        let from = self.seconds()?;
        if !self.accept('~') {
            let at = Instant::ZERO + from;
            return Ok(if relative { Time::Relative(from) } else { Time::Absolute(at) });
        }
        if relative {
            self.expect('+')?;
        }
        let line = self.line();
        let to = self.seconds()?;
        if to < from {
            return Err(Stop::invalid(line, "the range of times is backwards"));
        }
        Ok(if relative {
            Time::RelativeRange(from, to)
        } else {
            Time::AbsoluteRange(Instant::ZERO + from, Instant::ZERO + to)
        })
    }

    /// A time in seconds, at most [`LONGEST`].
    fn seconds(&mut self) -> Step<Duration> {
        let nanos = match self.peek() {
            Some(Kind::Float { nanos, .. }) => Some(*nanos),
            Some(Kind::Int { value, .. }) => value.checked_mul(NANOS),
            _ => return Err(self.unexpected("a time in seconds")),
        };
        match nanos.and_then(|nanos| u64::try_from(nanos).ok()).filter(|nanos| *nanos <= LONGEST) {
            Some(nanos) => {
                self.at += 1;
                Ok(Duration::from_nanos(nanos))
            }
            None => Err(Stop::invalid(self.line(), "a time must be between 0 and 1000000 seconds")),
        }
    }
}

/// The longest time in a script, in nanoseconds.
const LONGEST: u64 = 1_000_000 * NANOS as u64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{TcpOption, Value};

    #[test]
    fn packets() {
        let script =
            parse("+.1 > SP. 1:11(10) ack 2 win 3 <mss 4,nop,wscale 5,TS val 6 ecr 7,sack 8:9>").unwrap();
        let Action::Outbound(packet) = &script.events[0].action else { panic!("outbound") };
        assert_eq!((packet.seq, packet.len, packet.ack, packet.window), (1, 10, 2, Some(3)));
        assert_eq!(format!("{:?}", packet.flags), "SP.");
        let options = packet.options.as_ref().unwrap();
        assert_eq!(options[..2], [TcpOption::Mss(4), TcpOption::Padding]);
        assert_eq!(options.len(), 5);
        for any in [
            "+0 > . 1:1(0) <...>",
            "* > R 1:1(0)",
            "+0 < [ect01] SEW 0:0(0)",
            "0.1~0.2 > - 0:0(0)",
            "+0~+.1 > F. 1:1(0) ack 1",
        ] {
            assert!(parse(any).is_ok(), "{any}");
        }
    }

    #[test]
    fn calls() {
        let script =
            parse("+0...0.2 poll([{fd=4, events=POLLIN|POLLOUT, revents=0}], 1, -1) = -1 EAGAIN (a (b) c)")
                .unwrap();
        let Action::Call(call) = &script.events[0].action else { panic!("a call") };
        assert_eq!((call.name.as_str(), call.errno.as_deref()), ("poll", Some("EAGAIN")));
        assert_eq!(call.args[1], Value::Int(1));
        assert_eq!(call.end, Some(Duration::from_millis(200)));
    }

    #[test]
    fn errors_name_the_line() {
        for (text, line) in [
            ("+0 < S", 1),
            ("\n+0 > . 1:3(1) ack 1", 2),
            ("+0 socket(", 1),
            ("+0\n\nread(4 = 3", 3),
            ("* < . 1:1(0) ack 1", 1),
            ("-1 read() = 0", 1),
            ("+0 < . 1:1(0) ack 99999999999", 1),
        ] {
            let stop = parse(text).unwrap_err();
            let crate::Outcome::Invalid(place) = stop.into() else { panic!("{text}") };
            assert_eq!(place.line, line, "{text}: {}", place.message);
        }
    }
}
