//! IEEE 802.15.4: a channel that stations share.
//!
//! The radio handles a frame as its length, its destination and an opaque tag. It is driven like
//! the core. [`Radio::send`] takes a frame, and [`Radio::handle_event`] an event that the radio has
//! put into the [`Agenda`]. After each of them, [`Radio::poll_effect`] returns the effects, until
//! it returns `None`.
//!
//! Code map: [`phy`] has times and sizes, `mac` CSMA-CA, `csl` sleep, [`energy`] power consumption,
//! [`config`] the options, [`metrics`] counters. Propagation and reception are in [`crate::air`].
//! `docs/reference/radio.md` lists the values with their sources.
//!
//! ```
//! use anabranch_core::time::Instant;
//! use anabranch_sim::event::{Agenda, Event};
//! use anabranch_sim::radio::{Effect, Outcome, Outgoing, Position, Radio, RadioConfig, Station};
//! use anabranch_sim::random::Stream;
//!
//! let positions = [Position::new(0.0, 0.0), Position::new(80.0, 0.0)];
//! let stream = |s: Station, purpose: &str| Stream::new(1, 0, &format!("radio {}", s.0), purpose);
//! let mut radio = Radio::new(RadioConfig::o_qpsk(100.0), &positions, stream)?;
//! let mut agenda = Agenda::default();
//! let frame = Outgoing { to: Some(Station(1)), psdu_len: 127, tag: 7, pending: false };
//! radio.send(Instant::ZERO, Station(0), frame, &mut agenda)?;
//! let mut outcomes = Vec::new();
//! while let Some((now, event)) = agenda.pop() {
//!     if let Event::Medium { station, what, generation, .. } = event {
//!         radio.handle_event(now, station, what, generation, &mut agenda);
//!     }
//!     while let Some(effect) = radio.poll_effect() {
//!         if let Effect::Done { outcome, .. } = effect {
//!             outcomes.push(outcome);
//!         }
//!     }
//! }
//! assert_eq!(outcomes, [Outcome::Acknowledged]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Limits
//!
//! One channel; no beacons, guaranteed time slots, security or scanning. There is no fading over
//! time. Signals propagate without delay: at 300 m it would be a microsecond. An acknowledgement is
//! attributed to its sender, although it does not contain the sender's address. A frame that begins
//! exactly when another ends may be missed by a receiver of the other. Interference counts as noise
//! of the same power; [`LogDistance::co_channel_rejection_db`] can make it stronger.

pub mod config;
mod csl;
pub mod energy;
mod mac;
pub mod metrics;
pub mod phy;
mod state;

use std::collections::VecDeque;

use anabranch_core::time::{Duration, Instant};

use crate::event::Agenda;
use crate::packet::MediumId;
use crate::random::Stream;

pub use crate::air::Station;
pub use crate::air::error::{ConfigError, SendError};
pub use crate::air::geometry::{LinkMetrics, Position};
pub use crate::air::meter::{EnergyUse, RadioState, StateTime};
pub use crate::air::modulation::Modulation;
pub use crate::air::motion::Mover;
pub use crate::air::propagation::{Capture, CcaMode, LogDistance, Propagation, UnitDisk};
pub use anabranch_wire::ieee802154::Csl;
pub use anabranch_wire::ieee802154::Fcs;
pub use config::{CslConfig, MacConfig, RadioConfig};
pub use energy::PowerConfig;
pub use metrics::StationMetrics;
pub use phy::PhyConfig;

use crate::air::geometry::Neighbours;
use crate::air::medium::{Medium, Reception, Rules, Spoils};
use crate::air::propagation::DECODABLE;
use csl::Listener;
use mac::Mac;

/// Medium id of this radio's events.
pub(crate) const MEDIUM: MediumId = MediumId(1);

/// A frame to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Destination, which acknowledges the frame; `None` for a broadcast, which is not
    /// acknowledged.
    pub to: Option<Station>,
    /// Length of the PSDU in bytes, including MAC header and FCS.
    pub psdu_len: u16,
    /// Identifier for the caller.
    pub tag: u64,
    /// Whether another frame to the same station follows immediately. A sleeping station then stays
    /// awake for it.
    pub pending: bool,
}

