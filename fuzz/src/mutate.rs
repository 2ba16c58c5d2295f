//! Makes new inputs from others.

/// SplitMix64: equal seeds give equal runs on every machine.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Creates the generator of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A random 64-bit number.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A random number below `n`; 0 if `n` is 0. The bias of the remainder does not matter here.
    pub fn below(&mut self, n: usize) -> usize {
        self.bits().checked_rem(n as u64).unwrap_or(0) as usize
    }
}

/// Boundary values that often reveal faults.
const INTERESTING: [u32; 14] =
    [0, 1, 2, 7, 8, 127, 128, 255, 256, 1460, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff];

/// Changes `input`, possibly with pieces of `other`; the result has at most `max` bytes.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], max: usize, rng: &mut Rng) {
    // Mostly a few changes, occasionally many.
    for _ in 0..1 << rng.below(6) {
        step(input, other, rng);
        if rng.below(3) == 0 {
            break;
        }
    }
    input.truncate(max);
}

fn step(input: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let at = rng.below(input.len());
    let longest = 2 << rng.below(7);
    let len = 1 + rng.below(longest);
    let end = input.len().min(at + len);
    match rng.below(9) {
        0 | 1 => flip(input, at, rng),
        2 => put(input, at, &(rng.bits() as u8).to_be_bytes()),
        3 => interesting(input, at, rng),
        4 => drop(input.drain(at..end)),
        5 => insert(input, at, &random(len, rng)),
        6 => {
            let copy = input[at..end].to_vec();
            let to = rng.below(input.len() + 1);
            insert(input, to, &copy);
        }
        7 => {
            let from = rng.below(other.len());
            insert(input, at, &other[from..other.len().min(from + len)]);
        }
        _ => {
            let from = rng.below(other.len());
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
    }
}

fn flip(input: &mut [u8], at: usize, rng: &mut Rng) {
    if let Some(octet) = input.get_mut(at) {
        *octet ^= 1 << rng.below(8);
    }
}

fn interesting(input: &mut [u8], at: usize, rng: &mut Rng) {
    let value = INTERESTING[rng.below(INTERESTING.len())];
    match rng.below(4) {
        0 => put(input, at, &[value as u8]),
        1 => put(input, at, &(value as u16).to_be_bytes()),
        2 => put(input, at, &value.to_be_bytes()),
        _ => put(input, at, &value.to_le_bytes()),
    }
}

fn put(input: &mut [u8], at: usize, octets: &[u8]) {
    for (place, octet) in input.iter_mut().skip(at).zip(octets) {
        *place = *octet;
    }
}

fn insert(input: &mut Vec<u8>, at: usize, octets: &[u8]) {
    let at = at.min(input.len());
    input.splice(at..at, octets.iter().copied());
}

/// `len` random bytes.
pub fn random(len: usize, rng: &mut Rng) -> Vec<u8> {
    (0..len).map(|_| rng.bits() as u8).collect()
}
