//! A connection against a peer that has agreed on the keys and then sends anything, mostly nearly
//! valid segments.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_core::mptcp::{Config, Connection, Event, PathId, Secrets, SubflowId};
use anabranch_core::segment::{
    AddAddr, AddressId, CapableForm, DataSeqNumber, Dss, DssChecksum, Flags, Key, Mapping, MpCapable, MpJoin,
    MpTcpRst, Mptcp, MptcpOption, Options, ResetReason, Segment, SeqNumber, WireDsn,
};
use anabranch_core::tcp::State;
use anabranch_core::time::{Duration, Instant};
use anabranch_packetdrill::secrets;
use arbitrary::{Result, Unstructured};
use bytes::Bytes;

use super::{MAX_STEPS, MAX_TURNS, config, first};
use crate::probe::Probe;
use crate::targets::stream::{octet, survives_the_wire};

pub(super) fn run(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let Some(mut peer) = Peer::begin(octets, probe)? else { return Ok(()) };
    for _ in 0..MAX_STEPS {
        if octets.is_empty() {
            break;
        }
        peer.step(octets, probe)?;
    }
    Ok(())
}

/// What the peer knows of a subflow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Local and remote port of the connection under test.
    ports: (u16, u16),
    /// Our next number, and the first.
    nxt: SeqNumber,
    iss: SeqNumber,
    nonce: u32,
    /// The connection's next number, first number and nonce.
    their_nxt: SeqNumber,
    their_iss: SeqNumber,
    their_nonce: u32,
}

struct Peer {
    now: Instant,
    config: Config,
    connection: Connection,
    /// Our key, and the connection's.
    keys: (Key, Key),
    /// In the order of the subflows' ids.
    flows: Vec<Flow>,
    /// Position in our data.
    position: u64,
    written: u64,
    closed: bool,
    /// The largest buffers so far.
    buffers: (u32, u32),
    /// Whether the connection continues as plain TCP.
    plain: bool,
}

