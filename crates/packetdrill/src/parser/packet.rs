//! Packets: `S. 0:0(0) ack 1 win 65535 <mss 1460,nop>`.

use anabranch_core::segment::{Flags, SackBlock, SeqNumber};

use super::Parser;
use crate::lexer::Kind;
use crate::outcome::{Step, Stop};
use crate::script::{Ecn, Packet, TcpOption};

impl Parser<'_> {
    /// Parses a packet after `<` or `>`.
    pub(super) fn packet(&mut self) -> Step<Packet> {
        let ecn = self.ip_info()?;
        self.encapsulation()?;
        let addresses = self.addresses()?;
        let ports = self.ports()?;
        let flags = self.flags()?;
        let line = self.line();
        let seq: u32 = self.int("a sequence number")?;
        self.expect(':')?;
        let end: u32 = self.int("the sequence number after the payload")?;
        self.expect('(')?;
        let len: u16 = self.int("the length of the payload")?;
        self.expect(')')?;
        if seq.wrapping_add(u32::from(len)) != end {
            return Err(Stop::invalid(line, format_args!("{seq}:{end} is not {len} bytes long")));
        }
        let ack = if self.accept_word("ack") { self.int("an acknowledgement number")? } else { 0 };
        let window = if self.accept_word("win") { Some(self.int("a window")?) } else { None };
        if self.accept_word("urg") {
            return Err(Stop::not_applicable(line, "urgent data (RFC 6093)"));
        }
        let options = self.options()?;
        Ok(Packet { ecn, flags, seq, len: u32::from(len), ack, window, options, ports, addresses })
    }

    /// Parses `[noecn]`, `(ttl 64)` and similar.
    fn ip_info(&mut self) -> Step<Option<Ecn>> {
        let close = match self.peek() {
            Some(Kind::Mark('[')) => ']',
            Some(Kind::Mark('(')) => ')',
            _ => return Ok(None),
        };
        let line = self.line();
        self.at += 1;
        let name = self.word("`tos`, `ttl`, `flowlabel` or an ECN codepoint")?;
        let ecn = match name.as_str() {
            "noecn" => Some(Ecn::NotEct),
            "ect0" => Some(Ecn::Ect0),
            "ect1" => Some(Ecn::Ect1),
            "ect01" => Some(Ecn::Ect),
            "ce" => Some(Ecn::Ce),
            "tos" | "ttl" | "flowlabel" => {
                self.int::<i64>("a number")?;
                None
            }
            other => {
                let message =
                    format!("expected `tos`, `ttl`, `flowlabel` or an ECN codepoint, found `{other}`");
                return Err(Stop::invalid(line, message));
            }
        };
        self.expect(close)?;
        Ok(ecn)
    }

    /// Refuses everything other than TCP over IP.
    fn encapsulation(&self) -> Step {
        let Some(Kind::Word(word)) = self.peek() else { return Ok(()) };
        let what = match word.as_str() {
            "ipv4" | "ipv6" => "packets inside packets",
            "gre" | "GREv0" => "GRE",
            "mpls" => "MPLS",
            "encap" | "psp" => "PSP",
            "udp" => "UDP",
            "icmp" => "ICMP",
            _ => return Ok(()),
        };
        Err(Stop::not_applicable(self.line(), what))
    }

    /// Parses `addr[caddr0] > addr[saddr0]`, or the destination alone after `>`.
    fn addresses(&mut self) -> Step<[Option<String>; 2]> {
        let source = if self.accept_word("addr") { Some(self.address_name()?.name) } else { None };
        if source.is_none() && self.peek() != Some(&Kind::Mark('>')) {
            return Ok([None, None]);
        }
        self.expect('>')?;
        let destination = if self.accept_word("addr") { Some(self.address_name()?.name) } else { None };
        Ok([source, destination])
    }

    fn ports(&mut self) -> Step<Option<(u16, u16)>> {
        if !matches!(self.peek(), Some(Kind::Int { .. })) || self.peek_at(1) != Some(&Kind::Mark('>')) {
            return Ok(None);
        }
        let from = self.int("a port")?;
        self.expect('>')?;
        Ok(Some((from, self.int("a port")?)))
    }

    /// `S.`, `FP.`, `.` or `-`.
    fn flags(&mut self) -> Step<Flags> {
        let line = self.line();
        if self.accept('-') {
            return Ok(Flags::default());
        }
        let mut flags = Flags::default();
        if let Some(Kind::Word(word)) = self.peek() {
            for letter in word.chars() {
                flags = flags.with(match letter {
                    'S' => Flags::SYN,
                    'F' => Flags::FIN,
                    'R' => Flags::RST,
                    'P' => Flags::PSH,
                    'U' => return Err(Stop::not_applicable(line, "urgent data (RFC 6093)")),
                    'E' => Flags::ECE,
                    'W' => Flags::CWR,
                    'A' => return Err(Stop::not_applicable(line, "accurate ECN (RFC 9768)")),
                    _ => return Err(self.unexpected("flags: letters of `SFRPUEWA` and `.`")),
                });
            }
            self.at += 1;
        } else if matches!(self.peek(), Some(Kind::Float { .. })) {
            return Err(Stop::not_applicable(line, "accurate ECN (RFC 9768)"));
        } else if self.peek() != Some(&Kind::Mark('.')) {
            return Err(self.unexpected("flags: letters of `SFRPUEWA` and `.`, or `-`"));
        }
        Ok(if self.accept('.') { flags.with(Flags::ACK) } else { flags })
    }

    /// Parses the options between `<` and `>`; without them, returns an empty list.
    fn options(&mut self) -> Step<Option<Vec<TcpOption>>> {
        // The next event may begin with a time, but never with `<`.
        if !self.accept('<') {
            return Ok(Some(Vec::new()));
        }
        if self.peek() == Some(&Kind::Ellipsis) {
            self.at += 1;
            self.expect('>')?;
            return Ok(None);
        }
        let mut options = Vec::new();
        loop {
            options.push(self.option()?);
            if self.accept('>') {
                return Ok(Some(options));
            }
            self.expect(',')?;
        }
    }

    fn option(&mut self) -> Step<TcpOption> {
        let line = self.line();
        let name = self.word("a TCP option")?;
        if let Some(option) = self.multipath_option(&name)? {
            return Ok(TcpOption::Multipath(option));
        }
        Ok(match name.as_str() {
            "nop" | "eol" => TcpOption::Padding,
            "mss" => TcpOption::Mss(self.int("a segment size")?),
            "wscale" => TcpOption::WindowScale(self.int("a shift count")?),
            "sackOK" => TcpOption::SackPermitted,
            "sack" => {
                let mut blocks = Vec::new();
                while matches!(self.peek(), Some(Kind::Int { .. })) {
                    let left = SeqNumber(self.int("the left edge of a SACK block")?);
                    self.expect(':')?;
                    let right = SeqNumber(self.int("the right edge of a SACK block")?);
                    blocks.push(SackBlock { left, right });
                }
                TcpOption::Sack(blocks)
            }
            "TS" => {
                self.named("val")?;
                let value = self.int("a timestamp")?;
                self.named("ecr")?;
                TcpOption::Timestamps(value, self.int("a timestamp")?)
            }
            "FO" | "FOEXP" => return Err(Stop::not_applicable(line, "Fast Open (RFC 7413)")),
            "md5" => return Err(Stop::not_applicable(line, "MD5 signatures (RFC 2385)")),
            "ECN" => return Err(Stop::not_applicable(line, "accurate ECN (RFC 9768)")),
            other => return Err(Stop::invalid(line, format_args!("`{other}` is not a TCP option"))),
        })
    }

    pub(super) fn named(&mut self, word: &str) -> Step {
        if self.accept_word(word) { Ok(()) } else { Err(self.unexpected(&format!("`{word}`"))) }
    }
}