/// Result of sending a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was acknowledged.
    Acknowledged,
    /// It was broadcast.
    Sent,
    /// No acknowledgement arrived after any of the attempts. The frame may have been received all
    /// the same.
    NoAck,
    /// The channel was busy at macMaxCsmaBackoffs + 1 successive assessments.
    ChannelAccessFailure,
    /// The station went down.
    Down,
}

/// Kind of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameKind {
    /// A frame from a caller.
    Data {
        /// Frame version: 2 if it requests an enhanced acknowledgement.
        version: u8,
        /// Whether it announces another frame to the same station.
        pending: bool,
    },
    /// An acknowledgement; an enhanced one contains the time of its sender's next sample.
    Ack(Option<Csl>),
    /// A wake-up frame. Its rendezvous time is the time from its end to the announced frame, in
    /// units of 10 symbols.
    Wakeup {
        /// The rendezvous time.
        rendezvous: u16,
    },
}

/// An effect of the radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// A frame has been received for the first time.
    Received {
        /// Receiving station.
        at: Station,
        /// Sending station.
        from: Station,
        /// The sender's tag of the frame.
        tag: u64,
        /// Length of its PSDU in bytes.
        psdu_len: u16,
        /// Link quality, 0 to 255.
        lqi: u8,
        /// Received power in dBm; `None` with the unit disk model.
        rssi_dbm: Option<i16>,
    },
    /// A frame is finished and the station can take the next one. Every accepted frame has exactly
    /// one such effect.
    Done {
        /// The station.
        station: Station,
        /// Tag of the frame.
        tag: u64,
        /// Its result.
        outcome: Outcome,
        /// Number of transmissions of the frame.
        attempts: u8,
    },
    /// A transmission has ended. Reported only after [`Radio::show_frames`].
    Frame {
        /// Start of the preamble.
        start: Instant,
        /// End of the frame.
        end: Instant,
        /// Sending station.
        from: Station,
        /// Destination; `None` for a broadcast.
        to: Option<Station>,
        /// Sequence number in the frame.
        seq: u8,
        /// Length of its PSDU in bytes.
        psdu_len: u16,
        /// The sender's tag; for an acknowledgement, the tag of the acknowledged frame.
        tag: u64,
        /// Kind of the frame.
        kind: FrameKind,
        /// Whether the frame was cut off because its sender went down.
        cut: bool,
        /// Number of destination stations that have received it.
        receivers: u32,
    },
}

/// A channel with all stations on it.
#[derive(Debug)]
pub struct Radio {
    phy: PhyConfig,
    mac: MacConfig,
    power: PowerConfig,
    medium: Medium,
    macs: Vec<Mac>,
    csl: Option<CslConfig>,
    /// Number of stations that sleep.
    sleepers: u32,
    effects: VecDeque<Effect>,
    shows_frames: bool,
    /// Receptions of the frame that ends at this time; empty otherwise.
    receptions: Vec<Reception>,
}

impl Radio {
    /// A channel with stations at these positions, all up and listening from time zero. `stream`
    /// makes the random stream of a station for a purpose.
    pub fn new(
        config: RadioConfig,
        positions: &[Position],
        stream: impl Fn(Station, &str) -> Stream,
    ) -> Result<Self, ConfigError> {
        Self::with_movers(config, positions, Vec::new(), stream)
    }

    /// A channel with moving stations. A mover replaces the position with the same number. The cost
    /// of a frame is proportional to the number of stations, and memory grows with its square.
    pub fn with_movers(
        config: RadioConfig,
        positions: &[Position],
        movers: Vec<(Station, Mover)>,
        stream: impl Fn(Station, &str) -> Stream,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let neighbours = match movers.is_empty() {
            true => Neighbours::new(&config.propagation, positions, &stream)?,
            false => Neighbours::moving(config.propagation, positions, movers, &stream)?,
        };
        let rules = Rules::of(&config.propagation, config.phy.coding());
        let medium = Medium::new(rules, neighbours, &stream);
        let listener = |i| config.csl.map(|csl| Box::new(Listener::new(&csl, stream(Station(i), "csl"))));
        let mac = |i| Mac::new(stream(Station(i), "mac"), listener(i));
        let macs = (0..positions.len() as u32).map(mac).collect();
        Ok(Self {
            csl: config.csl,
            sleepers: 0,
            phy: config.phy,
            mac: config.mac,
            power: config.power,
            medium,
            macs,
            effects: VecDeque::new(),
            shows_frames: false,
            receptions: Vec::new(),
        })
    }