impl Peer {
    fn begin(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<Option<Self>> {
        let config = config(octets)?;
        probe.say(|| format!("{config:?}"));
        let keys = (Key(octets.arbitrary()?), Key(octets.arbitrary()?));
        let secrets = secrets_of(octets, keys.1)?;
        let iss = SeqNumber(octets.arbitrary()?);
        let mut flow = Flow {
            ports: (80, 4000),
            nxt: iss + 1,
            iss,
            nonce: 0,
            their_nxt: secrets.iss + 1,
            their_iss: secrets.iss,
            their_nonce: 0,
        };
        let now = Instant::ZERO;
        let accepts = octets.arbitrary()?;
        let connection = if accepts {
            let mut syn = flow.segment(Flags::SYN);
            syn.seq = iss;
            let option = MptcpOption::MpCapable(capable(octets, CapableForm::Syn)?);
            (syn.mptcp, syn.options) = (Mptcp::only(option), handshake_options(octets)?);
            probe.say(|| format!("< {syn:?}"));
            Connection::accept(now, config, PathId(0), &syn, secrets)
        } else {
            flow.ports = (4000, 80);
            Some(Connection::connect(now, config, PathId(0), flow.ports, secrets))
        };
        let Some(connection) = connection else { return Ok(None) };
        let buffers = (config.tcp.send_buffer, config.tcp.receive_buffer);
        let flows = vec![flow];
        let (position, written, closed, plain) = (0, 0, false, false);
        let mut this =
            Self { now, config, connection, keys, flows, position, written, closed, buffers, plain };
        this.poll(probe);
        if octets.ratio(7, 8)? {
            let form = match accepts {
                true => CapableForm::Ack { sender: keys.0, receiver: keys.1 },
                false => CapableForm::SynAck { sender: keys.0 },
            };
            let flow = this.flows[0];
            let mut segment = flow.segment(Flags::ACK);
            if !accepts {
                (segment.seq, segment.flags) = (flow.iss, Flags::SYN.with(Flags::ACK));
                segment.options = handshake_options(octets)?;
            }
            segment.mptcp = Mptcp::only(MptcpOption::MpCapable(capable(octets, form)?));
            this.deliver(0, segment, probe);
        }
        this.settle(probe);
        Ok(Some(this))
    }

    fn step(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let flow = octets.choose_index(self.flows.len())?;
        match octets.int_in_range(0..=31)? {
            0 => self.now += Duration::from_millis(octets.int_in_range(0..=5_000)?),
            1..=3 => self.now += Duration::from_micros(octets.int_in_range(0..=100_000)?),
            4 | 5 => self.write(octets.int_in_range(0..=5_000)?),
            6 => while self.connection.read(octets.int_in_range(1..=5_000)?).is_some() {},
            7..=9 => self.join(octets, probe)?,
            10 | 11 => self.be_joined(octets, probe)?,
            12 | 13 => self.command(octets)?,
            14..=17 => self.data(flow, octets, probe)?,
            18 | 19 => self.acknowledge(flow, octets, probe)?,
            31 => self.scatter(flow, octets, probe)?,
            _ => {
                let segment = self.any_segment(flow, octets)?;
                self.deliver(flow, segment, probe);
            }
        }
        if octets.ratio(7, 8)? {
            self.settle(probe);
        } else {
            self.check(probe);
        }
        Ok(())
    }

    fn write(&mut self, len: usize) {
        let mut data: Bytes = (0..len).map(|i| octet(self.written as u32 + i as u32)).collect();
        self.written += self.connection.write(&mut data).unwrap_or(0) as u64;
    }

    fn command(&mut self, octets: &mut Unstructured<'_>) -> Result<()> {
        let (now, subflow) = (self.now, SubflowId(octets.choose_index(self.flows.len())? as u16));
        match octets.int_in_range(0..=9)? {
            0 => self.connection.close(now),
            1 if octets.ratio(1, 4)? => self.connection.abort(now),
            2 => self.connection.close_subflow(now, subflow),
            3 => self.connection.set_backup(subflow, octets.arbitrary()?),
            4 => drop(self.connection.remove_address(AddressId(octets.arbitrary()?))),
            5 => {
                let id = AddressId(octets.arbitrary()?);
                self.connection.add_address(now, id, address(octets)?, *octets.choose(&[None, Some(7)])?);
            }
            6 => {
                let size = octets.int_in_range(0..=100_000)?;
                self.buffers.0 = self.buffers.0.max(size);
                self.connection.set_send_buffer(size);
            }
            7 => {
                let size = octets.int_in_range(0..=100_000)?;
                self.buffers.1 = self.buffers.1.max(size);
                self.connection.set_receive_buffer(size);
            }
            _ => {}
        }
        Ok(())
    }

    /// Opens a subflow to the connection, mostly with the right HMAC.
    fn join(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let secrets = secrets_of(octets, Key(0))?;
        let iss = SeqNumber(octets.arbitrary()?);
        let ports = (80, 4001 + self.flows.len() as u16);
        let flow = Flow { ports, nxt: iss + 1, iss, nonce: octets.arbitrary()?, ..self.flows[0] };
        let flow = Flow { their_nxt: secrets.iss + 1, their_iss: secrets.iss, ..flow };
        let mut token = secrets::token(self.keys.1);
        if octets.ratio(1, 16)? {
            token.0 ^= 1;
        }
        let (backup, address) = (octets.arbitrary()?, AddressId(octets.arbitrary::<u8>()? % 4));
        let join = MpJoin::Syn { backup, address, token, nonce: flow.nonce };
        let mut syn = Segment { seq: iss, mptcp: only_join(join), ..flow.segment(Flags::SYN) };
        syn.options = handshake_options(octets)?;
        probe.say(|| format!("< {syn:?}"));
        match self.connection.accept_join(self.now, PathId(1), &syn, AddressId(1), secrets) {
            Ok(id) => {
                assert_eq!(usize::from(id.0), self.flows.len(), "ids are in order");
                self.flows.push(flow);
                self.settle(probe);
            }
            Err(error) => {
                probe.feature(("refused", error as u8));
                return Ok(());
            }
        }
        if octets.ratio(1, 4)? {
            return Ok(());
        }
        let index = self.flows.len() - 1;
        let mut segment = self.flows[index].segment(Flags::ACK);
        segment.mptcp = only_join(MpJoin::Ack { hmac: self.proof(index, octets.ratio(1, 8)?) });
        if octets.ratio(1, 4)? {
            let (dss, payload) = self.mapped(index, octets)?;
            segment.mptcp.set_dss(dss);
            segment.payload = payload;
        }
        self.deliver(index, segment, probe);
        Ok(())
    }

    /// The leftmost 160 bits of our HMAC.
    fn proof(&self, index: usize, wrong: bool) -> [u8; 20] {
        let flow = &self.flows[index];
        let hmac = secrets::join((self.keys.0, flow.nonce), (self.keys.1, flow.their_nonce));
        let mut head: [u8; 20] = hmac[..20].try_into().expect("20 bytes");
        head[3] ^= u8::from(wrong);
        head
    }

    /// The connection opens a subflow, which is mostly answered.
    fn be_joined(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let secrets = secrets_of(octets, Key(0))?;
        let ports = (5000 + self.flows.len() as u16, 80);
        let joined = self.connection.join(self.now, (PathId(2), AddressId(2)), ports, None, secrets);
        if joined.is_err() {
            return Ok(());
        }
        let iss = SeqNumber(octets.arbitrary()?);
        let nonce = octets.arbitrary()?;
        let (their_nxt, their_iss, their_nonce) = (secrets.iss + 1, secrets.iss, secrets.nonce);
        self.flows.push(Flow { ports, nxt: iss + 1, iss, nonce, their_nxt, their_iss, their_nonce });
        self.settle(probe);
        if octets.ratio(1, 4)? {
            return Ok(());
        }
        let index = self.flows.len() - 1;
        let flow = self.flows[index];
        let mut segment = flow.segment(Flags::SYN.with(Flags::ACK));
        (segment.seq, segment.options) = (iss, handshake_options(octets)?);
        if octets.ratio(1, 16)? {
            // A simultaneous open.
            segment.flags = Flags::SYN;
        }
        segment.mptcp = only_join(self.join_answer(index, octets)?);
        self.deliver(index, segment, probe);
        Ok(())
    }

    fn join_answer(&self, index: usize, octets: &mut Unstructured<'_>) -> Result<MpJoin> {
        let flow = &self.flows[index];
        let hmac = secrets::join((self.keys.0, flow.nonce), (self.keys.1, flow.their_nonce));
        let hmac = u64::from_be_bytes(hmac[..8].try_into().expect("8 bytes"));
        let hmac = hmac ^ u64::from(octets.ratio(1, 8)?);
        Ok(MpJoin::SynAck { backup: octets.arbitrary()?, address: AddressId(3), hmac, nonce: flow.nonce })
    }

    /// Data in order with its mapping.
    fn data(&mut self, index: usize, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let (dss, payload) = self.mapped(index, octets)?;
        let mut segment = self.flows[index].segment(Flags::ACK);
        if !self.plain {
            segment.mptcp = Mptcp::dss_only(dss);
        }
        self.flows[index].nxt += payload.len() as u32;
        self.position += payload.len() as u64;
        segment.payload = payload;
        self.deliver(index, segment, probe);
        Ok(())
    }

    fn mapped(&self, index: usize, octets: &mut Unstructured<'_>) -> Result<(Dss, Bytes)> {
        let flow = &self.flows[index];
        let len = octets.int_in_range(1..=1400_u16)?;
        let payload: Bytes = (0..len).map(|i| octet(self.position as u32 + u32::from(i))).collect();
        let dsn = first(self.keys.0) + self.position;
        let subflow_seq = flow.nxt.distance(flow.iss) as u32;
        let mut sum = DssChecksum::new(dsn, subflow_seq, len);
        sum.add(&payload);
        let checksum = (self.config.checksums || octets.arbitrary()?).then(|| sum.value());
        let mapping = Mapping { dsn: wire(octets, dsn)?, subflow_seq, len, checksum };
        let ack = wire(octets, self.data_ack())?;
        Ok((Dss::default().with_data_ack(ack).with_mapping(mapping), payload))
    }

    /// Acknowledges all data that the connection has sent.
    fn acknowledge(&mut self, index: usize, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let mut segment = self.flows[index].segment(Flags::ACK);
        segment.mptcp = Mptcp::dss_only(Dss::default().with_data_ack(wire(octets, self.data_ack())?));
        self.deliver(index, segment, probe);
        Ok(())
    }

    fn data_ack(&self) -> DataSeqNumber {
        first(self.keys.1) + (self.written - self.connection.info().unsent.min(self.written))
    }

    /// Up to thousands of small pieces of data without a mapping, with a gap before each.
    fn scatter(&mut self, index: usize, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let pieces = 1 << octets.int_in_range(0..=12)?;
        let payload = Bytes::from(vec![7; *octets.choose(&[1, 1, 100])?]);
        let ack = wire(octets, self.data_ack())?;
        let mut segment = self.flows[index].segment(Flags::ACK);
        segment.mptcp = Mptcp::dss_only(Dss::default().with_data_ack(ack));
        let before = self.connection.subflows().count();
        for piece in 0..pieces {
            segment.seq += 1;
            self.deliver(index, Segment { payload: payload.clone(), ..segment.clone() }, probe);
            segment.seq += payload.len() as u32;
            self.poll(probe);
            if self.connection.subflows().count() < before {
                // The limit of bytes is far away.
                if piece == 64 {
                    probe.reach("too many pieces without a mapping");
                }
                break;
            }
        }
        Ok(())
    }

    fn any_segment(&self, index: usize, octets: &mut Unstructured<'_>) -> Result<Segment> {
        let flow = &self.flows[index];
        let ack = Flags::ACK;
        let flags = *octets.choose(&[
            ack,
            ack,
            ack,
            ack,
            ack.with(Flags::PSH),
            ack.with(Flags::FIN),
            Flags::RST,
            ack.with(Flags::RST),
            Flags::SYN,
            ack.with(Flags::SYN),
            Flags::default(),
        ])?;
        let near = |octets: &mut Unstructured<'_>, mark: SeqNumber| -> Result<SeqNumber> {
            Ok(match octets.int_in_range(0..=7)? {
                0..=4 => mark,
                5 => mark + u32::from(octets.arbitrary::<u16>()?),
                6 => mark - u32::from(octets.arbitrary::<u8>()?),
                _ => SeqNumber(octets.arbitrary()?),
            })
        };
        let mut segment = flow.segment(flags);
        segment.seq = near(octets, if flags.contains(Flags::SYN) { flow.iss } else { flow.nxt })?;
        segment.ack = near(octets, flow.their_nxt)?;
        segment.window = *octets.choose(&[0, 1, 1000, u16::MAX])?;
        segment.payload = Bytes::from(vec![7; *octets.choose(&[0, 0, 0, 1, 100, 1400])?]);
        for _ in 0..octets.int_in_range(0..=2)? {
            if octets.arbitrary()? {
                segment.mptcp.set_dss(self.any_dss(flow, segment.payload.len(), octets)?);
            } else {
                segment.mptcp.push(self.any_option(index, octets)?);
            }
        }
        Ok(segment)
    }

