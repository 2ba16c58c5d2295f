//! The earliest of many deadlines, without a search through all of them.

use alloc::vec::Vec;

use crate::time::Instant;

/// Place of a slot that is not in the heap.
const OUT: u32 = u32::MAX;

/// At most one deadline for each of the slots 0.., in a binary heap that tracks the place of each
/// slot.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    heap: Vec<(Instant, u32)>,
    places: Vec<u32>,
}

impl Deadlines {
    /// The earliest deadline and its slot.
    pub(super) fn first(&self) -> Option<(Instant, usize)> {
        self.heap.first().map(|(at, slot)| (*at, *slot as usize))
    }

    /// Sets or removes the deadline of `slot`.
    pub(super) fn set(&mut self, slot: usize, at: Option<Instant>) {
        if self.places.len() <= slot {
            self.places.resize(slot + 1, OUT);
        }
        let place = self.places[slot];
        match at {
            Some(at) if place == OUT => {
                self.heap.push((at, slot as u32));
                self.up(self.heap.len() - 1);
            }
            Some(at) => {
                self.heap[place as usize].0 = at;
                let place = self.up(place as usize);
                self.down(place);
            }
            None if place == OUT => {}
            None => {
                self.places[slot] = OUT;
                self.heap.swap_remove(place as usize);
                if (place as usize) < self.heap.len() {
                    let place = self.up(place as usize);
                    self.down(place);
                }
            }
        }
    }

    fn up(&mut self, mut place: usize) -> usize {
        while place > 0 && self.heap[place] < self.heap[(place - 1) / 2] {
            self.heap.swap(place, (place - 1) / 2);
            self.note(place);
            place = (place - 1) / 2;
        }
        self.note(place);
        place
    }

    fn down(&mut self, mut place: usize) {
        loop {
            let children = 2 * place + 1..self.heap.len().min(2 * place + 3);
            let Some(least) = children.min_by_key(|child| self.heap[*child]) else { break };
            if self.heap[place] <= self.heap[least] {
                break;
            }
            self.heap.swap(place, least);
            self.note(place);
            place = least;
        }
        self.note(place);
    }

    fn note(&mut self, place: usize) {
        if let Some((_, slot)) = self.heap.get(place) {
            self.places[*slot as usize] = place as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_testkit::prng::Prng;

    #[test]
    fn it_agrees_with_a_search_through_all() {
        let mut prng = Prng::new(5);
        let mut all = [None; 40];
        let mut deadlines = Deadlines::default();
        for step in 0..20_000 {
            let slot = prng.below(40) as usize;
            let at = prng.chance(70).then(|| Instant::from_nanos(prng.below(1000)));
            all[slot] = at;
            deadlines.set(slot, at);
            let first = all.iter().enumerate().filter_map(|(slot, at)| at.map(|at| (at, slot))).min();
            assert_eq!(deadlines.first(), first, "seed 5, step {step}");
        }
    }
}
