//! IEEE 802.11 DSSS in an ad hoc network (IBSS): a channel that stations share by the DCF.
//!
//! A channel handles a frame as its length, its destination and an opaque tag. It is driven like
//! [`crate::radio`]. [`Wifi::send`] takes a frame, and [`Wifi::handle_event`] an event that the
//! channel has put into the [`Agenda`]. After each of them, [`Wifi::poll_effect`] returns the
//! effects, until it returns `None`. A simulation has this kind of radio or the other; both use
//! [`crate::event::Event::Medium`].
//!
//! Code map: [`phy`] has times and sizes, `access` channel access (carrier sense, NAV, backoff),
//! `exchange` the frame exchange (RTS, CTS, data, ACK), `mac` the state of a station,
//! [`propagation`] reception and carrier sense, [`energy`] power consumption, [`config`] the
//! options, [`metrics`] counters, [`octets`] frames as bytes. `docs/reference/wifi.md` lists the
//! values with their sources.
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
//! One channel, one rate for unicast data and one for all other frames; no infrastructure mode,
//! beacons, power save, fragmentation or security. There is no fading, and signals propagate
//! without delay: at 300 m it would be a microsecond. A NAV set by an RTS is kept even if nothing
//! follows (the reset of clause 9.2.5.4 is optional).

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

/// Medium id of this radio's events.
pub(crate) const MEDIUM: MediumId = MediumId(2);

/// A frame to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Destination, which acknowledges the frame; `None` for a broadcast, which is not
    /// acknowledged.
    pub to: Option<Station>,
    /// Length of the MPDU in bytes, including MAC header and FCS.
    pub mpdu_len: u16,
    /// Identifier for the caller.
    pub tag: u64,
}

/// Result of sending a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was acknowledged.
    Acknowledged,
    /// It was broadcast.
    Sent,
    /// A retry limit was reached. The frame may have been received all the same.
    NoAck,
    /// The station went down.
    Down,
}

/// A transmission that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AirFrame {
    /// Start of the preamble.
    pub start: Instant,
    /// End of the frame.
    pub end: Instant,
    /// Kind of the frame.
    pub kind: FrameKind,
    /// Sending station; CTS and acknowledgement frames do not contain it.
    pub from: Station,
    /// Destination; `None` for a broadcast.
    pub to: Option<Station>,
    /// Sequence number of data, 0 to 4095; for other frames, that of the data to which they belong.
    pub seq: u16,
    /// Whether it is a retransmission of data.
    pub retry: bool,
    /// Duration field: the remaining time of the exchange after this frame.
    pub duration: Duration,
    /// Rate of the MPDU.
    pub rate: Rate,
    /// Length of its MPDU in bytes.
    pub mpdu_len: u16,
    /// Tag of the data that this frame is or to which it belongs.
    pub tag: u64,
    /// Whether the frame was cut off because its sender went down.
    pub cut: bool,
    /// Number of destination stations that have received it.
    pub receivers: u32,
}

/// An effect of the channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// A frame has been received at its destination for the first time.
    Received {
        /// Receiving station.
        at: Station,
        /// Sending station.
        from: Station,
        /// This station for a unicast frame; `None` for a broadcast.
        to: Option<Station>,
        /// The sender's tag of the frame.
        tag: u64,
        /// Length of its MPDU in bytes.
        mpdu_len: u16,
        /// Received power in dBm.
        rssi_dbm: i16,
    },
    /// A station has received data for another station; reported for each transmission, and only
    /// after [`Wifi::overhear`].
    Overheard {
        /// Station that has received it.
        at: Station,
        /// Sending station.
        from: Station,
        /// Destination.
        to: Station,
        /// The sender's tag of the frame.
        tag: u64,
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
        /// Number of attempts: transmissions of the frame, and of RTS for it that failed.
        attempts: u8,
    },
    /// A station has used up its energy and is down for good.
    Exhausted {
        /// The station.
        station: Station,
    },
    /// A transmission has ended. Reported only after [`Wifi::show_frames`].
    Frame(AirFrame),
}

