//! SET.
