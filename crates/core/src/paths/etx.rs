//! What a node knows of its neighbours; first of all how often a frame goes on air for each that a
//! neighbour acknowledges: ETX, as the link layer reports it.

use alloc::vec::Vec;

use super::message::{Metrics, ShortAddress};
use crate::time::{Duration, Instant};

/// An ETX of 1 (RFC 6551 section 4.3.2).
pub(super) const ONE: u16 = 128;

/// The least that counts as acknowledged: half a frame. A link on which all is lost so has an ETX
/// of four times a frame's transmissions. Without a bound a neighbour that was away for long would
/// cost more than MAX_PATH_COST when it is heard again, and a node without another path would never
/// send to it and find out.
const LEAST: u32 = UNIT / 2;
/// Frames that the average reaches back: each new one has a sixteenth of the weight.
const WINDOW_SHIFT: u32 = 4;
/// One frame.
const UNIT: u32 = 1 << 12;
/// Frames in a row without acknowledgement after which a packet for elsewhere takes another path.
const FAILING: u8 = 2;
/// Frames in a row without acknowledgement after which a link is probed as rarely as any other.
const HOPELESS: u8 = 8;
/// On a link that has acknowledged nothing for this long a single one is enough: the neighbour may
/// be gone.
const SILENT: Duration = Duration::from_secs(10);
/// Frames from which on the estimate counts as measured.
const MEASURED: u8 = 6;

/// Transmissions and acknowledgements, of which older ones count ever less.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Estimate {
    sent: u32,
    acknowledged: u32,
    /// Frames that the estimate rests on, up to [`MEASURED`].
    frames: u8,
    /// Frames in a row that were not acknowledged.
    failures: u8,
}

impl Default for Estimate {
    /// A link that nothing was sent over yet: an ETX of 2, with the weight of half a frame. A long
    /// link of full quality that nobody has tried then does not win against two short ones that are
    /// known to be good.
    fn default() -> Self {
        Self { sent: UNIT, acknowledged: UNIT / 2, frames: 0, failures: 0 }
    }
}

impl Estimate {
    /// A frame was sent `attempts` times, and then acknowledged or given up.
    pub(super) fn note(&mut self, attempts: u8, acknowledged: bool) {
        let keep = |sum: u32| if acknowledged { sum - (sum >> WINDOW_SHIFT) } else { sum / 2 };
        // Four transmissions in a row without acknowledgement are rare on a link that works, so
        // they weigh as much as all that was before.
        self.sent = keep(self.sent) + u32::from(attempts) * UNIT;
        self.acknowledged = (keep(self.acknowledged) + u32::from(acknowledged) * UNIT).max(LEAST);
        self.frames = (self.frames + 1).min(MEASURED);
        self.failures = if acknowledged { 0 } else { self.failures.saturating_add(1) };
    }

    /// In units of 1/128.
    pub(super) fn etx(&self) -> u16 {
        let value = u64::from(self.sent) * u64::from(ONE) / u64::from(self.acknowledged);
        u16::try_from(value).unwrap_or(u16::MAX).max(ONE)
    }

    /// Enough frames were sent to rely on it.
    pub(super) fn is_measured(&self) -> bool {
        self.frames >= MEASURED
    }

    /// Whether a probe tells much: of a link that is not measured, or that fails of late. One that
    /// has failed for long has no claim before others.
    pub(super) fn is_urgent(&self) -> bool {
        !self.is_measured() || self.is_failing() && self.failures < HOPELESS
    }

    /// The last frames were all lost.
    pub(super) fn is_failing(&self) -> bool {
        self.failures >= FAILING
    }
}

/// A neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Neighbour {
    pub(super) address: ShortAddress,
    pub(super) estimate: Estimate,
    /// A cable: its ETX is 1.
    pub(super) reliable: bool,
    /// When a frame was last sent to it.
    pub(super) used: Instant,
    /// When it last acknowledged one.
    answered: Instant,
    /// The ETX when paths were last compared.
    compared: u16,
    /// How good the link is, as the owner has said.
    pub(super) metrics: Option<Metrics>,
    /// When a DIO of its was last counted as consistent.
    pub(super) counted: Option<Instant>,
}

impl Neighbour {
    fn new(address: ShortAddress) -> Self {
        let estimate = Estimate::default();
        let compared = estimate.etx();
        let (used, answered) = (Instant::ZERO, Instant::ZERO);
        Self { address, estimate, reliable: false, used, answered, compared, metrics: None, counted: None }
    }

    pub(super) fn etx(&self) -> u16 {
        if self.reliable { ONE } else { self.estimate.etx() }
    }
}

/// The neighbours, by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Neighbours {
    all: Vec<Neighbour>,
}

impl Neighbours {
    pub(super) fn get(&self, address: ShortAddress) -> Option<&Neighbour> {
        let at = self.all.binary_search_by_key(&address, |n| n.address).ok()?;
        self.all.get(at)
    }

    pub(super) fn entry(&mut self, address: ShortAddress) -> &mut Neighbour {
        let at = match self.all.binary_search_by_key(&address, |n| n.address) {
            Ok(at) => at,
            Err(at) => {
                self.all.insert(at, Neighbour::new(address));
                at
            }
        };
        &mut self.all[at]
    }

    /// In units of 1/128, of the link to a neighbour.
    pub(super) fn etx(&self, address: ShortAddress) -> u16 {
        self.get(address).map_or_else(|| Estimate::default().etx(), Neighbour::etx)
    }

    pub(super) fn is_failing(&self, address: ShortAddress) -> bool {
        self.get(address).is_some_and(|n| n.estimate.is_failing())
    }

    /// True if the ETX differs from that of the last comparison by an eighth of a transmission.
    pub(super) fn note(&mut self, now: Instant, address: ShortAddress, attempts: u8, good: bool) -> bool {
        let neighbour = self.entry(address);
        neighbour.used = now;
        neighbour.estimate.note(attempts, good);
        if good {
            neighbour.answered = now;
        } else if now.saturating_since(neighbour.answered) >= SILENT {
            neighbour.estimate.failures = neighbour.estimate.failures.max(FAILING);
        }
        let etx = neighbour.etx();
        let moved = etx.abs_diff(neighbour.compared) >= ONE / 8;
        if moved {
            neighbour.compared = etx;
        }
        moved
    }

    /// After a reboot only the cables are known.
    pub(super) fn forget(&mut self) {
        self.all.retain(|n| n.reliable);
        self.all.iter_mut().for_each(|n| (n.metrics, n.counted) = (None, None));
    }
}