    fn any_dss(&self, flow: &Flow, len: usize, octets: &mut Unstructured<'_>) -> Result<Dss> {
        let near = |octets: &mut Unstructured<'_>, mark: DataSeqNumber| -> Result<WireDsn> {
            let number = match octets.int_in_range(0..=7)? {
                0..=3 => mark,
                4 => mark + octets.int_in_range(0..=5_000)?,
                5 => mark - octets.int_in_range(0..=5_000)?,
                6 => mark + (1 << octets.int_in_range(28..=63)?),
                _ => DataSeqNumber(octets.arbitrary()?),
            };
            wire(octets, number)
        };
        let mut dss = Dss::default();
        if octets.ratio(3, 4)? {
            dss = dss.with_data_ack(near(octets, self.data_ack())?);
        }
        if octets.ratio(3, 4)? {
            let relative = flow.nxt.distance(flow.iss) as u32;
            let subflow_seq = match octets.int_in_range(0..=3)? {
                0 | 1 => relative,
                2 => relative.wrapping_add(octets.arbitrary::<i16>()? as u32),
                _ => octets.arbitrary()?,
            };
            dss = dss.with_mapping(Mapping {
                dsn: near(octets, first(self.keys.0) + self.position)?,
                subflow_seq,
                len: *octets.choose(&[len as u16, len as u16 + 1, 0, 1, 1400, u16::MAX])?,
                checksum: octets.arbitrary()?,
            });
        }
        Ok(if octets.ratio(1, 8)? { dss.with_data_fin() } else { dss })
    }

    fn any_option(&self, index: usize, octets: &mut Unstructured<'_>) -> Result<MptcpOption> {
        let (ours, theirs) = self.keys;
        let key = |octets: &mut Unstructured<'_>| octets.choose(&[ours, theirs, Key(0)]).copied();
        Ok(match octets.int_in_range(0..=8)? {
            0 => {
                let (sender, receiver) = (key(octets)?, key(octets)?);
                let (len, checksum) = (octets.arbitrary()?, octets.arbitrary()?);
                let form = *octets.choose(&[
                    CapableForm::Syn,
                    CapableForm::SynAck { sender },
                    CapableForm::Ack { sender, receiver },
                    CapableForm::Data { sender, receiver, len, checksum },
                ])?;
                MptcpOption::MpCapable(capable(octets, form)?)
            }
            1 => MptcpOption::MpJoin(MpJoin::Ack { hmac: self.proof(index, octets.ratio(1, 4)?) }),
            2 => MptcpOption::MpJoin(self.join_answer(index, octets)?),
            3 => {
                let (id, address) = (octets.arbitrary()?, address(octets)?);
                let port = *octets.choose(&[None, Some(80)])?;
                let add = AddAddr { id: AddressId(id), address, port, hmac: None };
                let hmac = secrets::address(ours, theirs, &add) ^ u64::from(octets.ratio(1, 8)?);
                MptcpOption::AddAddr(AddAddr { hmac: (!octets.ratio(1, 4)?).then_some(hmac), ..add })
            }
            4 => {
                let ids = octets.arbitrary_len::<u8>()?.clamp(1, 5);
                MptcpOption::RemoveAddr((0..ids as u8).map(AddressId).collect())
            }
            5 => MptcpOption::MpPrio { backup: octets.arbitrary()? },
            6 => MptcpOption::MpFail { dsn: DataSeqNumber(octets.arbitrary()?) },
            7 => MptcpOption::MpFastclose { receiver: key(octets)? },
            _ => MptcpOption::MpTcpRst(MpTcpRst {
                transient: octets.arbitrary()?,
                reason: ResetReason(octets.arbitrary()?),
            }),
        })
    }

    fn deliver(&mut self, index: usize, segment: Segment, probe: &mut Probe) {
        probe.say(|| format!("{} {index} < {segment:?}", self.now));
        self.connection.handle_segment(self.now, SubflowId(index as u16), segment);
    }

    /// Answers timers and takes effects until nothing is left to do at this instant.
    fn settle(&mut self, probe: &mut Probe) {
        for turn in 0.. {
            assert!(turn < 100, "a timer that was answered is still due");
            self.poll(probe);
            if self.connection.next_timeout().is_none_or(|at| at > self.now) {
                break;
            }
            self.connection.handle_timeout(self.now);
        }
        self.check(probe);
    }

    fn poll(&mut self, probe: &mut Probe) {
        for turn in 0.. {
            assert!(turn < MAX_TURNS, "sends without end");
            let Some((id, segment)) = self.connection.poll_transmit(self.now) else { break };
            probe.say(|| format!("{} {} > {segment:?}", self.now, id.0));
            self.check_sent(usize::from(id.0), &segment, probe);
        }
        let mut events = 0;
        while let Some(event) = self.connection.poll_event() {
            probe.say(|| format!("{event:?}"));
            probe.feature(std::mem::discriminant(&event));
            assert!(!self.closed, "{event:?} after the end");
            events += 1;
            match event {
                Event::Closed(reason) => {
                    self.closed = true;
                    probe.feature(("closed", reason as u8));
                }
                Event::FellBack => {
                    self.plain = true;
                    probe.reach("fallback");
                }
                Event::SubflowEstablished(_) => probe.reach("a second subflow"),
                Event::AddressAdded { .. } => probe.reach("an address announced"),
                Event::PeerClosed => probe.reach("the end of the peer's data"),
                _ => {}
            }
        }
        // Two for each id of an address, and a few for each subflow.
        assert!(events < 300 + 4 * self.flows.len(), "{events} events");
    }

    fn check_sent(&mut self, index: usize, segment: &Segment, probe: &mut Probe) {
        survives_the_wire(segment);
        let flow = &mut self.flows[index];
        for option in segment.mptcp.options() {
            probe.feature(("sent", std::mem::discriminant(option)));
            if let MptcpOption::MpJoin(MpJoin::SynAck { nonce, .. } | MpJoin::Syn { nonce, .. }) = option {
                flow.their_nonce = *nonce;
            }
        }
        let relative = segment.seq.distance(flow.their_iss) as u32;
        if segment.seq_end().gt(flow.their_nxt) && !segment.flags.contains(Flags::RST) {
            flow.their_nxt = segment.seq_end();
        }
        if segment.payload.is_empty() {
            return;
        }
        // The bytes of the stream are at their place, whatever the peer says.
        let mapping = segment.mptcp.dss().and_then(Dss::mapping).filter(|mapping| mapping.len > 0);
        let keys = segment.mptcp.options().iter().any(|option| matches!(option, MptcpOption::MpCapable(_)));
        let at = match mapping {
            Some(mapping) => {
                let first = first(self.keys.1);
                mapping.dsn.expand(first).distance(first) as u32
            }
            None => {
                assert!(keys || self.plain || !self.connection.is_multipath(), "data without a mapping");
                relative - 1
            }
        };
        for (i, sent) in segment.payload.iter().enumerate() {
            assert_eq!(*sent, octet(at + i as u32), "byte {at} + {i} of what was written");
        }
    }

    fn check(&self, probe: &mut Probe) {
        let info = self.connection.info();
        assert!(info.buffered <= u64::from(self.buffers.0), "{info:?}");
        // A peer may exceed the window by one buffer, as Linux does.
        let received = 2 * u64::from(self.buffers.1) + (1 << self.config.tcp.window_scale.unwrap_or(0));
        let first = self.connection.subflow_info(SubflowId(0)).map(|s| u64::from(s.tcp.readable));
        assert!(info.readable <= received + first.unwrap_or(0), "{info:?}");
        assert!(info.out_of_order <= received, "{info:?}");
        assert!(info.bytes_acked <= self.written, "{info:?}");
        let alive = self.connection.subflows().count();
        assert!(alive <= usize::from(self.config.max_subflows).max(1), "{alive} subflows");
        if self.closed {
            let reset =
                (0..self.flows.len()).filter_map(|i| self.connection.subflow_info(SubflowId(i as u16)));
            assert!(
                reset.into_iter().all(|s| s.tcp.state == State::Closed || !s.ready),
                "open after the end"
            );
        }
        probe.feature(("state", info.multipath, info.subflows, info.dropped.min(6)));
        probe.feature(("sent", info.reinjections.min(4), (info.bytes_acked / 1000).min(20)));
        probe.feature(("got", info.out_of_order.min(3), (info.bytes_received / 1000).min(20)));
    }
}

