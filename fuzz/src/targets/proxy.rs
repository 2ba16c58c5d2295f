//! What clients of a proxy say.

use anabranch_host::multipath::proxy::{
    LONGEST_HEAD, Parsed, connect_request, socks_greeting, socks_request,
};

use crate::probe::Probe;

/// The first byte selects the parser; the rest is what a client has said.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((choice, said)) = input.split_first() else { return };
    match choice % 3 {
        0 => check(said, socks_greeting, probe),
        1 => check(said, socks_request, probe),
        _ => check(said, connect_request, probe),
    }
}

/// The result must not depend on how the bytes are divided.
fn check<T: PartialEq + std::fmt::Debug, E: PartialEq + std::fmt::Debug>(
    said: &[u8],
    parse: impl Fn(&[u8]) -> Result<Parsed<T>, E>,
    probe: &mut Probe,
) {
    let whole = parse(said);
    let found = (0..=said.len()).map(|len| parse(&said[..len])).find(|part| *part != Ok(Parsed::More));
    match (&whole, found) {
        (Ok(Parsed::More), None) => assert!(said.len() < 2 * LONGEST_HEAD, "it waits without a limit"),
        (_, Some(first)) => assert_eq!(whole, first, "the whole and its shortest decided part"),
        (_, None) => panic!("{whole:?} at once and never in parts"),
    }
    if let Ok(Parsed::Done(_, len)) = whole {
        assert!(len <= said.len());
    }
    probe.feature(format!("{whole:?}").chars().take(12).collect::<String>());
}
