//! Two connections over a network that loses, repeats and reorders, and at the end no longer does: then
//! everything written arrives.

use anabranch_core::segment::{Segment, SeqNumber};
use anabranch_core::tcp::{CloseReason, Config, Connection, State, reset_for};
use anabranch_core::time::{Duration, Instant};
use arbitrary::{Result, Unstructured};
use bytes::Bytes;

use super::checked::Checked;
use super::{MAX_STEPS, options};
use crate::probe::Probe;

pub(super) fn run(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let mut pair = Pair::new(octets, probe)?;
    for _ in 0..MAX_STEPS {
        if pair.step(octets, probe).is_err() {
            break;
        }
    }
    pair.settle(probe);
    Ok(())
}

struct Pair {
    now: Instant,
    ends: [End; 2],
    /// On the way, with the end for which they are; the oldest first.
    network: Vec<(usize, Segment)>,
}

struct End {
    config: Config,
    iss: SeqNumber,
    /// The passive end has none before the first SYN.
    connection: Option<Checked>,
    written: u64,
    read: u64,
    closes: bool,
}

impl Pair {
    fn new(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<Self> {
        let mut end = || -> Result<End> {
            let config = options::config(octets)?;
            probe.say(|| format!("{config:?}"));
            let iss = SeqNumber(octets.arbitrary()?);
            Ok(End { config, iss, connection: None, written: 0, read: 0, closes: false })
        };
        let mut ends = [end()?, end()?];
        let scale = ends[1].config.window_scale.is_some();
        let [active, _] = &mut ends;
        let connection = Connection::connect(Instant::ZERO, active.config, 40_000, 7, active.iss);
        active.connection = Some(Checked::new("a", connection, active.config, active.iss, scale));
        Ok(Self { now: Instant::ZERO, ends, network: Vec::new() })
    }

    fn step(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let who = usize::from(octets.arbitrary::<bool>()?);
        let now = self.now;
        match octets.int_in_range(0..=15)? {
            0 => self.now += Duration::from_micros(octets.int_in_range(0..=3_000_000)?),
            1 => self.now += Duration::from_micros(octets.int_in_range(0..=20_000)?),
            2 => drop(self.time_out(probe)),
            3 | 4 => {
                let len = octets.int_in_range(0..=8000)?;
                self.ends[who].write(len, probe);
            }
            5 => self.ends[who].read(octets.int_in_range(0..=8000)?, probe),
            6 if octets.ratio(1, 6)? => self.ends[who].close(now, probe),
            7 if octets.ratio(1, 60)? => {
                if let Some(connection) = &mut self.ends[who].connection {
                    connection.abort(now, probe);
                }
            }
            8 => {
                let buffer = octets.int_in_range(0..=50_000)?;
                if let Some(connection) = &mut self.ends[who].connection {
                    connection.set_receive_buffer(buffer, probe);
                }
            }
            9 if !self.network.is_empty() => {
                let lost = self.network.remove(octets.choose_index(self.network.len())?);
                probe.say(|| format!("lost: {:?} seq {}", lost.1.flags, lost.1.seq));
            }
            10 if !self.network.is_empty() => {
                let twice = self.network[octets.choose_index(self.network.len())?].clone();
                self.network.push(twice);
            }
            11 if !self.network.is_empty() => {
                let at = octets.choose_index(self.network.len())?;
                self.deliver(at, probe);
            }
            _ if !self.network.is_empty() => self.deliver(0, probe),
            _ => {}
        }
        if !octets.ratio(1, 8)? {
            self.poll(probe);
        }
        Ok(())
    }

    fn deliver(&mut self, at: usize, probe: &mut Probe) {
        let (to, segment) = self.network.remove(at);
        let other_scales = self.ends[0].config.window_scale.is_some();
        let end = &mut self.ends[to];
        match &mut end.connection {
            Some(connection) if connection.state() != State::Closed => {
                connection.handle_segment(self.now, segment, probe);
            }
            Some(_) => self.network.extend(reset_for(&segment).map(|reset| (1 - to, reset))),
            None => match Connection::accept(self.now, end.config, &segment, end.iss) {
                Some(connection) => {
                    end.connection = Some(Checked::new("b", connection, end.config, end.iss, other_scales));
                }
                None => self.network.extend(reset_for(&segment).map(|reset| (1 - to, reset))),
            },
        }
    }

    fn poll(&mut self, probe: &mut Probe) {
        for (who, end) in self.ends.iter_mut().enumerate() {
            if let Some(connection) = &mut end.connection {
                let segments = connection.poll(self.now, probe);
                self.network.extend(segments.into_iter().map(|segment| (1 - who, segment)));
            }
        }
        let [a, b] = &self.ends;
        probe.feature(("pair", a.state(), b.state()));
    }

    /// Jumps to the next time-out and answers it; false if there is none.
    fn time_out(&mut self, probe: &mut Probe) -> bool {
        let connections = self.ends.iter().filter_map(|end| end.connection.as_ref());
        let Some(next) = connections.filter_map(Checked::next_timeout).min() else { return false };
        self.now = self.now.max(next);
        for end in &mut self.ends {
            if let Some(connection) = &mut end.connection
                && connection.next_timeout().is_some_and(|at| at <= self.now)
            {
                connection.handle_timeout(self.now, probe);
            }
        }
        true
    }

    /// The network is perfect from here on, and both ends read what they get.
    fn settle(&mut self, probe: &mut Probe) {
        probe.say(|| "the network is perfect from here on");
        for end in &mut self.ends {
            // Also of a connection that is still to be made.
            end.config.receive_buffer = 100_000;
            if let Some(connection) = &mut end.connection {
                connection.set_receive_buffer(100_000, probe);
            }
        }
        let longest = self.ends.each_ref().map(|end| end.config.rto.max.max(end.config.rto.initial));
        let patience = longest[0].max(longest[1]) * 4;
        let (mut idle, mut last, mut since) = (0, None, self.now);
        while idle < MAX_IDLE_ROUNDS || self.now.saturating_since(since) < patience {
            self.ends.iter_mut().for_each(|end| end.read(usize::MAX, probe));
            self.poll(probe);
            if self.is_settled() {
                break;
            }
            let progress = Some(self.ends.each_ref().map(End::progress));
            idle += 1;
            if progress != last {
                (idle, last, since) = (0, progress, self.now);
            }
            if self.network.is_empty() && !self.time_out(probe) {
                break;
            }
            self.now += Duration::from_millis(1);
            for _ in 0..self.network.len() {
                self.deliver(0, probe);
                self.poll(probe);
            }
        }
        self.judge(probe);
    }

    /// All that was written is read, and every FIN has arrived.
    fn is_settled(&self) -> bool {
        let [a, b] = &self.ends;
        let done = |from: &End, to: &End| from.written == to.read && (!from.closes || to.peer_closed());
        self.network.is_empty() && done(a, b) && done(b, a)
    }

    fn judge(&self, probe: &mut Probe) {
        let [a, b] = &self.ends;
        let broken = |end: &End| match &end.connection {
            // A connection that was never opened has nothing to deliver.
            None => true,
            Some(connection) => connection.closed.is_some_and(|reason| reason != CloseReason::Graceful),
        };
        if broken(a) || broken(b) {
            return probe.feature(("broken", a.state(), b.state()));
        }
        for (from, to) in [(a, b), (b, a)] {
            let states = (from.state(), to.state());
            assert_eq!(to.read, from.written, "octets read of those written; states {states:?}");
            assert!(!from.closes || to.peer_closed(), "the FIN never arrives; states {states:?}");
        }
        let retransmissions = |end: &End| end.connection.as_ref().map(|it| it.info().retransmissions.min(20));
        probe.feature(("settled", retransmissions(a), retransmissions(b)));
    }
}

impl End {
    fn state(&self) -> Option<u8> {
        self.connection.as_ref().map(|connection| connection.state() as u8)
    }