impl Flow {
    fn segment(&self, flags: Flags) -> Segment {
        Segment {
            src_port: self.ports.1,
            dst_port: self.ports.0,
            seq: self.nxt,
            ack: self.their_nxt,
            flags,
            window: 10_000,
            ..Segment::default()
        }
    }
}

fn only_join(join: MpJoin) -> Mptcp {
    Mptcp::only(MptcpOption::MpJoin(join))
}

fn secrets_of(octets: &mut Unstructured<'_>, key: Key) -> Result<Secrets> {
    Ok(Secrets { key, nonce: octets.arbitrary()?, iss: SeqNumber(octets.arbitrary()?) })
}

fn capable(octets: &mut Unstructured<'_>, form: CapableForm) -> Result<MpCapable> {
    let odd = octets.ratio(1, 16)?;
    Ok(MpCapable {
        version: if odd { octets.arbitrary::<u8>()? & 15 } else { 1 },
        checksum_required: octets.ratio(1, 4)?,
        extended: odd && octets.arbitrary()?,
        no_joins_here: octets.ratio(1, 8)?,
        hmac_sha256: !odd || octets.arbitrary()?,
        form,
    })
}

fn handshake_options(octets: &mut Unstructured<'_>) -> Result<Options> {
    Ok(Options {
        mss: *octets.choose(&[None, Some(1), Some(1400)])?,
        window_scale: *octets.choose(&[None, Some(0), Some(14)])?,
        sack_permitted: octets.arbitrary()?,
        ..Options::default()
    })
}

fn address(octets: &mut Unstructured<'_>) -> Result<IpAddr> {
    Ok(match octets.arbitrary()? {
        true => Ipv4Addr::from_bits(octets.arbitrary()?).into(),
        false => Ipv6Addr::from_bits(octets.arbitrary()?).into(),
    })
}

fn wire(octets: &mut Unstructured<'_>, number: DataSeqNumber) -> Result<WireDsn> {
    Ok(if octets.arbitrary()? { WireDsn::Short(number.0 as u32) } else { WireDsn::Long(number) })
}
