//! IEEE 802.11 DSSS in an ad hoc network (IBSS): a channel that stations share by the DCF.
//!
//! The radio knows frames by their length, their destination and a tag that means nothing to it. It
//! is driven as [`crate::radio`] is: [`Wifi::send`] takes a frame, [`Wifi::handle_event`] what it
//! has put into the [`Agenda`], and [`Wifi::poll_effect`] says what has come of it, to be called
//! after either until nothing is left. A simulation has this radio or the other: both have
//! [`crate::event::Event::Medium`].
//!
//! Code map: [`phy`] is times and sizes, `access` who may send when (carrier sense, NAV, backoff),
//! `exchange` the frames of an exchange (RTS, CTS, data, ACK), `mac` the state of a station,
//! [`propagation`] who hears whom, [`energy`] what it draws, [`config`] the options, [`metrics`]
//! what is counted, [`octets`] what was on air octet by octet. `docs/reference/wifi.md` has the
//! figures with their sources.
//!
//! ```
//! use anabranch_core::time::Instant;
//! use anabranch_sim::event::{Agenda, Event};
//! use anabranch_sim::random::Stream;
//! use anabranch_sim::wifi::{Effect, Outcome, Outgoing, Position, Station, Wifi, WifiConfig};
//!
//! let positions = [Position::new(0.0, 0.0), Position::new(80.0, 0.0)];
//! let stream = |s: Station, purpose: &str| Stream::new(1, 0, &format!("wifi {}", s.0), purpose);
//! let mut wifi = Wifi::new(WifiConfig::dsss(100.0), &positions, stream)?;
//! let mut agenda = Agenda::default();
//! let frame = Outgoing { to: Some(Station(1)), mpdu_len: 300, tag: 7 };
//! wifi.send(Instant::ZERO, Station(0), frame, &mut agenda)?;
//! let mut outcomes = Vec::new();
//! while let Some((now, event)) = agenda.pop() {
//!     if let Event::Medium { station, what, generation, .. } = event {
//!         wifi.handle_event(now, station, what, generation, &mut agenda);
//!     }
//!     while let Some(effect) = wifi.poll_effect() {
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
//! One channel, one rate for data and one for all else; no infrastructure, beacons, power save,
//! fragments or security. There is no fading, and signals need no time from one station to another:
//! at 300 m it would be a microsecond. A NAV set by an RTS is kept even if nothing follows (the
//! reset of clause 9.2.5.4 is not compulsory).

mod access;
pub mod config;
pub mod energy;
mod exchange;
mod mac;
pub mod metrics;
pub mod octets;
pub mod phy;
pub mod propagation;

use std::collections::VecDeque;

use anabranch_core::time::{Duration, Instant};

use crate::air::geometry::Neighbours;
use crate::air::medium::{Medium, Spoils};
use crate::air::propagation::DECODABLE;
use crate::event::Agenda;
use crate::packet::MediumId;
use crate::random::Stream;

pub use crate::air::Station;
pub use crate::air::error::{ConfigError, SendError};
pub use crate::air::geometry::{LinkMetrics, Position};
pub use crate::air::meter::{EnergyUse, RadioState, StateTime};
pub use crate::air::motion::Mover;
pub use config::{Eifs, FirstAccess, MacConfig, ResponseTimeout, WifiConfig, Window};
pub use energy::PowerConfig;
pub use metrics::StationMetrics;
pub use phy::{FrameKind, PhyConfig, Preamble, Rate};
pub use propagation::{Locking, PathLoss, Thresholds};

use exchange::Heard;
use mac::Mac;

/// Whose events these are.
pub(crate) const MEDIUM: MediumId = MediumId(2);

/// A frame to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// For whom, with an acknowledgement; `None` for all that hear it, without.
    pub to: Option<Station>,
    /// Octets of the MPDU, MAC header and FCS included.
    pub mpdu_len: u16,
    /// What the caller knows it by.
    pub tag: u64,
}

/// What has become of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was acknowledged.
    Acknowledged,
    /// It was broadcast.
    Sent,
    /// A retry limit was reached. It may have been received all the same.
    NoAck,
    /// Its station went down.
    Down,
}

/// A frame that has left the air.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AirFrame {
    /// When its preamble began.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
    /// What it is.
    pub kind: FrameKind,
    /// Its sender, which a CTS and an acknowledgement do not name.
    pub from: Station,
    /// For whom; `None` for all.
    pub to: Option<Station>,
    /// Sequence number, 0 to 4095, of data; of other frames, that of the data they are about.
    pub seq: u16,
    /// It is data that was on air before.
    pub retry: bool,
    /// The Duration field: how long the exchange still takes after its end.
    pub duration: Duration,
    /// At which rate.
    pub rate: Rate,
    /// Octets of its MPDU.
    pub mpdu_len: u16,
    /// What the data that it is, or is about, is known by.
    pub tag: u64,
    /// Its sender went down in its midst.
    pub cut: bool,
    /// How many of those that it was for have received it.
    pub receivers: u32,
}