    /// What changes when things move.
    fn progress(&self) -> Option<(State, u64, u64)> {
        let info = self.connection.as_ref()?.info();
        Some((info.state, info.bytes_acked, info.bytes_received))
    }

    fn peer_closed(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.peer_closed)
    }

    fn write(&mut self, len: usize, probe: &mut Probe) {
        let Some(connection) = &mut self.connection else { return };
        let most = MOST_WRITTEN.min(MOST_SEGMENTS * u64::from(connection.info().mss));
        let end = most.min(self.written + len as u64).max(self.written);
        let octets: Bytes = (self.written..end).map(octet).collect();
        self.written += connection.write(octets, probe) as u64;
    }

    fn read(&mut self, max: usize, probe: &mut Probe) {
        let Some(connection) = &mut self.connection else { return };
        let mut left = max;
        while let Some(octets) = connection.read(left, probe) {
            for got in &octets {
                assert_eq!(*got, octet(self.read), "octet {} of the stream", self.read);
                self.read += 1;
            }
            left -= octets.len();
        }
    }

    fn close(&mut self, now: Instant, probe: &mut Probe) {
        let Some(connection) = &mut self.connection else { return };
        connection.close(now, probe);
        self.closes = true;
    }
}

/// The octet at `at` of what either end writes.
fn octet(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// A round is a round trip or a time-out, and without loss each brings something new.
const MAX_IDLE_ROUNDS: usize = 200;
/// No end writes more, in octets, so that a run stays short.
const MOST_WRITTEN: u64 = 30_000;
/// Nor more, in segments.
const MOST_SEGMENTS: u64 = 100;
