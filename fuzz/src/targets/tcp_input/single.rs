//! One connection against a peer that says anything, mostly something near the mark.

use anabranch_core::segment::{Ecn, Flags, Options, SackBlock, Segment, SeqNumber, Timestamps};
use anabranch_core::tcp::{Connection, State};
use anabranch_core::time::{Duration, Instant};
use arbitrary::{Result, Unstructured};
use bytes::Bytes;

use super::checked::Checked;
use super::{MAX_STEPS, options};
use crate::probe::Probe;

const LOCAL_PORT: u16 = 7;
const REMOTE_PORT: u16 = 40_000;

pub(super) fn run(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let config = options::config(octets)?;
    probe.say(|| format!("{config:?}"));
    let mut peer = Peer { scales: octets.arbitrary()?, nxt: SeqNumber(octets.arbitrary()?) };
    let iss = SeqNumber(octets.arbitrary()?);
    let mut now = Instant::from_nanos(octets.int_in_range(0..=u64::from(u32::MAX) * 1_000_000)?);
    let connection = if octets.arbitrary()? {
        Connection::connect(now, config, LOCAL_PORT, REMOTE_PORT, iss)
    } else {
        let mut syn = peer.segment(octets, iss, SeqNumber(0))?;
        syn.seq = peer.nxt;
        probe.say(|| format!("accepts {syn:?}"));
        match Connection::accept(now, config, &syn, iss) {
            Some(connection) => {
                peer.nxt = syn.seq + 1;
                connection
            }
            None => return Ok(()),
        }
    };
    let mut connection = Checked::new("it", connection, config, iss, peer.scales);
    for _ in 0..MAX_STEPS {
        step(octets, &mut connection, &mut peer, &mut now, probe)?;
        // Most drivers poll after each call; the contract lets them call several times first.
        if !octets.ratio(1, 4)? {
            connection.poll(now, probe);
        }
    }
    Ok(())
}

fn step(
    octets: &mut Unstructured<'_>,
    connection: &mut Checked,
    peer: &mut Peer,
    now: &mut Instant,
    probe: &mut Probe,
) -> Result<()> {
    match octets.int_in_range(0..=15)? {
        0 => *now += Duration::from_nanos(octets.int_in_range(0..=2_000_000_000)?),
        1 => *now += Duration::from_micros(octets.int_in_range(0..=50_000)?),
        2 | 3 => {
            *now = connection.next_timeout().unwrap_or(*now).max(*now);
            connection.handle_timeout(*now, probe);
        }
        // Early is harmless.
        4 => connection.handle_timeout(*now, probe),
        5 | 6 => {
            let len = octets.int_in_range(0..=5000)?;
            connection.write(Bytes::from(vec![0x5a; len]), probe);
        }
        7 => drop(connection.read(octets.int_in_range(0..=5000)?, probe)),
        8 if octets.ratio(1, 4)? => connection.close(*now, probe),
        9 if octets.ratio(1, 16)? => connection.abort(*now, probe),
        10 => connection.set_receive_buffer(octets.int_in_range(0..=100_000)?, probe),
        11 => {
            let handshake = peer.handshake(octets, connection)?;
            connection.handle_segment(*now, handshake, probe);
        }
        _ => {
            let segment = peer.segment(octets, connection.sent_to, connection.acked)?;
            connection.handle_segment(*now, segment, probe);
        }
    }
    Ok(())
}

/// What the other end would say if it followed the rules, roughly.
struct Peer {
    /// Its SYNs offer window scaling.
    scales: bool,
    nxt: SeqNumber,
}

impl Peer {
    /// The segment that takes the handshake a step further.
    fn handshake(&mut self, octets: &mut Unstructured<'_>, connection: &Checked) -> Result<Segment> {
        let mut segment = self.segment(octets, connection.sent_to, connection.acked)?;
        segment.ack = connection.sent_to;
        if connection.state() == State::SynSent {
            segment.flags = Flags::SYN.with(Flags::ACK);
            segment.options = self.options(octets, true)?;
            segment.payload = Bytes::new();
            segment.seq = self.nxt;
            self.nxt += 1;
        } else {
            segment.flags = Flags::ACK;
            segment.seq = connection.acked;
        }
        Ok(segment)
    }

    fn segment(
        &mut self,
        octets: &mut Unstructured<'_>,
        sent_to: SeqNumber,
        acked: SeqNumber,
    ) -> Result<Segment> {
        let flags = Flags(*octets.choose(&[
            0x10, 0x10, 0x10, 0x10, 0x18, 0x18, 0x11, 0x02, 0x12, 0x04, 0x14, 0x03, 0x13, 0x01, 0x00, 0x3f,
            0x06, 0x52, 0xc2, 0x50, 0x98,
        ])?);
        let seq = near(octets, acked)?;
        let ack = near(octets, sent_to)?;
        let len = *octets.choose(&[0, 0, 0, 1, 2, 100, 536, 1440, 3000])?;
        let is_syn = flags.contains(Flags::SYN);
        Ok(Segment {
            src_port: REMOTE_PORT,
            dst_port: LOCAL_PORT,
            seq,
            ack,
            flags,
            window: *octets.choose(&[0, 1, 100, 1440, 5000, 65535, 65535])?,
            options: self.options(octets, is_syn)?,
            payload: Bytes::from(vec![0xa5; len]),
            ecn: *octets.choose(&[Ecn::NotEct, Ecn::Ect0, Ecn::Ce])?,
            ..Segment::default()
        })
    }

    fn options(&self, octets: &mut Unstructured<'_>, is_syn: bool) -> Result<Options> {
        let bits: u8 = octets.arbitrary()?;
        let mut options = Options::default();
        if bits & 1 != 0 {
            options.timestamps = Some(Timestamps {
                value: octets.arbitrary::<u16>()?.into(),
                echo: octets.arbitrary::<u16>()?.into(),
            });
        }
        if is_syn {
            options.mss = (bits & 2 != 0).then_some(*octets.choose(&[0, 1, 88, 536, 1460, 65535])?);
            options.sack_permitted = bits & 4 != 0;
            options.window_scale = if self.scales { Some(octets.int_in_range(0..=14)?) } else { None };
        } else {
            for _ in 0..(bits >> 3).min(3) % 4 {
                let left = SeqNumber(octets.arbitrary::<u16>()?.into());
                let right = left + octets.arbitrary::<u8>()?.into();
                options.sack.push(SackBlock { left, right });
            }
        }
        Ok(options)
    }
}

/// `mark`, something near it, or anything.
fn near(octets: &mut Unstructured<'_>, mark: SeqNumber) -> Result<SeqNumber> {
    Ok(match octets.int_in_range(0..=7)? {
        0..=3 => mark,
        4 => mark + u32::from(octets.arbitrary::<u8>()?),
        5 => mark - u32::from(octets.arbitrary::<u8>()?),
        6 => mark + octets.arbitrary::<i16>()? as u32,
        _ => SeqNumber(octets.arbitrary()?),
    })
}