    /// Sets the loss probability of one direction of a pair, 0 to 1, which replaces that of
    /// [`UnitDisk`]; acknowledgements use the other direction. Returns false if nothing is received
    /// in this direction.
    pub fn set_loss(&mut self, from: Station, to: Station, loss: f64) -> bool {
        let Some(link) = self.link(from, to) else { return false };
        self.medium.neighbours.links[link].loss = loss;
        true
    }

    /// Enables [`Effect::Frame`] for every frame from now on.
    pub fn show_frames(&mut self) {
        self.shows_frames = true;
    }

    /// Gives a station a frame to send. A station takes the next frame only after [`Effect::Done`].
    pub fn send(
        &mut self,
        now: Instant,
        station: Station,
        frame: Outgoing,
        agenda: &mut Agenda,
    ) -> Result<(), SendError> {
        self.submit(now, station, frame, false, agenda)
    }

    /// Sends the last frame of the station again, like [`Radio::send`]. The frame keeps its
    /// sequence number, so a station that has received it treats it as a duplicate.
    pub fn send_again(
        &mut self,
        now: Instant,
        station: Station,
        frame: Outgoing,
        agenda: &mut Agenda,
    ) -> Result<(), SendError> {
        self.submit(now, station, frame, true, agenda)
    }

    fn submit(
        &mut self,
        now: Instant,
        station: Station,
        frame: Outgoing,
        again: bool,
        agenda: &mut Agenda,
    ) -> Result<(), SendError> {
        let mac = self.macs.get(station.0 as usize).ok_or(SendError::NoSuchStation)?;
        let max = self.phy.max_psdu;
        match frame {
            Outgoing { psdu_len: 0, .. } => return Err(SendError::Empty),
            Outgoing { psdu_len: len, .. } if len > max => return Err(SendError::TooLong { len, max }),
            Outgoing { to: Some(to), .. } if to == station || to.0 as usize >= self.macs.len() => {
                return Err(SendError::NoSuchStation);
            }
            Outgoing { .. } => {}
        }
        if !mac.is_up() {
            return Err(SendError::Down);
        }
        if !mac.is_idle() {
            return Err(SendError::Busy);
        }
        self.accept(now, station.0, frame, again, agenda);
        Ok(())
    }

    /// Handles an [`crate::event::Event::Medium`], unless it is void.
    pub fn handle_event(
        &mut self,
        now: Instant,
        station: u32,
        what: u32,
        generation: u32,
        agenda: &mut Agenda,
    ) {
        self.alarm(now, station, what, generation, agenda);
    }

    /// Takes a station down or up. While down, it neither sends nor receives; the frame that it was
    /// sending is cut off and ends with [`Outcome::Down`].
    pub fn set_up(&mut self, now: Instant, station: Station, up: bool, agenda: &mut Agenda) {
        match (self.macs[station.0 as usize].is_up(), up) {
            (true, false) => self.go_down(now, station.0),
            (false, true) => self.come_up(now, station.0, agenda),
            (true, true) | (false, false) => {}
        }
    }

    /// One more jammer begins, or one ends, at a station. Until the last one ends, every CCA of the
    /// station finds a busy channel, and it receives no frame.
    pub fn jam(&mut self, now: Instant, station: Station, begins: bool) {
        self.medium.jam(now, station.0, begins);
    }

    /// Sets the macCslPeriod of a station before [`Radio::start`]; zero if it never sleeps.
    ///
    /// # Errors
    ///
    /// If there is no [`RadioConfig::csl`], or if the period exceeds its `max_period` or does not
    /// exceed the duration of a sample.
    pub fn set_csl_period(&mut self, station: Station, period: Duration) -> Result<(), ConfigError> {
        let csl = self.csl.ok_or(ConfigError::Range("csl_period", "nothing, without `csl`"))?;
        csl.check_period(period)?;
        if let Some(listener) = &mut self.macs[station.0 as usize].csl {
            listener.set_period(period);
        }
        Ok(())
    }

