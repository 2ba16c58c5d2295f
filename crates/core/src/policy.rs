//! Policies that are not ours: a machine's configuration names one and holds what makes it.

use alloc::boxed::Box;
use core::fmt;

/// A policy that somebody else has written: `P` is its trait, `A` what one is made from. One is made for each connection or
/// transfer. Two are the same if their names are.
pub struct Custom<P: ?Sized, A = ()> {
    name: &'static str,
    make: fn(A) -> Box<P>,
}

impl<P: ?Sized, A> Custom<P, A> {
    /// A policy and what reports and scenario files call it.
    pub const fn new(name: &'static str, make: fn(A) -> Box<P>) -> Self {
        Self { name, make }
    }

    /// What it is called.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Makes one.
    pub(crate) fn make(&self, from: A) -> Box<P> {
        (self.make)(from)
    }
}

impl<P: ?Sized, A> Clone for Custom<P, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: ?Sized, A> Copy for Custom<P, A> {}

impl<P: ?Sized, A> PartialEq for Custom<P, A> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl<P: ?Sized, A> Eq for Custom<P, A> {}

impl<P: ?Sized, A> fmt::Debug for Custom<P, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Custom").field(&self.name).finish()
    }
}
