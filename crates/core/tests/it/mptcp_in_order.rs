//! A receiver like that of Linux: data counts on the connection level, and is acknowledged by
//! DATA_ACK, only once it is in order on its subflow. SACK reports it before.

#![allow(unreachable_pub, reason = "its items are named as those of a library")]

use std::collections::BTreeMap;

use anabranch_core::mptcp::PathId;
use anabranch_core::segment::{
    CapableForm, DataSeqNumber, Flags, Key, MpCapable, MptcpOption, Segment, WireDsn,
};
use sha2::{Digest, Sha256};

/// What one end has received, as such a receiver sees it.
#[derive(Debug, Default)]
pub struct InOrder {
    /// By path and port of the client.
    flows: BTreeMap<(PathId, u16), Flow>,
    /// Lower half of the data sequence number of the first byte, once known.
    base: Option<u32>,
    /// Number of bytes in order on the connection level, and the ranges beyond.
    contiguous: u32,
    beyond: BTreeMap<u32, u32>,
}

#[derive(Debug)]
struct Flow {
    isn: u32,
    /// The first missing byte, relative to the initial sequence number.
    next: u32,
    /// Length and data sequence number by relative sequence number.
    held: BTreeMap<u32, (u32, Number)>,
}

#[derive(Clone, Copy, Debug)]
enum Number {
    /// The mapping of a segment with the keys begins with the subflow and with the data.
    Keys,
    Dsn(u32),
}

impl InOrder {
    /// Notes a segment that has arrived.
    pub fn receive(&mut self, flow: (PathId, u16), segment: &Segment) {
        let key = segment.mptcp.options().iter().find_map(|option| match option {
            MptcpOption::MpCapable(MpCapable { form, .. }) => match *form {
                CapableForm::Syn => None,
                CapableForm::SynAck { sender } => Some(sender),
                CapableForm::Ack { sender, .. } | CapableForm::Data { sender, .. } => Some(sender),
            },
            _ => None,
        });
        // RFC 8684 section 3.1: the IDSN is the lower half of the hash; data begins after it.
        if let (Some(Key(key)), None) = (key, self.base) {
            let hash = Sha256::digest(key.to_be_bytes());
            let low = hash.last_chunk().map(|octets| u32::from_be_bytes(*octets));
            self.base = low.map(|low| low.wrapping_add(1));
        }
        if segment.flags.contains(Flags::SYN) {
            let isn = segment.seq.0;
            self.flows.entry(flow).or_insert_with(|| Flow { isn, next: 1, held: BTreeMap::new() });
        }
        let Some(flow) = self.flows.get_mut(&flow).filter(|_| !segment.payload.is_empty()) else { return };
        let (seq, len) = (segment.seq.0.wrapping_sub(flow.isn), segment.payload.len() as u32);
        let number = match segment.mptcp.dss().and_then(|dss| dss.mapping()) {
            Some(mapping) => Number::Dsn(low(mapping.dsn).wrapping_add(seq - mapping.subflow_seq)),
            None => Number::Keys,
        };
        let held = flow.held.entry(seq).or_insert((len, number));
        held.0 = held.0.max(len);
        self.settle();
    }

    /// Takes what is in order on its subflow.
    fn settle(&mut self) {
        for flow in self.flows.values_mut() {
            while let Some(entry) = flow.held.first_entry().filter(|entry| *entry.key() <= flow.next) {
                let offset = match (entry.get().1, self.base) {
                    (Number::Keys, _) => entry.key() - 1,
                    (Number::Dsn(dsn), Some(base)) => dsn.wrapping_sub(base),
                    (Number::Dsn(_), None) => break,
                };
                let (seq, (len, _)) = entry.remove_entry();
                flow.next = flow.next.max(seq + len);
                let end = self.beyond.entry(offset).or_default();
                *end = (*end).max(offset + len);
            }
        }
        while let Some(entry) = self.beyond.first_entry().filter(|entry| *entry.key() <= self.contiguous) {
            self.contiguous = self.contiguous.max(entry.remove());
        }
    }

    /// Reduces the DATA_ACK of a segment to what such a receiver would acknowledge; `received` is
    /// the number of bytes in order of the sender of the segment.
    pub fn acknowledge(&mut self, received: u64, segment: &mut Segment) {
        let Some((dss, ack)) = segment.mptcp.dss().and_then(|dss| Some((*dss, dss.data_ack()?))) else {
            return;
        };
        let received = received as u32;
        let Some(base) = self.base.filter(|_| self.contiguous < received) else { return };
        let reduced = low(ack).wrapping_sub(base).wrapping_sub(self.contiguous);
        let ack = match ack {
            WireDsn::Short(ack) => WireDsn::Short(ack.wrapping_sub(reduced)),
            WireDsn::Long(ack) => WireDsn::Long(DataSeqNumber(ack.0 - u64::from(reduced))),
        };
        segment.mptcp.set_dss(dss.with_data_ack(ack));
    }
}

fn low(number: WireDsn) -> u32 {
    match number {
        WireDsn::Short(low) => low,
        WireDsn::Long(number) => number.0 as u32,
    }
}
