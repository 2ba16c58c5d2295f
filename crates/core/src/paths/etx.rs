//! State of the neighbours, in particular their ETX: the number of transmissions per acknowledged
//! frame, from the reports of the link layer.

use alloc::vec::Vec;

use super::message::{Metrics, ShortAddress};
use crate::time::{Duration, Instant};

/// An ETX of 1 (RFC 6551 section 4.3.2).
pub(super) const ONE: u16 = 128;

/// Lower limit of the acknowledged frames: half a frame. The ETX of a link that loses everything is
/// then at most four times the transmissions of a frame. Without a limit, a neighbour that was
/// absent for long would cost more than MAX_PATH_COST when it returns. A node without another path
/// would then never send to it and never notice that the link works.
const LEAST: u32 = UNIT / 2;
/// Averaging window: each new frame has a weight of 1/16.
const WINDOW_SHIFT: u32 = 4;
/// One frame.
const UNIT: u32 = 1 << 12;
/// Number of consecutive frames without acknowledgement after which packets take another path.
const FAILING: u8 = 2;
/// Number of consecutive frames without acknowledgement after which a link is probed as rarely as
/// any other.
const HOPELESS: u8 = 8;
/// On a link without an acknowledgement for this long, a single lost frame suffices: the neighbour
/// may be lost.
const SILENT: Duration = Duration::from_secs(10);
/// Number of frames after which the estimate counts as measured.
const MEASURED: u8 = 6;

/// Transmissions and acknowledgements as a moving average.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Estimate {
    sent: u32,
    acknowledged: u32,
    /// Number of frames in the estimate, up to [`MEASURED`].
    frames: u8,
    /// Number of consecutive frames without acknowledgement.
    failures: u8,
}

impl Default for Estimate {
    /// An unused link: an ETX of 2, with the weight of half a frame. An untried long link of
    /// perfect quality then does not win against two short links that are known to be good.
    fn default() -> Self {
        Self { sent: UNIT, acknowledged: UNIT / 2, frames: 0, failures: 0 }
    }
}

impl Estimate {
    /// Records a frame that was transmitted `attempts` times and then acknowledged or dropped.
    pub(super) fn note(&mut self, attempts: u8, acknowledged: bool) {
        let keep = |sum: u32| if acknowledged { sum - (sum >> WINDOW_SHIFT) } else { sum / 2 };
        // Four transmissions in a row without acknowledgement are rare on a working link, so they
        // have the same weight as all earlier frames.
        self.sent = keep(self.sent) + u32::from(attempts) * UNIT;
        self.acknowledged = (keep(self.acknowledged) + u32::from(acknowledged) * UNIT).max(LEAST);
        self.frames = (self.frames + 1).min(MEASURED);
        self.failures = if acknowledged { 0 } else { self.failures.saturating_add(1) };
    }

    /// Returns the ETX in units of 1/128.
    pub(super) fn etx(&self) -> u16 {
        let value = u64::from(self.sent) * u64::from(ONE) / u64::from(self.acknowledged);
        u16::try_from(value).unwrap_or(u16::MAX).max(ONE)
    }

    /// Whether enough frames were sent for a reliable estimate.
    pub(super) fn is_measured(&self) -> bool {
        self.frames >= MEASURED
    }

    /// Whether a probe is urgent: the link is not measured, or it started to fail. A link that has
    /// failed for long has no priority.
    pub(super) fn is_urgent(&self) -> bool {
        !self.is_measured() || self.is_failing() && self.failures < HOPELESS
    }

    /// Whether the last frames were all lost.
    pub(super) fn is_failing(&self) -> bool {
        self.failures >= FAILING
    }
}

/// The state of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Neighbour {
    pub(super) address: ShortAddress,
    pub(super) estimate: Estimate,
    /// Whether the link is wired; its ETX is then 1.
    pub(super) reliable: bool,
    /// Time of the last frame sent to it.
    pub(super) used: Instant,
    /// Time of its last acknowledgement.
    answered: Instant,
    /// The ETX at the last comparison of paths.
    compared: u16,
    /// Metrics of the link, from the owner.
    pub(super) metrics: Option<Metrics>,
    /// Time when one of its DIOs last counted as consistent.
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

/// The neighbours in order of their addresses.
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

    /// Returns the ETX of the link to a neighbour in units of 1/128.
    pub(super) fn etx(&self, address: ShortAddress) -> u16 {
        self.get(address).map_or_else(|| Estimate::default().etx(), Neighbour::etx)
    }

    pub(super) fn is_failing(&self, address: ShortAddress) -> bool {
        self.get(address).is_some_and(|n| n.estimate.is_failing())
    }

    /// Records a frame. Returns true if the ETX differs from that of the last comparison by at
    /// least 1/8.
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

    /// Deletes the state of a rebooted node, except the wired links.
    pub(super) fn forget(&mut self) {
        self.all.retain(|n| n.reliable);
        self.all.iter_mut().for_each(|n| (n.metrics, n.counted) = (None, None));
    }
}
