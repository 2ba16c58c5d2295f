//! IEEE 802.15.4: a channel that stations share.
//!
//! The radio knows frames by their length, their destination and a tag that means nothing to it. It
//! is driven as the core is: [`Radio::send`] takes a frame, [`Radio::handle_event`] what it has put
//! into the [`Agenda`], and [`Radio::poll_effect`] says what has come of it, to be called after
//! either until nothing is left.
//!
//! Code map: [`phy`] is times and sizes, `mac` the CSMA-CA, `csl` how stations sleep, [`energy`]
//! what it draws, [`config`] the options, [`metrics`] what is counted. Who hears what is the affair
//! of [`crate::air`]. `docs/reference/radio.md` has the figures with their sources.
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
//! One channel; no beacons, guaranteed slots, security, or scanning. There is no fading in time.
//! Signals need no time from one station to another: at 300 m it would be a microsecond. An
//! acknowledgement is known by its station, which on air it does not name. A frame that begins at
//! the very instant at which another ends may be missed by a receiver of the other. Interference
//! counts as noise of the same power, unless [`LogDistance::co_channel_rejection_db`] says more.

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

/// Whose events these are.
pub(crate) const MEDIUM: MediumId = MediumId(1);

/// A frame to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// For whom, with an acknowledgement; `None` for all that hear it, without.
    pub to: Option<Station>,
    /// Octets of the PSDU, MAC header and FCS included.
    pub psdu_len: u16,
    /// What the caller knows it by.
    pub tag: u64,
    /// Another frame for the same station follows at once: one that would sleep stays awake for it.
    pub pending: bool,
}

/// What has become of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was acknowledged.
    Acknowledged,
    /// It was broadcast.
    Sent,
    /// No acknowledgement came, as often as it was sent. It may have been received all the same.
    NoAck,
    /// The channel was busy at macMaxCsmaBackoffs + 1 assessments in a row.
    ChannelAccessFailure,
    /// Its station went down.
    Down,
}

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameKind {
    /// What a station was given to send.
    Data {
        /// Its frame version: 2 if it asks for an enhanced acknowledgement.
        version: u8,
        /// It says that another frame for the same station follows.
        pending: bool,
    },
    /// An acknowledgement; an enhanced one says when its sender samples the channel.
    Ack(Option<Csl>),
    /// A wake-up frame: its rendezvous time counts units of 10 symbols from its end to the frame
    /// that it announces.
    Wakeup {
        /// The rendezvous time.
        rendezvous: u16,
    },
}

/// What the radio has to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// A frame has arrived, for the first time.
    Received {
        /// Where.
        at: Station,
        /// From whom.
        from: Station,
        /// What its sender knows it by.
        tag: u64,
        /// Octets of its PSDU.
        psdu_len: u16,
        /// Link quality, from 0 to 255.
        lqi: u8,
        /// Received power in dBm; a unit disk knows none.
        rssi_dbm: Option<i16>,
    },
    /// A station can take the next frame. Every frame that was accepted has exactly one of these.
    Done {
        /// The station.
        station: Station,
        /// What it knows the frame by.
        tag: u64,
        /// What has become of it.
        outcome: Outcome,
        /// How often it was on air.
        attempts: u8,
    },
    /// Something has left the air; only if [`Radio::show_frames`] was called.
    Frame {
        /// When its preamble began.
        start: Instant,
        /// When it ended.
        end: Instant,
        /// Its sender.
        from: Station,
        /// For whom; `None` for all.
        to: Option<Station>,
        /// Its sequence number on air.
        seq: u8,
        /// Octets of its PSDU.
        psdu_len: u16,
        /// What its sender knows it by; of an acknowledgement, the tag of the frame acknowledged.
        tag: u64,
        /// What it is.
        kind: FrameKind,
        /// Its sender went down in its midst.
        cut: bool,
        /// How many of those that it was for have received it.
        receivers: u32,
    },
}

/// A channel and all stations on it.
#[derive(Debug)]
pub struct Radio {
    phy: PhyConfig,
    mac: MacConfig,
    power: PowerConfig,
    medium: Medium,
    macs: Vec<Mac>,
    csl: Option<CslConfig>,
    /// Stations that sleep.
    sleepers: u32,
    effects: VecDeque<Effect>,
    shows_frames: bool,
    /// Of the frame that ends at this moment; empty otherwise.
    receptions: Vec<Reception>,
}

impl Radio {
    /// A channel with stations at the places given, all up and listening from the epoch on;
    /// `stream` makes the random stream of a station for a purpose.
    pub fn new(
        config: RadioConfig,
        positions: &[Position],
        stream: impl Fn(Station, &str) -> Stream,
    ) -> Result<Self, ConfigError> {
        Self::with_movers(config, positions, Vec::new(), stream)
    }

    /// The same with stations that move, in place of those at the positions of the same number.
    /// Each frame costs as much as there are stations, and memory grows with their square.
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

    /// Gives one direction of a pair its own probability of losing a frame, 0 to 1, in place of
    /// that of [`UnitDisk`]; acknowledgements go the other way. False if nothing is heard in this
    /// direction.
    pub fn set_loss(&mut self, from: Station, to: Station, loss: f64) -> bool {
        let Some(link) = self.link(from, to) else { return false };
        self.medium.neighbours.links[link].loss = loss;
        true
    }

    /// From now on [`Effect::Frame`] is told of every frame.
    pub fn show_frames(&mut self) {
        self.shows_frames = true;
    }

