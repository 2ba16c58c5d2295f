//! Values that events refer to by number.

/// A slab: a value has a number until it is taken out.
#[derive(Debug)]
pub(crate) struct Numbered<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Numbered<T> {
    /// Inserts a value and returns its number.
    pub(crate) fn insert(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(thing);
                slot
            }
            None => {
                self.slots.push(Some(thing));
                u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 are pending")
            }
        }
    }

    /// Takes out a value.
    ///
    /// # Panics
    ///
    /// If there is no value with this number.
    pub(crate) fn remove(&mut self, slot: u32) -> T {
        self.free.push(slot);
        self.slots[slot as usize].take().expect("a number is used once")
    }
}