/// A channel with all stations on it.
#[derive(Debug)]
pub struct Wifi {
    phy: PhyConfig,
    mac: MacConfig,
    power: PowerConfig,
    energy: Option<f64>,
    /// Time before which no station can have used up its energy.
    sated_until: Instant,
    medium: Medium,
    macs: Vec<Mac>,
    effects: VecDeque<Effect>,
    shows_frames: bool,
    overhears: bool,
    /// Receptions of the frame that begins or ends at this time; empty otherwise.
    heard: Heard,
    /// Stations found without energy at this time.
    exhausted: Vec<u32>,
}

impl Wifi {
    /// A channel with stations at these positions, all up and listening from time zero. `stream`
    /// makes the random stream of a station for a purpose.
    pub fn new(
        config: WifiConfig,
        positions: &[Position],
        stream: impl Fn(Station, &str) -> Stream,
    ) -> Result<Self, ConfigError> {
        Self::with_movers(config, positions, Vec::new(), stream)
    }

    /// A channel with moving stations. A mover replaces the position with the same number. The cost
    /// of a frame is proportional to the number of stations, and memory grows with its square.
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

    /// Sets the loss probability of one direction of a pair, 0 to 1, which replaces that of
    /// [`Thresholds`]; control frames for the data use the other direction. Returns false if
    /// nothing is received in this direction.
    pub fn set_loss(&mut self, from: Station, to: Station, loss: f64) -> bool {
        let Some(link) = self.link(from, to) else { return false };
        self.medium.neighbours.links[link].loss = loss;
        true
    }

    /// Enables [`Effect::Frame`] for every frame from now on.
    pub fn show_frames(&mut self) {
        self.shows_frames = true;
    }

    /// Enables [`Effect::Overheard`] from now on.
    pub fn overhear(&mut self) {
        self.overhears = true;
    }

    /// Gives a station a frame to send. A station takes the next frame only after [`Effect::Done`].
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
        while let Some(station) = self.exhausted.pop() {
            let mac = &mut self.macs[station as usize];
            if !std::mem::replace(&mut mac.exhausted, true) {
                self.go_down(now, station, agenda);
                self.effects.push_back(Effect::Exhausted { station: Station(station) });
            }
        }
    }

    /// Takes a station down or up. While down, it neither sends nor receives; the frame that it was
    /// sending is cut off and ends with [`Outcome::Down`]. A station without energy stays down. A
    /// station that does not exist is ignored.
    pub fn set_up(&mut self, now: Instant, station: Station, up: bool, agenda: &mut Agenda) {
        let Some(mac) = self.macs.get(station.0 as usize) else { return };
        match (mac.is_up(), up) {
            (true, false) => self.go_down(now, station.0, agenda),
            (false, true) if !mac.exhausted => self.come_up(now, station.0),
            (false, true) | (true, true) | (false, false) => {}
        }
    }

    /// One more jammer begins, or one ends, at a station. Until the last one ends, the channel is
    /// busy at the station, and it receives no frame.
    pub fn jam(&mut self, now: Instant, station: Station, begins: bool, agenda: &mut Agenda) {
        match (self.medium.jam(now, station.0, begins), begins) {
            (false, _) => {}
            (true, true) => self.turn_busy(now, station.0),
            (true, false) => self.turn_clear(now, station.0, agenda),
        }
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

    /// Whether a station is up.
    pub fn is_up(&self, station: Station) -> bool {
        self.macs[station.0 as usize].is_up()
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

    /// [`Wifi::neighbours`], and for moving stations also those that may come into range.
    pub fn reachable(&self, station: Station) -> impl Iterator<Item = Station> {
        self.medium.neighbours.reachable(station.0)
    }

    /// Number of stations that a transmission of a station reaches: [`Wifi::neighbours`], and those
    /// that only sense it.
    pub fn hearer_count(&self, station: Station) -> usize {
        self.medium.neighbours.of(station.0).len()
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
        let known = (from.0 as usize) < self.macs.len();
        known.then(|| self.medium.neighbours.find(from.0, to.0)).flatten()
    }
}
