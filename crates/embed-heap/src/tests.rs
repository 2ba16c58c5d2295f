use std::vec::Vec;

use super::*;

/// An arena over `memory`, without a machine.
fn arena(memory: &mut [u64]) -> Arena {
    let (rest, left) = (memory.as_mut_ptr().cast(), size_of_val(memory));
    Arena { rest, left, pools: [Pool::NONE; 3] }
}

fn layout(octets: usize) -> Layout {
    let align = if octets == 24 || octets == 20 { 8 } else { 1 };
    Layout::from_size_align(octets, align).unwrap()
}

#[test]
fn blocks_are_separate_aligned_and_reused() {
    let blocks = [Blocks::references(2), Blocks::octets(33, 3), Blocks::octets(100, 1)];
    let heap = blocks.iter().map(|blocks| blocks.heap()).sum::<usize>();
    let mut memory = std::vec![0; (heap + lasting(13)) / 8];
    let mut arena = arena(&mut memory);
    let lasts = arena.allocate(layout(13)) as usize;
    assert!(arena.cut(blocks));
    let mut all: Vec<(usize, usize)> = std::vec![(lasts, 13)];
    // A request goes to the smallest blocks that fit, and to larger ones if those are used up.
    for octets in [24, 20, 33, 25, 1, 90] {
        let at = arena.allocate(layout(octets));
        assert!(!at.is_null() && (at as usize).is_multiple_of(ALIGNMENT));
        // SAFETY: the block has this length.
        unsafe { at.write_bytes(0xff, octets) };
        all.push((at as usize, octets));
    }
    assert!(arena.allocate(layout(1)).is_null() && arena.allocate(layout(101)).is_null());
    let mut places = all.clone();
    places.sort_unstable();
    assert!(places.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{places:?}");
    let end = memory.as_ptr() as usize + heap + lasting(13);
    assert!(places.last().unwrap().0 + 90 <= end && places[0].0 == memory.as_ptr() as usize);

    // What lasts is never given again.
    for (at, _) in &all {
        // SAFETY: it was allocated above, and nothing uses it.
        unsafe { arena.free(*at as *mut u8) };
    }
    let mut again: Vec<usize> =
        [24, 20, 1, 1, 1, 1].map(|octets| arena.allocate(layout(octets)) as usize).to_vec();
    again.sort_unstable();
    let mut blocks: Vec<usize> = all[1..].iter().map(|(at, _)| *at).collect();
    blocks.sort_unstable();
    assert_eq!(again, blocks);
    assert!(arena.allocate(layout(1)).is_null() && arena.allocate(layout(24)).is_null());
}

#[test]
fn too_little_memory_and_too_much_alignment_are_refused() {
    let mut memory = [0; 4];
    let mut arena = arena(&mut memory);
    assert!(arena.allocate(Layout::from_size_align(8, 16).unwrap()).is_null());
    assert!(arena.allocate(layout(33)).is_null());
    assert!(!arena.cut([Blocks::octets(8, 5), Blocks::NONE, Blocks::NONE]));
}
