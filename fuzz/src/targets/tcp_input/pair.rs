//! Two connections over a network that loses, duplicates and reorders, and at the end no longer
//! does: then everything written must arrive.

use anabranch_core::segment::{Ecn, Flags, Segment, SeqNumber};
use anabranch_core::tcp::{CloseReason, Config, Connection, State, reset_for};
use anabranch_core::time::{Duration, Instant};
use arbitrary::{Result, Unstructured};

use super::checked::Checked;
use super::single::near;
use super::{MAX_STEPS, options};
use crate::probe::Probe;

pub(super) fn run(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let mut pair = Pair::new(octets, probe)?;
    for _ in 0..MAX_STEPS {
        if octets.is_empty() || pair.step(octets, probe).is_err() {
            break;
        }
    }
    pair.settle(probe);
    Ok(())
}

struct Pair {
    now: Instant,
    ends: [End; 2],
    /// Segments on the way with the end that they are for, oldest first.
    network: Vec<(usize, Segment)>,
}

struct End {
    config: Config,
    iss: SeqNumber,
    /// The passive end has none before the first SYN.
    connection: Option<Checked>,
    closes: bool,
}

impl Pair {
    fn new(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<Self> {
        let mut end = || -> Result<End> {
            let config = options::config(octets)?;
            probe.say(|| format!("{config:?}"));
            let iss = SeqNumber(octets.arbitrary()?);
            Ok(End { config, iss, connection: None, closes: false })
        };
        let ends = [end()?, end()?];
        let mut this = Self { now: Instant::ZERO, ends, network: Vec::new() };
        this.connect(0);
        if octets.ratio(1, 8)? {
            // A simultaneous open.
            this.connect(1);
        }
        Ok(this)
    }

    fn connect(&mut self, who: usize) {
        let scale = self.ends[1 - who].config.window_scale.is_some();
        let (end, ports) = (&mut self.ends[who], [40_000, 7]);
        let connection = Connection::connect(self.now, end.config, ports[who], ports[1 - who], end.iss);
        let checked = Checked::new(NAMES[who], connection, end.config, end.iss, scale);
        end.connection = Some(checked.receiving_stream());
    }

    fn step(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let who = usize::from(octets.arbitrary::<bool>()?);
        match octets.int_in_range(0..=31)? {
            0 => self.now += Duration::from_micros(octets.int_in_range(0..=3_000_000)?),
            1 | 2 => self.now += Duration::from_micros(octets.int_in_range(0..=20_000)?),
            3 | 4 => drop(self.time_out(probe)),
            5..=7 => self.ends[who].write(octets.int_in_range(0..=8000)?, probe),
            8 => self.ends[who].read(octets.int_in_range(0..=8000)?, probe),
            9 | 10 => self.command(who, octets, probe)?,
            11..=18 if !self.network.is_empty() => self.disturb(octets, probe)?,
            19 => self.reopen(who, octets, probe)?,
            20 | 21 => self.exchange(octets, probe)?,
            _ if !self.network.is_empty() => self.deliver(0, probe),
            _ => {}
        }
        if !octets.ratio(1, 8)? {
            self.poll(probe);
        }
        Ok(())
    }

    /// A command of an end's owner, or an action of the network.
    fn command(&mut self, who: usize, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let (now, end) = (self.now, &mut self.ends[who]);
        let Some(connection) = &mut end.connection else { return Ok(()) };
        match octets.int_in_range(0..=15)? {
            0 | 1 => {
                connection.close(now, probe);
                end.closes = true;
            }
            2 if octets.ratio(1, 4)? => connection.abort(now, probe),
            3 if octets.ratio(1, 2)? => {
                connection.release(now, probe);
                end.closes = true;
            }
            4 | 5 => connection.set_receive_buffer(octets.int_in_range(0..=50_000)?, probe),
            6 => connection.set_receive_buffer(0, probe),
            7 => connection.set_send_buffer(octets.int_in_range(0..=50_000)?, probe),
            8 if octets.ratio(1, 2)? => {
                connection.set_user_timeout(now, options::user_timeout(octets)?, probe)
            }
            9 => connection.set_keep_alive(now, options::keep_alive(octets)?, probe),
            10..=13 => connection.handle_route_failure(now, probe),
            _ => {}
        }
        Ok(())
    }

    /// The network disturbs one of the segments on the way.
    fn disturb(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let at = octets.choose_index(self.network.len())?;
        let (to, segment) = &mut self.network[at];
        let (to, seq) = (*to, segment.seq);
        let what = match octets.int_in_range(0..=9)? {
            0 | 1 => {
                self.network.remove(at);
                "lost"
            }
            2 => {
                let twice = self.network[at].clone();
                self.network.push(twice);
                "repeated"
            }
            3..=5 if segment.ecn != Ecn::NotEct => {
                segment.ecn = Ecn::Ce;
                "marked"
            }
            // Rare, since a window that the peer never advertised may delay the connection for
            // long.
            6 if octets.ratio(1, 4)? && !segment.flags.contains(Flags::SYN) => {
                segment.window = segment.window.min(octets.int_in_range(0..=2000)?);
                "window shrunk"
            }
            7 if segment.payload.len() > 1 && !segment.flags.contains(Flags::SYN) => {
                let len = 1 + octets.choose_index(segment.payload.len() - 1)?;
                let mut rest = segment.clone();
                rest.payload = segment.payload.split_off(len);
                rest.seq += len as u32;
                segment.flags = segment.flags.without(Flags::FIN);
                self.network.insert(at + 1, (to, rest));
                "split"
            }
            _ => {
                self.deliver(at, probe);
                return Ok(());
            }
        };
        probe.say(|| format!("{what}: seq {seq} to {}", NAMES[to]));
        Ok(())
    }

    /// A round trip without disturbance, in which both ends may write and read, so that a
    /// connection progresses in few steps.
    fn exchange(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        self.now += Duration::from_micros(octets.int_in_range(0..=300_000)?);
        for end in &mut self.ends {
            end.write(octets.int_in_range(0..=4000)?, probe);
            end.read(usize::MAX, probe);
        }
        self.poll(probe);
        for _ in 0..self.network.len() {
            self.deliver(0, probe);
        }
        Ok(())
    }

    /// Opens a new connection from a closed end to the other, which is in TIME-WAIT or listens.
    fn reopen(&mut self, who: usize, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let [ours, theirs] = [who, 1 - who].map(|who| self.ends[who].connection.as_ref());
        let Some(ours) = ours.filter(|ours| ours.state() == State::Closed) else { return Ok(()) };
        let listens = match theirs.map(Checked::state) {
            Some(State::TimeWait) => false,
            Some(State::Closed) => true,
            _ => return Ok(()),
        };
        let iss = near(octets, ours.sent_to)?;
        probe.say(|| format!("{} {}: connects again", self.now, NAMES[who]));
        if listens {
            // Without TIME-WAIT nothing protects from segments of the previous connection.
            self.network.clear();
            let other = &mut self.ends[1 - who];
            (other.connection, other.closes) = (None, false);
        }
        (self.ends[who].iss, self.ends[who].closes) = (iss, false);
        self.connect(who);
        Ok(())
    }

    fn deliver(&mut self, at: usize, probe: &mut Probe) {
        let (to, segment) = self.network.remove(at);
        let now = self.now;
        let end = &mut self.ends[to];
        match &mut end.connection {
            Some(connection) if connection.state() == State::TimeWait => {
                match connection.give_way(now, &segment, probe) {
                    Some(least) => {
                        end.iss = if end.iss.ge(least) { end.iss } else { end.iss + (1 << 31) };
                        self.accept(to, &segment);
                    }
                    None => connection.handle_segment(now, segment, probe),
                }
            }
            Some(connection) if connection.state() != State::Closed => {
                connection.handle_segment(now, segment, probe);
            }
            Some(_) => self.network.extend(reset_for(&segment).map(|reset| (1 - to, reset))),
            None => self.accept(to, &segment),
        }
    }

    fn accept(&mut self, who: usize, segment: &Segment) {
        let end = &mut self.ends[who];
        match Connection::accept(self.now, end.config, segment, end.iss) {
            Some(connection) => {
                let scales = segment.options.window_scale.is_some();
                let checked = Checked::new(NAMES[who], connection, end.config, end.iss, scales);
                end.connection = Some(checked.accepted(segment).receiving_stream());
                end.closes = false;
            }
            None => self.network.extend(reset_for(segment).map(|reset| (1 - who, reset))),
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

    /// Advances to the next time-out and handles it; false if there is none.
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

    /// The network is perfect from now on, and both ends read what they receive.
    fn settle(&mut self, probe: &mut Probe) {
        probe.say(|| "the network is perfect from here on");
        for end in &mut self.ends {
            // Also for a connection that is still to be made.
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

    /// Whether everything written was read and every FIN has arrived.
    fn is_settled(&self) -> bool {
        let [a, b] = &self.ends;
        let done = |from: &End, to: &End| from.written() == to.got() && (!from.closes || to.peer_closed());
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
            assert_eq!(to.got(), from.written(), "octets read of those written; states {states:?}");
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

    /// State and counters that change with progress.
    fn progress(&self) -> Option<(State, u64, u64)> {
        let info = self.connection.as_ref()?.info();
        Some((info.state, info.bytes_acked, info.bytes_received))
    }

    fn peer_closed(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.peer_closed)
    }

    fn written(&self) -> u64 {
        self.connection.as_ref().map_or(0, |connection| connection.written)
    }

    /// Bytes read, or received where no application reads any more.
    fn got(&self) -> u64 {
        self.connection.as_ref().map_or(0, |connection| match connection.released {
            true => connection.info().bytes_received,
            false => connection.read,
        })
    }

    fn write(&mut self, len: usize, probe: &mut Probe) {
        let Some(connection) = &mut self.connection else { return };
        let most = MOST_WRITTEN.min(MOST_SEGMENTS * u64::from(connection.info().mss));
        connection.write(len.min(most.saturating_sub(connection.written) as usize), probe);
    }

    fn read(&mut self, max: usize, probe: &mut Probe) {
        let Some(connection) = &mut self.connection else { return };
        let mut left = max;
        while let Some(len) = connection.read(left, probe) {
            left -= len;
        }
    }
}

const NAMES: [&str; 2] = ["a", "b"];
/// Limit on rounds without progress. A round is a round trip or a time-out, and without loss each
/// makes progress.
const MAX_IDLE_ROUNDS: usize = 200;
/// Limit on the bytes that an end writes, to keep a run short.
const MOST_WRITTEN: u64 = 30_000;
/// Limit on the segments that an end writes.
const MOST_SEGMENTS: u64 = 100;
