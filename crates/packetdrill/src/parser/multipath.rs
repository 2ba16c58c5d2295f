//! MPTCP options: `mpcapable v1 flags[flag_h] key[ckey=2, skey]`, `dss dack8=1 dsn8=1 ssn=1 dll=10
//! nocs`.

use std::net::IpAddr;

use super::Parser;
use crate::lexer::Kind;
use crate::outcome::{Step, Stop};
use crate::script::{Checksum, KeyName, Multipath, Named, Token};

impl Parser<'_> {
    /// Parses the option `name`, which was taken; `None` if no MPTCP option has this name.
    pub(super) fn multipath_option(&mut self, name: &str) -> Step<Option<Multipath>> {
        Ok(Some(match name {
            "mpcapable" => self.capable()?,
            "mp_capable" | "mp_capable_no_cs" => {
                return Err(Stop::not_applicable(self.line(), "Multipath TCP version 0 (RFC 6824)"));
            }
            "mp_join_syn" => {
                let (backup, address) = (self.backup()?, self.address_id()?);
                self.named_equals("token")?;
                let token = self.token()?;
                Multipath::JoinSyn { backup, address, token, nonce: self.nonce()? }
            }
            "mp_join_syn_ack" => {
                let (backup, address) = (self.backup()?, self.address_id()?);
                self.sender_hmac()?;
                Multipath::JoinSynAck { backup, address, nonce: self.nonce()? }
            }
            "mp_join_ack" => {
                self.sender_hmac()?;
                Multipath::JoinAck
            }
            "dss" => self.dss()?,
            "add_address" => self.add_address()?,
            "remove_address" => Multipath::RemoveAddress(self.address_ids()?),
            "mp_prio" => Multipath::Prio { backup: self.backup()?, address: self.address_id()? },
            "mp_fail" => {
                self.named_equals("dsn8")?;
                Multipath::Fail { dsn: self.int("a data sequence number")? }
            }
            "mp_fastclose" => {
                let named = matches!(self.peek(), Some(Kind::Word(_)));
                Multipath::Fastclose { key: if named { Some(self.key_name()?) } else { None } }
            }
            "mp_reset" => {
                let reason = self.int("a reason")?;
                let transient = self.flags_list()?.is_some_and(|flags| flags & 1 << 15 != 0);
                Multipath::Reset { reason, transient }
            }
            _ => return Ok(None),
        }))
    }

    fn capable(&mut self) -> Step<Multipath> {
        let version = match self.peek() {
            Some(Kind::Word(word)) if word == "v0" => Some(0),
            Some(Kind::Word(word)) if word == "v1" => Some(1),
            _ => None,
        };
        self.at += usize::from(version.is_some());
        let Some(flags) = self.flags_list()? else { return Err(self.unexpected("`flags[...]`")) };
        let mut keys = Vec::new();
        if !self.accept_word("nokey") {
            self.named("key")?;
            self.expect('[')?;
            keys.push(self.key_name()?);
            if self.accept(',') {
                keys.push(self.key_name()?);
            }
            self.expect(']')?;
        }
        let len = if self.accept_word("mpcdatalen") { Some(self.int("a length")?) } else { None };
        Ok(Multipath::Capable { version: version.unwrap_or(1), flags: flags as u8, keys, len })
    }

    /// `flags[flag_a, flag_h]`, or a number: the flags A to H from the most significant bit on, and
    /// T in bit 15.
    fn flags_list(&mut self) -> Step<Option<u16>> {
        if !self.accept_word("flags") {
            return Ok(None);
        }
        if !self.accept('[') {
            return self.int::<u8>("flags").map(|flags| Some(flags.into()));
        }
        let mut flags = 0;
        loop {
            let name = self.word("a flag")?;
            flags |= match name.strip_prefix("flag_").and_then(|letter| letter.as_bytes().first()) {
                Some(letter @ b'a'..=b'h') => 0x80 >> (letter - b'a'),
                Some(b't') => 1 << 15,
                _ if name == "no_flags" => 0,
                _ => return Err(Stop::invalid(self.line(), format_args!("`{name}` is not a flag"))),
            };
            if self.accept(']') {
                return Ok(Some(flags));
            }
            self.expect(',')?;
        }
    }

    /// `skey`, or `ckey=2`.
    fn key_name(&mut self) -> Step<KeyName> {
        let name = self.word("the name of a key")?;
        let value = if self.accept('=') { Some(self.int::<i64>("a key")? as u64) } else { None };
        Ok(KeyName { name, value })
    }

    fn dss(&mut self) -> Step<Multipath> {
        let ack = self.data_number("dack")?;
        let dsn = self.data_number("dsn")?;
        let ssn =
            if self.accept_equals("ssn")? { Some(self.int("a subflow sequence number")?) } else { None };
        let len = if self.accept_equals("dll")? { Some(self.int("a length")?) } else { None };
        let checksum = if self.accept_word("nocs") {
            Checksum::None
        } else if self.accept_equals("cksum")? {
            Checksum::Value(self.int("a checksum")?)
        } else {
            Checksum::Right
        };
        Ok(Multipath::Dss { ack, dsn, ssn, len, checksum, fin: self.accept_word("fin") })
    }

    /// `dack4=1` or `dack8=1`, relative to the initial data sequence number: whether it has 8 bytes,
    /// and its value.
    fn data_number(&mut self, name: &str) -> Step<Option<(bool, u64)>> {
        let found = match self.peek() {
            Some(Kind::Word(word)) => match word.strip_prefix(name) {
                Some("4") => false,
                Some("8") => true,
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        self.at += 1;
        if !self.accept('=') {
            return Err(Stop::not_applicable(self.line(), "data sequence numbers without a value"));
        }
        if matches!(self.peek(), Some(Kind::Word(_))) {
            return Err(Stop::not_applicable(self.line(), "data sequence numbers from hashes"));
        }
        Ok(Some((found, self.int::<u32>("a data sequence number")?.into())))
    }

    fn add_address(&mut self) -> Step<Multipath> {
        let id = self.address_id()?;
        self.named("addr")?;
        let address = self.address_name()?;
        let port = if self.accept_equals("port")? { Some(self.int("a port")?) } else { None };
        let echo = self.accept_word("addr_echo");
        let hmac = if echo || self.accept_equals("hmac")? && self.accept_word("auto") {
            None
        } else {
            Some(self.int::<i64>("an HMAC, `hmac=auto` or `addr_echo`")? as u64)
        };
        Ok(Multipath::AddAddress { id, address, port, echo, hmac })
    }

    /// `[saddr1]`, or `[ep=inet_addr("192.0.2.7")]`.
    pub(super) fn address_name(&mut self) -> Step<Named<IpAddr>> {
        self.expect('[')?;
        let name = self.word("the name of an address")?;
        let mut value = None;
        if self.accept('=') {
            self.word("`inet_addr` or `inet6_addr`")?;
            self.expect('(')?;
            let Some(Kind::Text(text)) = self.peek() else { return Err(self.unexpected("an address")) };
            value = text.parse().ok();
            if value.is_none() {
                return Err(self.unexpected("an address"));
            }
            self.at += 1;
            self.expect(')')?;
        }
        self.expect(']')?;
        Ok(Named { name, value })
    }

    fn address_ids(&mut self) -> Step<Vec<u8>> {
        self.named_equals("address_id")?;
        self.expect('[')?;
        let mut ids = Vec::new();
        loop {
            ids.push(self.int("the id of an address")?);
            if self.accept(']') {
                return Ok(ids);
            }
            self.expect(',')?;
        }
    }

    fn backup(&mut self) -> Step<bool> {
        Ok(self.accept_equals("backup")? && self.int::<u8>("0 or 1")? != 0)
    }

    fn address_id(&mut self) -> Step<Option<u8>> {
        if !self.accept_equals("address_id")? || self.accept_word("auto") {
            return Ok(None);
        }
        self.int("the id of an address").map(Some)
    }

    fn nonce(&mut self) -> Step<Option<u32>> {
        if self.accept_equals("rand")? { self.int("a nonce").map(Some) } else { Ok(None) }
    }

    fn token(&mut self) -> Step<Token> {
        if self.accept_word("auto") {
            return Ok(Token::Right);
        }
        if self.accept_word("sha256_32") {
            self.expect('(')?;
            let name = self.word("the name of a key")?;
            self.expect(')')?;
            return Ok(Token::Of(name));
        }
        self.int("a token, `auto` or `sha256_32(KEY)`").map(Token::Value)
    }

    /// The runner computes all HMACs.
    fn sender_hmac(&mut self) -> Step {
        if self.accept_equals("sender_hmac")? && !self.accept_word("auto") {
            return Err(Stop::not_applicable(self.line(), "HMACs other than `auto`"));
        }
        Ok(())
    }

    fn accept_equals(&mut self, name: &str) -> Step<bool> {
        let found = self.accept_word(name);
        if found {
            self.expect('=')?;
        }
        Ok(found)
    }

    fn named_equals(&mut self, name: &str) -> Step {
        self.named(name)?;
        self.expect('=')
    }
}
