//! Policies supplied by the user. A machine's configuration names the policy and holds its
//! constructor.

use alloc::boxed::Box;
use core::fmt;

/// A policy supplied by the user: `P` is the trait that it implements, `A` the argument of its
/// constructor. Each connection or transfer constructs its own instance. Two `Custom` values are
/// equal if their names (and numbers, if any) are equal.
pub struct Custom<P: ?Sized, A = ()> {
    name: &'static str,
    make: Make<P, A>,
}

/// The constructor. Function pointers keep a configuration plain data (`Copy`, `Eq`).
enum Make<P: ?Sized, A> {
    Plain(fn(A) -> Box<P>),
    Numbered(usize, fn(usize, A) -> Box<P>),
}

impl<P: ?Sized, A> Custom<P, A> {
    /// Names a policy and its constructor. Reports and scenario files show `name`.
    pub const fn new(name: &'static str, make: fn(A) -> Box<P>) -> Self {
        Self { name, make: Make::Plain(make) }
    }

    /// A policy that `make` looks up by `number`. This form serves programs that register policies
    /// at run time and keep them in a list. Two such values are equal if names and numbers are
    /// equal.
    pub const fn numbered(name: &'static str, number: usize, make: fn(usize, A) -> Box<P>) -> Self {
        Self { name, make: Make::Numbered(number, make) }
    }

    /// The name of the policy.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Constructs an instance.
    pub(crate) fn make(&self, from: A) -> Box<P> {
        match self.make {
            Make::Plain(make) => make(from),
            Make::Numbered(number, make) => make(number, from),
        }
    }

    fn number(&self) -> Option<usize> {
        match self.make {
            Make::Plain(_) => None,
            Make::Numbered(number, _) => Some(number),
        }
    }
}

impl<P: ?Sized, A> Clone for Custom<P, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: ?Sized, A> Copy for Custom<P, A> {}

impl<P: ?Sized, A> Clone for Make<P, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: ?Sized, A> Copy for Make<P, A> {}

impl<P: ?Sized, A> PartialEq for Custom<P, A> {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.number()) == (other.name, other.number())
    }
}

impl<P: ?Sized, A> Eq for Custom<P, A> {}

impl<P: ?Sized, A> fmt::Debug for Custom<P, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Custom").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    trait Says: Send {
        fn says(&self) -> usize;
    }

    impl Says for usize {
        fn says(&self) -> usize {
            *self
        }
    }

    #[test]
    fn a_numbered_policy_is_made_from_its_number() {
        let of =
            |number| Custom::<dyn Says, usize>::numbered("same", number, |n, from| Box::new(10 * n + from));
        assert_eq!([of(1).make(2).says(), of(3).make(4).says()], [12, 34]);
        assert!(of(1) == of(1) && of(1) != of(2));
        let plain = Custom::<dyn Says, usize>::new("same", |from| Box::new(from));
        assert!(plain != of(0));
        let shown: String = alloc::format!("{plain:?}");
        assert_eq!(shown, "Custom(\"same\")");
    }
}