    /// A station is to send a frame. It takes one at a time: the next after [`Effect::Done`].
    pub fn send(
        &mut self,
        now: Instant,
        station: Station,
        frame: Outgoing,
        agenda: &mut Agenda,
    ) -> Result<(), SendError> {
        self.submit(now, station, frame, false, agenda)
    }

    /// As [`Radio::send`] for the very frame that the station has sent last, which keeps its
    /// sequence number: whoever has received it already takes this for a copy.
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

    /// An [`crate::event::Event::Medium`] happens, unless it is void.
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

    /// A station dies, or is back. Dead, it neither sends nor hears, and what it was sending breaks
    /// off, with [`Outcome::Down`].
    pub fn set_up(&mut self, now: Instant, station: Station, up: bool, agenda: &mut Agenda) {
        match (self.macs[station.0 as usize].is_up(), up) {
            (true, false) => self.go_down(now, station.0),
            (false, true) => self.come_up(now, station.0, agenda),
            (true, true) | (false, false) => {}
        }
    }

    /// Gives a station its own macCslPeriod, before [`Radio::start`]: zero if it never sleeps.
    ///
    /// # Errors
    ///
    /// If there is no [`RadioConfig::csl`], or the period is longer than its `max_period` or not
    /// longer than a sample.
    pub fn set_csl_period(&mut self, station: Station, period: Duration) -> Result<(), ConfigError> {
        let csl = self.csl.ok_or(ConfigError::Range("csl_period", "nothing, without `csl`"))?;
        csl.check_period(period)?;
        if let Some(listener) = &mut self.macs[station.0 as usize].csl {
            listener.set_period(period);
        }
        Ok(())
    }

    /// At the epoch, before all else: stations that sleep go to sleep. Needed with
    /// [`RadioConfig::csl`] only.
    pub fn start(&mut self, agenda: &mut Agenda) {
        self.start_sampling(Instant::ZERO, agenda);
    }

    /// A station sleeps between samples of the channel, if it has nothing else to do.
    pub fn sleeps(&self, station: Station) -> bool {
        self.macs[station.0 as usize].csl.as_ref().is_some_and(|listener| listener.sleeps())
    }

    /// At least one station sleeps, after [`Radio::start`].
    pub fn has_sleepers(&self) -> bool {
        self.sleepers > 0
    }

    /// What has come of it, in order.
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

    /// A station has no frame under way.
    pub fn is_idle(&self, station: Station) -> bool {
        self.macs[station.0 as usize].is_idle()
    }

    /// Those that can receive from a station, if nothing comes between, in their order. Of stations
    /// that move, at the time of its last frame.
    pub fn neighbours(&self, station: Station) -> impl Iterator<Item = Station> {
        let hearers = &self.medium.neighbours.hearers[self.medium.neighbours.of(station.0)];
        hearers.iter().filter(|h| h.marks & DECODABLE != 0).map(|h| Station(h.station))
    }

    /// The same, and if a station or the other moves, those that may come into reach.
    pub fn reachable(&self, station: Station) -> impl Iterator<Item = Station> {
        self.medium.neighbours.reachable(station.0)
    }

    /// Probability that a frame with a PSDU of so many octets comes from one station to another
    /// while nothing else is on air.
    pub fn clear_success(&self, from: Station, to: Station, psdu_len: u16) -> f64 {
        let airtime = self.phy.airtime(psdu_len);
        self.link(from, to).map_or(0.0, |link| self.medium.clear_success(link, airtime))
    }

    /// Expected number of transmissions of a frame with a PSDU of so many octets until its
    /// acknowledgement is here (ETX), by distance and bit errors alone: nothing else is on air, and
    /// [`UnitDisk::loss`] does not count. Infinite if it never comes.
    pub fn expected_transmissions(&self, from: Station, to: Station, psdu_len: u16) -> f64 {
        let bits_are_right = |from, to, psdu| {
            let airtime = self.phy.airtime(psdu);
            self.link(from, to).map_or(0.0, |link| self.medium.bits_are_right(link, airtime))
        };
        1.0 / (bits_are_right(from, to, psdu_len) * bits_are_right(to, from, self.phy.ack_psdu))
    }

    /// What a station has done.
    pub fn metrics(&self, station: Station) -> StationMetrics {
        let Spoils { collisions, lost, missed } = self.medium.spoils(station.0);
        StationMetrics { collisions, lost, missed, ..self.macs[station.0 as usize].metrics }
    }

    /// What one direction of a pair has carried; `None` if nothing is heard in this direction.
    pub fn link_metrics(&self, from: Station, to: Station) -> Option<LinkMetrics> {
        self.link(from, to).map(|link| self.medium.neighbours.links[link].metrics)
    }

    /// Time from the epoch on in which the signals of others kept the channel busy at a station,
    /// whatever it did itself.
    pub fn busy_time(&self, now: Instant, station: Station) -> Duration {
        self.medium.busy_time(station.0, now)
    }

    /// Time from the epoch on that a station has been in each state.
    pub fn state_time(&self, now: Instant, station: Station) -> StateTime {
        self.macs[station.0 as usize].meter.until(now, self.busy_time(now, station))
    }

    /// Time and energy that a station has used in each state from the epoch on.
    pub fn energy_use(&self, now: Instant, station: Station) -> EnergyUse {
        self.power.energy_use(&self.state_time(now, station))
    }

    /// Energy in joules that a station has drawn from the epoch on.
    pub fn energy_j(&self, now: Instant, station: Station) -> f64 {
        self.energy_use(now, station).energy_j()
    }

    fn link(&self, from: Station, to: Station) -> Option<usize> {
        self.medium.neighbours.find(from.0, to.0)
    }
}
