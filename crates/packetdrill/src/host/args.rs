//! A system call's arguments and reply.

use anabranch_core::time::Instant;

use crate::outcome::{Step, Stop};
use crate::script::{Call, Value};

/// A call that has been made, possibly several times, and has not returned.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    pub(crate) line: usize,
    pub(crate) call: &'a Call,
    /// When the program made the call.
    pub(crate) since: Instant,
    /// True if it was made before and had to wait.
    pub(crate) began: bool,
    /// Number of bytes that a blocked write has already placed.
    pub(crate) progress: usize,
}

/// Result of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    /// A result.
    Done(i64),
    /// -1 and an error.
    Error(&'static str),
    /// The call blocks, until the given time if there is one.
    Wait(Option<Instant>),
}

/// The arguments of a call.
pub(super) struct Args<'a> {
    pub(super) line: usize,
    pub(super) name: &'a str,
    pub(super) values: &'a [Value],
    /// The result that the script expects.
    pub(super) wanted: Option<i64>,
    pub(super) began: bool,
    pub(super) since: Instant,
}

impl<'a> Args<'a> {
    pub(super) fn get(&self, index: usize) -> Option<&'a Value> {
        self.values.get(index)
    }

    pub(super) fn value(&self, index: usize) -> Step<&'a Value> {
        let name = self.name;
        self.values.get(index).ok_or_else(|| {
            Stop::invalid(self.line, format_args!("`{name}` needs at least {} arguments", index + 1))
        })
    }

    fn wrong(&self, index: usize, wanted: &str) -> Stop {
        let (name, place) = (self.name, index + 1);
        Stop::invalid(self.line, format_args!("argument {place} of `{name}` must be {wanted}"))
    }

    pub(super) fn int(&self, index: usize) -> Step<i64> {
        int(self.value(index)?).ok_or_else(|| self.wrong(index, "a number"))
    }

    /// A length in bytes.
    pub(super) fn size(&self, index: usize) -> Step<usize> {
        let size = usize::try_from(self.int(index)?).ok().filter(|size| *size <= LARGEST);
        size.ok_or_else(|| self.wrong(index, "a length of at most 1 GiB"))
    }

    /// Constants joined by `|`; 0 and `...` are none.
    pub(super) fn words(&self, index: usize) -> Step<Vec<&'a str>> {
        words(self.value(index)?).ok_or_else(|| self.wrong(index, "constants"))
    }
}

/// A number, or a list of one.
pub(super) fn int(value: &Value) -> Option<i64> {
    match value {
        Value::Int(value) => Some(*value),
        Value::List(list) => match &list[..] {
            [only] => int(only),
            _ => None,
        },
        _ => None,
    }
}

/// Constants joined by `|`.
pub(super) fn words(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::Any | Value::Int(0) => Some(Vec::new()),
        Value::Word(word) => Some(vec![word]),
        Value::Or(all) => {
            let lists: Option<Vec<_>> = all.iter().map(words).collect();
            Some(lists?.concat())
        }
        _ => None,
    }
}

/// The field `name` of a structure.
pub(super) fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Fields(fields) => {
            fields.iter().find(|(found, _)| found.as_deref() == Some(name)).map(|(_, value)| value)
        }
        _ => None,
    }
}

/// The longest buffer of a call.
const LARGEST: usize = 1 << 30;