    /// Starts the sleep of stations at time zero, before any other event. Needed only with
    /// [`RadioConfig::csl`].
    pub fn start(&mut self, agenda: &mut Agenda) {
        self.start_sampling(Instant::ZERO, agenda);
    }

    /// Whether a station sleeps between samples of the channel.
    pub fn sleeps(&self, station: Station) -> bool {
        self.macs[station.0 as usize].csl.as_ref().is_some_and(|listener| listener.sleeps())
    }

    /// Whether any station sleeps, after [`Radio::start`].
    pub fn has_sleepers(&self) -> bool {
        self.sleepers > 0
    }

    /// Takes the next effect, in order.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Number of stations.
    pub fn station_count(&self) -> usize {
        self.macs.len()
    }

    /// The physical layer.
    pub fn phy(&self) -> &PhyConfig {
        &self.phy
    }

    /// The MAC.
    pub fn mac(&self) -> &MacConfig {
        &self.mac
    }

    /// Whether a station has no frame to send.
    pub fn is_idle(&self, station: Station) -> bool {
        self.macs[station.0 as usize].is_idle()
    }

    /// The stations that can receive from a station without interference, in order. For moving
    /// stations, at the time of its last frame.
    pub fn neighbours(&self, station: Station) -> impl Iterator<Item = Station> {
        let hearers = &self.medium.neighbours.hearers[self.medium.neighbours.of(station.0)];
        hearers.iter().filter(|h| h.marks & DECODABLE != 0).map(|h| Station(h.station))
    }

    /// [`Radio::neighbours`], and for moving stations also those that may come into range.
    pub fn reachable(&self, station: Station) -> impl Iterator<Item = Station> {
        self.medium.neighbours.reachable(station.0)
    }

    /// Probability that a frame with a PSDU of `psdu_len` bytes is received on an otherwise idle
    /// channel.
    pub fn clear_success(&self, from: Station, to: Station, psdu_len: u16) -> f64 {
        let airtime = self.phy.airtime(psdu_len);
        self.link(from, to).map_or(0.0, |link| self.medium.clear_success(link, airtime))
    }

    /// Expected number of transmissions (ETX) of a frame with a PSDU of `psdu_len` bytes until its
    /// acknowledgement arrives, on an otherwise idle channel. It depends on distance and bit errors
    /// only; [`UnitDisk::loss`] does not count. Infinite if no acknowledgement can arrive.
    pub fn expected_transmissions(&self, from: Station, to: Station, psdu_len: u16) -> f64 {
        let bits_are_right = |from, to, psdu| {
            let airtime = self.phy.airtime(psdu);
            self.link(from, to).map_or(0.0, |link| self.medium.bits_are_right(link, airtime))
        };
        1.0 / (bits_are_right(from, to, psdu_len) * bits_are_right(to, from, self.phy.ack_psdu))
    }

    /// Counters of a station.
    pub fn metrics(&self, station: Station) -> StationMetrics {
        let Spoils { collisions, lost, missed } = self.medium.spoils(station.0);
        StationMetrics { collisions, lost, missed, ..self.macs[station.0 as usize].metrics }
    }

    /// Counters of one direction of a pair; `None` if nothing is received in this direction.
    pub fn link_metrics(&self, from: Station, to: Station) -> Option<LinkMetrics> {
        self.link(from, to).map(|link| self.medium.neighbours.links[link].metrics)
    }

    /// Time since time zero for which the signals of other stations kept the channel busy at a
    /// station, whatever the station did itself.
    pub fn busy_time(&self, now: Instant, station: Station) -> Duration {
        self.medium.busy_time(station.0, now)
    }

    /// Time since time zero that a station has spent in each state.
    pub fn state_time(&self, now: Instant, station: Station) -> StateTime {
        self.macs[station.0 as usize].meter.until(now, self.busy_time(now, station))
    }

    /// Time and energy that a station has used in each state since time zero.
    pub fn energy_use(&self, now: Instant, station: Station) -> EnergyUse {
        self.power.energy_use(&self.state_time(now, station))
    }

    /// Energy in joules that a station has used since time zero.
    pub fn energy_j(&self, now: Instant, station: Station) -> f64 {
        self.energy_use(now, station).energy_j()
    }

    fn link(&self, from: Station, to: Station) -> Option<usize> {
        self.medium.neighbours.find(from.0, to.0)
    }
}
