//! Division of a file: whole numbers of wireless segments for each path.

use super::path::Lane;

/// Parameters of a path for striping: when it may begin, the size of its segments, and the duration
/// of a share.
#[derive(Debug, Clone, PartialEq)]
pub struct Stripe<'a> {
    /// Time in seconds after the request at which the session is open.
    pub start: f64,
    /// S2: payload of one of its segments in bytes.
    pub mss: u32,
    /// Number of segments that it takes before any other session is open.
    pub least: u64,
    /// The data transfer on the path.
    pub lane: Lane<'a>,
}

impl Stripe<'_> {
    /// Time in seconds after the request at which `segments` are delivered; the start for no
    /// segments.
    pub fn finish(&self, segments: u64) -> f64 {
        self.start + self.lane.parts(segments).total()
    }

    /// Number of segments that hold `octets` bytes.
    fn holding(&self, octets: u64) -> u64 {
        octets.div_ceil(u64::from(self.mss))
    }

    /// Largest number of segments, up to `limit`, delivered by `deadline`; at least those already
    /// taken.
    fn capacity(&self, deadline: f64, limit: u64) -> u64 {
        let (mut fits, mut fails) = (0, limit + 1);
        while fails - fits > 1 {
            let middle = fits + (fails - fits) / 2;
            if self.finish(middle) <= deadline { fits = middle } else { fails = middle }
        }
        fits.max(self.least.min(limit))
    }
}

/// The same number of bytes for each path; each share is padded to whole segments (assumption 4).
pub fn equal(octets: u64, stripes: &[Stripe]) -> Vec<u64> {
    let paths = stripes.len().max(1) as u64;
    let share = |i: u64| octets / paths + u64::from(i < octets % paths);
    (0..).zip(stripes).map(|(i, stripe)| stripe.holding(share(i))).collect()
}

/// Shares that complete the file as early as possible. Bisection finds the common finish time (the
/// water level), and every path carries what it can deliver by then. A late or slow session carries
/// less, perhaps nothing.
pub fn dynamic(octets: u64, stripes: &[Stripe]) -> Vec<u64> {
    let limits: Vec<u64> = stripes.iter().map(|s| s.holding(octets)).collect();
    let counts_by = |deadline: f64| -> Vec<u64> {
        stripes.iter().zip(&limits).map(|(stripe, &limit)| stripe.capacity(deadline, limit)).collect()
    };
    // A single path could carry everything, which gives an upper bound of the level.
    let alone = stripes.iter().zip(&limits).map(|(stripe, &limit)| stripe.finish(limit));
    let (mut low, mut high) = (0.0, alone.fold(f64::INFINITY, f64::min));
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if carried(&counts_by(middle), stripes) >= u128::from(octets) { high = middle } else { low = middle }
    }
    let mut counts = counts_by(high);
    trim(octets, stripes, &mut counts);
    counts
}

/// Number of bytes that `counts` segments hold.
fn carried(counts: &[u64], stripes: &[Stripe]) -> u128 {
    counts.iter().zip(stripes).map(|(&count, stripe)| u128::from(count) * u128::from(stripe.mss)).sum()
}

/// Removes superfluous segments from the path that would end last: at the water level, several
/// paths may gain their last segment at the same time.
fn trim(octets: u64, stripes: &[Stripe], counts: &mut [u64]) {
    loop {
        let surplus = carried(counts, stripes).saturating_sub(u128::from(octets));
        let last = (0..stripes.len())
            .filter(|&i| counts[i] > stripes[i].least && u128::from(stripes[i].mss) <= surplus)
            .max_by(|&a, &b| stripes[a].finish(counts[a]).total_cmp(&stripes[b].finish(counts[b])));
        match last {
            Some(i) => counts[i] -= 1,
            None => return,
        }
    }
}
