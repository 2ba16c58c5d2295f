//! One connection against a peer that sends anything, mostly nearly valid segments.

use anabranch_core::segment::{Ecn, Flags, Options, SackBlock, Segment, SeqNumber, Timestamps};
use anabranch_core::tcp::{Config, Connection, State};
use anabranch_core::time::{Duration, Instant};
use arbitrary::{Result, Unstructured};
use bytes::Bytes;

use super::checked::{Checked, timestamp};
use super::{MAX_STEPS, options};
use crate::probe::Probe;
use crate::targets::stream::octet;

const LOCAL_PORT: u16 = 7;
const REMOTE_PORT: u16 = 40_000;

pub(super) fn run(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let config = options::config(octets)?;
    probe.say(|| format!("{config:?}"));
    let mut peer = Peer {
        scales: octets.arbitrary()?,
        stamps: octets.arbitrary()?,
        clock: octets.arbitrary()?,
        nxt: SeqNumber(octets.arbitrary()?),
    };
    let iss = SeqNumber(octets.arbitrary()?);
    let mut now = Instant::from_nanos(octets.int_in_range(0..=u64::from(u32::MAX) * 1_000_000)?);
    let connection = Connection::connect(now, config, LOCAL_PORT, REMOTE_PORT, iss);
    let mut connection = Checked::new("it", connection, config, iss, peer.scales);
    if !octets.arbitrary()? {
        let mut syn = peer.segment(octets, now, &connection)?;
        syn.seq = peer.nxt;
        match accept(now, config, &syn, iss, probe) {
            Some(accepted) => connection = accepted,
            None => return Ok(()),
        }
        peer.nxt = syn.seq + 1;
    }
    for _ in 0..MAX_STEPS {
        if octets.is_empty() {
            break;
        }
        step(octets, &mut connection, &mut peer, &mut now, probe)?;
        // Most drivers poll after each call; the contract permits several calls before.
        if !octets.ratio(1, 4)? {
            connection.poll(now, probe);
        }
    }
    Ok(())
}

fn accept(now: Instant, config: Config, syn: &Segment, iss: SeqNumber, probe: &mut Probe) -> Option<Checked> {
    probe.say(|| format!("accepts {syn:?}"));
    let connection = Connection::accept(now, config, syn, iss)?;
    let scales = syn.options.window_scale.is_some();
    Some(Checked::new("it", connection, config, iss, scales).accepted(syn))
}

fn step(
    octets: &mut Unstructured<'_>,
    connection: &mut Checked,
    peer: &mut Peer,
    now: &mut Instant,
    probe: &mut Probe,
) -> Result<()> {
    match octets.int_in_range(0..=31)? {
        0 | 1 => *now += Duration::from_nanos(octets.int_in_range(0..=2_000_000_000)?),
        2 | 3 => *now += Duration::from_micros(octets.int_in_range(0..=50_000)?),
        4..=7 => {
            *now = connection.next_timeout().unwrap_or(*now).max(*now);
            connection.handle_timeout(*now, probe);
        }
        // A call before the deadline is harmless.
        8 => connection.handle_timeout(*now, probe),
        9..=11 => connection.write(octets.int_in_range(0..=5000)?, probe),
        12 => drop(connection.read(octets.int_in_range(0..=5000)?, probe)),
        13 if octets.ratio(1, 2)? => connection.close(*now, probe),
        14 if octets.ratio(1, 16)? => connection.abort(*now, probe),
        15 => connection.set_receive_buffer(octets.int_in_range(0..=100_000)?, probe),
        16 => connection.handle_route_failure(*now, probe),
        17 if octets.ratio(1, 4)? => connection.release(*now, probe),
        18 => match octets.int_in_range(0..=2)? {
            0 => connection.set_send_buffer(octets.int_in_range(0..=100_000)?, probe),
            1 => connection.set_user_timeout(*now, options::user_timeout(octets)?, probe),
            _ => connection.set_keep_alive(*now, options::keep_alive(octets)?, probe),
        },
        19 => {
            let mut syn = peer.segment(octets, *now, connection)?;
            syn.flags = *octets.choose(&[Flags::SYN, Flags::SYN, syn.flags])?;
            syn.options = peer.options(octets, *now, connection, syn.flags.contains(Flags::SYN))?;
            if let Some(least) = connection.give_way(*now, &syn, probe) {
                let config = options::config(octets)?;
                if let Some(next) = accept(*now, config, &syn, least, probe) {
                    (*connection, peer.nxt) = (next, syn.seq + 1);
                }
            }
        }
        20..=24 => {
            let usual = peer.usual(octets, *now, connection)?;
            connection.handle_segment(*now, usual, probe);
        }
        _ => {
            let segment = peer.segment(octets, *now, connection)?;
            connection.handle_segment(*now, segment, probe);
        }
    }
    Ok(())
}

/// Segments that the other end would send if it roughly followed the rules.
struct Peer {
    /// Whether its SYNs offer window scaling.
    scales: bool,
    /// Whether most of its segments have timestamps.
    stamps: bool,
    /// Its timestamp clock minus ours.
    clock: u32,
    nxt: SeqNumber,
}

