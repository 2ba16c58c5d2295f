//! A browser loads pages through the proxy.

use anabranch_testkit::browser::Browser;
use anabranch_testkit::daemon::Daemon;
use anabranch_testkit::netns::within;
use serde_json::{Value, json};

use super::{Links, Means, SERVER, given, path, python};

const PORT: u16 = 8000;
/// Parts of a page, each over a connection of its own, and their size: as in `peer.py`.
const PARTS: u64 = 40;
const SIZE: u64 = 50_000;

/// Size and sum of a part, as the page calculates it.
fn part(begin: u64) -> Value {
    let sum = (0..SIZE).fold(0, |sum, i| (sum + (begin + i) % 256 * (1 + i % 251)) % 65_521);
    json!([SIZE, sum])
}

#[test]
fn a_browser_gets_every_part_of_a_page() {
    let Some(browser) = Browser::find() else { return };
    let Some(links) = Links::open(&[path(50, 5, 0), path(20, 20, 0)]) else { return };
    let mut server = python(links.paths.names()[1]);
    server.args(["pages", &PORT.to_string()]);
    let _server = Daemon::spawn(server);
    let carrier = links.carrier(Means::Ours(&[]));
    let (url, proxy) = (format!("http://{SERVER}:{PORT}/"), format!("socks5://127.0.0.1:{}", carrier.port()));
    let expected = Value::from((0..PARTS).map(part).collect::<Vec<_>>());
    for load in 0..given("PAGES", 2) {
        let answer = within(&links.home, || browser.visit(&url, &proxy));
        let parts = serde_json::from_str(&answer.json).unwrap_or(Value::Null);
        assert_eq!(parts, expected, "load {load}: {answer:?}");
    }
}