/// What the radio has to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// A frame has arrived where it was to, for the first time.
    Received {
        /// Where.
        at: Station,
        /// From whom.
        from: Station,
        /// It was for this station alone, or else for all.
        to: Option<Station>,
        /// What its sender knows it by.
        tag: u64,
        /// Octets of its MPDU.
        mpdu_len: u16,
        /// Received power in dBm.
        rssi_dbm: i16,
    },
    /// A station has received data that was for another, each time that it comes; only if
    /// [`Wifi::overhear`] was called.
    Overheard {
        /// Where.
        at: Station,
        /// From whom.
        from: Station,
        /// For whom.
        to: Station,
        /// What its sender knows it by.
        tag: u64,
    },
    /// A station can take the next frame. Every frame that was accepted has exactly one of these.
    Done {
        /// The station.
        station: Station,
        /// What it knows the frame by.
        tag: u64,
        /// What has become of it.
        outcome: Outcome,
        /// How often it was tried: how often it, or an RTS for it that failed, was on air.
        attempts: u8,
    },
    /// A station has used up its energy and is down for good.
    Exhausted {
        /// The station.
        station: Station,
    },
    /// Something has left the air; only if [`Wifi::show_frames`] was called.
    Frame(AirFrame),
}

/// A channel and all stations on it.
#[derive(Debug)]
pub struct Wifi {
    phy: PhyConfig,
    mac: MacConfig,
    power: PowerConfig,
    energy: Option<f64>,
    /// No station can have used up its energy before.
    sated_until: Instant,
    medium: Medium,
    macs: Vec<Mac>,
    effects: VecDeque<Effect>,
    shows_frames: bool,
    overhears: bool,
    /// Of the frame that begins or ends at this moment; empty otherwise.
    heard: Heard,
    /// Stations found without energy at this moment.
    exhausted: Vec<u32>,
}

impl Wifi {
    /// A channel with stations at the places given, all up and listening from the epoch on;
    /// `stream` makes the random stream of a station for a purpose.
    pub fn new(
        config: WifiConfig,
        positions: &[Position],
        stream: impl Fn(Station, &str) -> Stream,
    ) -> Result<Self, ConfigError> {
        Self::with_movers(config, positions, Vec::new(), stream)
    }

    /// The same with stations that move, in place of those at the positions of the same number.
    /// Each frame costs as much as there are stations, and memory grows with their square.
    pub fn with_movers(
        config: WifiConfig,
        positions: &[Position],
        movers: Vec<(Station, Mover)>,
        stream: impl Fn(Station, &str) -> Stream,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let neighbours = match movers.is_empty() {
            true => Neighbours::new(&config.propagation, positions, &stream)?,
            false => Neighbours::moving(config.propagation, positions, movers, &stream)?,
        };
        let medium = Medium::new(config.propagation.rules(), neighbours, &stream);
        let mac = |i| Mac::new(stream(Station(i), "mac"), config.mac.cw_min);
        Ok(Self {
            phy: config.phy,
            mac: config.mac,
            power: config.power,
            energy: config.initial_energy_j,
            sated_until: config.initial_energy_j.map_or(Instant::FAR_FUTURE, |j| config.power.lasts(j)),
            medium,
            macs: (0..positions.len() as u32).map(mac).collect(),
            effects: VecDeque::new(),
            shows_frames: false,
            overhears: false,
            heard: Heard::default(),
            exhausted: Vec::new(),
        })
    }

    /// Gives one direction of a pair its own probability of losing a frame, 0 to 1, in place of
    /// that of [`Thresholds`]; control frames for the data go the other way. False if nothing is
    /// heard in this direction.
    pub fn set_loss(&mut self, from: Station, to: Station, loss: f64) -> bool {
        let Some(link) = self.link(from, to) else { return false };
        self.medium.neighbours.links[link].loss = loss;
        true
    }

    /// From now on [`Effect::Frame`] is told of every frame.
    pub fn show_frames(&mut self) {
        self.shows_frames = true;
    }

    /// From now on [`Effect::Overheard`] is told.
    pub fn overhear(&mut self) {
        self.overhears = true;
    }

    /// A station is to send a frame. It takes one at a time: the next after [`Effect::Done`].
    pub fn send(
        &mut self,
        now: Instant,
        station: Station,
        frame: Outgoing,
        agenda: &mut Agenda,
    ) -> Result<(), SendError> {
        let mac = self.macs.get(station.0 as usize).ok_or(SendError::NoSuchStation)?;
        let max = self.phy.max_mpdu;
        match frame {
            Outgoing { mpdu_len: 0, .. } => return Err(SendError::Empty),
            Outgoing { mpdu_len: len, .. } if len > max => return Err(SendError::TooLong { len, max }),
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
        self.accept(now, station.0, frame, agenda);
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
        while let Some(station) = self.exhausted.pop() {
            let mac = &mut self.macs[station as usize];
            if !std::mem::replace(&mut mac.exhausted, true) {
                self.go_down(now, station, agenda);
                self.effects.push_back(Effect::Exhausted { station: Station(station) });
            }
        }
    }

    /// A station dies, or is back. Dead, it neither sends nor hears, and what it was sending breaks
    /// off, with [`Outcome::Down`]. One without energy stays dead; a station that does not exist is
    /// no station that is up.
    pub fn set_up(&mut self, now: Instant, station: Station, up: bool, agenda: &mut Agenda) {
        let Some(mac) = self.macs.get(station.0 as usize) else { return };
        match (mac.is_up(), up) {
            (true, false) => self.go_down(now, station.0, agenda),
            (false, true) if !mac.exhausted => self.come_up(now, station.0),
            (false, true) | (true, true) | (false, false) => {}
        }
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

    /// A station is up.
    pub fn is_up(&self, station: Station) -> bool {
        self.macs[station.0 as usize].is_up()
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

    /// Those that a transmission of a station touches: [`Wifi::neighbours`], and those that only
    /// sense it.
    pub fn hearer_count(&self, station: Station) -> usize {
        self.medium.neighbours.of(station.0).len()
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
        let known = (from.0 as usize) < self.macs.len();
        known.then(|| self.medium.neighbours.find(from.0, to.0)).flatten()
    }
}