impl Peer {
    /// The segment that advances the connection: the handshake, then acknowledgements of
    /// everything, then the FIN.
    fn usual(
        &mut self,
        octets: &mut Unstructured<'_>,
        now: Instant,
        connection: &Checked,
    ) -> Result<Segment> {
        let mut segment = self.segment(octets, now, connection)?;
        segment.ack = connection.sent_to;
        if connection.state() == State::SynSent {
            segment.flags =
                Flags::SYN.with(Flags::ACK).with(*octets.choose(&[Flags::default(), Flags::ECE])?);
            segment.options = self.options(octets, now, connection, true)?;
            segment.payload = Bytes::new();
            segment.seq = self.nxt;
            self.nxt += 1;
        } else {
            let closes = matches!(connection.state(), State::FinWait1 | State::FinWait2 | State::Closing);
            segment.flags = if closes { Flags::ACK.with(Flags::FIN) } else { Flags::ACK };
            segment.seq = connection.acked;
            segment.payload = text(segment.seq, segment.payload.len());
            segment.options = self.options(octets, now, connection, false)?;
        }
        Ok(segment)
    }

    fn segment(&self, octets: &mut Unstructured<'_>, now: Instant, connection: &Checked) -> Result<Segment> {
        let flags = Flags(*octets.choose(&[
            0x10, 0x10, 0x10, 0x10, 0x18, 0x18, 0x11, 0x02, 0x12, 0x04, 0x14, 0x03, 0x13, 0x01, 0x00, 0x3f,
            0x06, 0x52, 0xc2, 0x50, 0x98,
        ])?);
        let seq = near(octets, connection.acked)?;
        let ack = match octets.int_in_range(0..=5)? {
            0 | 1 => connection.una(),
            2 | 3 => outstanding(octets, connection)?,
            _ => near(octets, connection.sent_to)?,
        };
        let len = *octets.choose(&[0, 0, 0, 1, 2, 100, 536, 1440, 3000])?;
        let is_syn = flags.contains(Flags::SYN);
        Ok(Segment {
            src_port: REMOTE_PORT,
            dst_port: LOCAL_PORT,
            seq,
            ack,
            flags,
            window: *octets.choose(&[0, 1, 100, 1440, 5000, 65535, 65535])?,
            options: self.options(octets, now, connection, is_syn)?,
            payload: text(seq + u32::from(is_syn), len),
            ecn: *octets.choose(&[Ecn::NotEct, Ecn::Ect0, Ecn::Ce])?,
            ..Segment::default()
        })
    }

    fn options(
        &self,
        octets: &mut Unstructured<'_>,
        now: Instant,
        connection: &Checked,
        is_syn: bool,
    ) -> Result<Options> {
        let mut options = Options::default();
        if self.stamps != octets.ratio(1, 16)? {
            let ours = SeqNumber(timestamp(now));
            let value = octets.choose(&[0, 0, 0, 1, -1])? * i32::from(octets.arbitrary::<u8>()?);
            let echo = match octets.int_in_range(0..=7)? {
                0..=4 => ours - u32::from(octets.arbitrary::<u8>()?),
                5 | 6 => ours - u32::from(octets.arbitrary::<u16>()?),
                _ => near(octets, ours)?,
            };
            let value = timestamp(now).wrapping_add(self.clock).wrapping_add_signed(value);
            options.timestamps = Some(Timestamps { value, echo: echo.0 });
        }
        let bits: u8 = octets.arbitrary()?;
        if is_syn {
            options.mss = (bits & 2 != 0).then_some(*octets.choose(&[0, 1, 88, 536, 1460, 65535])?);
            options.sack_permitted = bits & 12 != 0;
            options.window_scale = if self.scales { Some(octets.int_in_range(0..=14)?) } else { None };
        } else {
            for _ in 0..bits % 4 {
                let left = if bits & 0x70 == 0 {
                    near(octets, connection.una())?
                } else {
                    outstanding(octets, connection)?
                };
                let right = match octets.int_in_range(0..=3)? {
                    0 => left + u32::from(octets.arbitrary::<u8>()?),
                    1 => connection.sent_to,
                    _ => left + u32::from(connection.info().mss),
                };
                options.sack.push(SackBlock { left, right });
            }
        }
        Ok(options)
    }
}

/// A number from SND.UNA to SND.MAX, mostly the end of a segment.
fn outstanding(octets: &mut Unstructured<'_>, connection: &Checked) -> Result<SeqNumber> {
    let una = connection.una();
    let span = connection.sent_to.distance(una).max(0) as u32;
    let unit = if octets.ratio(1, 8)? { 1 } else { u32::from(connection.info().mss) };
    Ok(una + (octets.int_in_range(0..=span / unit)? * unit))
}

/// The peer's data at `seq`.
fn text(seq: SeqNumber, len: usize) -> Bytes {
    (0..len).map(|i| octet((seq + i as u32).0)).collect()
}

/// `mark`, a number near it, or any number.
pub(super) fn near(octets: &mut Unstructured<'_>, mark: SeqNumber) -> Result<SeqNumber> {
    Ok(match octets.int_in_range(0..=7)? {
        0..=3 => mark,
        4 => mark + u32::from(octets.arbitrary::<u8>()?),
        5 => mark - u32::from(octets.arbitrary::<u8>()?),
        6 => mark + octets.arbitrary::<i16>()? as u32,
        _ => SeqNumber(octets.arbitrary()?),
    })
}
