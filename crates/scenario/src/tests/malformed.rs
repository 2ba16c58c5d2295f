//! Invalid files: each gives one clear error at its position, without Rust terms.

use super::*;

/// Two nodes, a link, a transfer, a radio and traffic, in which the tests replace parts.
const GOOD: &str = r#"name = "good"
stop = "60 s"
[radio]
range = "50 m"
[tcp.default]
mss = 80
[[node]]
name = "a"
kind = "node"
position = [0, 0]
[[node]]
name = "b"
kind = "node"
position = [40, 0]
[[node]]
name = "c"
[[link]]
name = "cable"
from = "b"
to = "c"
rate = "1 Mbit/s"
delay = "5 ms"
[[transfer]]
name = "bulk"
kind = "tcp"
from = "a"
to = "c"
bytes = "1 kB"
[[traffic]]
name = "readings"
kind = "cbr"
from = "a"
to = "b"
payload = "20 B"
interval = "1 s"
[[event]]
at = "5 s"
action = "link-down"
from = "b"
to = "c"
"#;

/// Text in the valid file, and its replacement.
const WRONG: &[(&str, &str)] = &[
    ("stop = \"60 s\"", "stop = \"60\""),
    ("stop = \"60 s\"", "stop = 60"),
    ("stop = \"60 s\"", "stop = \"-60 s\""),
    ("stop = \"60 s\"", "stop = \"0 s\""),
    ("stop = \"60 s\"", "stop = \"1e3 s\""),
    ("stop = \"60 s\"", "stop = \"60 parsecs\""),
    ("stop = \"60 s\"", "stop = \"99999999999999999999 h\""),
    ("stop = \"60 s\"", "stop = \"60 s"),
    ("stop = \"60 s\"", "stop \"60 s\""),
    ("stop = \"60 s\"", "stop = \"60 s\"\nstop = \"61 s\""),
    ("stop = \"60 s\"", "stop = [\"60 s\"]"),
    ("stop = \"60 s\"", "stop = \"60 s\"\nsede = 3"),
    ("stop = \"60 s\"", "stop = \"60 s\"\nseed = -1"),
    ("stop = \"60 s\"", "stop = \"60 s\"\nseed = 1.5"),
    ("[radio]", "[radoi]"),
    ("[radio]", "[[radio]]"),
    ("[radio]", "[radio"),
    ("range = \"50 m\"", "range = \"50 feet\""),
    ("range = \"50 m\"", "range = \"0 m\""),
    ("range = \"50 m\"", "range = true"),
    ("range = \"50 m\"", "range = \"50 m\"\nloss = 2"),
    ("range = \"50 m\"", "range = \"50 m\"\nloss = \"120 %\""),
    ("range = \"50 m\"", "range = \"50 m\"\nmax_be = 99"),
    ("range = \"50 m\"", "range = \"50 m\"\nphy = \"lora\""),
    ("range = \"50 m\"", "range = \"50 m\"\ncapture = { frist = 2.0 }"),
    ("range = \"50 m\"", "range = \"10 m\""),
    ("mss = 80", "mss = 0"),
    ("mss = 80", "mss = 70000"),
    ("mss = 80", "mss = \"80 B\""),
    ("mss = 80", "msss = 80"),
    ("mss = 80", "mss = 80\nsack = \"maybe\""),
    ("mss = 80", "mss = 80\ncongestion = \"cubicc\""),
    ("mss = 80", "mss = 80\ndelayed_ack = 999"),
    ("name = \"a\"", "nmae = \"a\""),
    ("name = \"a\"", "name = \"b\""),
    ("name = \"a\"", "name = \"\""),
    ("name = \"a\"", "name = 7"),
    ("position = [0, 0]", "position = [0]"),
    ("position = [0, 0]", "position = [0, 0, 0]"),
    ("position = [0, 0]", "position = \"here\""),
    ("position = [0, 0]", "position = [1e99, 0]"),
    ("[[link]]", "[link]"),
    ("from = \"b\"\nto = \"c\"\nrate", "from = \"b\"\nto = \"d\"\nrate"),
    ("from = \"b\"\nto = \"c\"\nrate", "from = \"b\"\nto = \"b\"\nrate"),
    ("from = \"b\"\nto = \"c\"\nrate", "from = \"b\"\nrate"),
    ("rate = \"1 Mbit/s\"", "rate = \"1 Mbps\""),
    ("rate = \"1 Mbit/s\"", "rate = \"fast\""),
    ("rate = \"1 Mbit/s\"", "rate = \"0 bit/s\""),
    ("delay = \"5 ms\"", "delay = 10"),
    ("delay = \"5 ms\"", "delay = 0.01"),
    ("delay = \"5 ms\"", "delay = \"5 ms\"\nmtu = 10"),
    ("delay = \"5 ms\"", "delay = \"5 ms\"\nqueue = \"1.5 packets\""),
    ("kind = \"tcp\"", "kind = \"ftp\""),
    ("kind = \"tcp\"", "kind = \"tcp\"\ntcp = \"fast\""),
    ("kind = \"tcp\"", "kind = \"tcp\"\ngateways = 2"),
    ("bytes = \"1 kB\"", "bytes = \"1.5 B\""),
    ("bytes = \"1 kB\"", "bytes = \"1 kB\"\nfile = \"x\""),
    ("bytes = \"1 kB\"", "bytes = \"1 kB\"\nstart = \"2 min\""),
    ("kind = \"cbr\"", "kind = \"vbr\""),
    ("kind = \"cbr\"", "over = \"udp\""),
    ("payload = \"20 B\"", "payload = 20"),
    ("payload = \"20 B\"", "payload = \"2 kB\""),
    ("interval = \"1 s\"", "inteval = \"1 s\""),
    ("interval = \"1 s\"", "port = 0"),
    ("at = \"5 s\"", "at = \"2 h\""),
    ("action = \"link-down\"", "action = \"link-dwon\""),
    ("action = \"link-down\"", "action = \"set-rate\""),
    ("action = \"link-down\"", "action = \"fail-node\""),
];

#[test]
fn the_good_file_is_good() {
    Source::new("good.toml", GOOD).scenario().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn every_wrong_file_has_one_clear_error() {
    assert!(WRONG.len() >= 60, "{}", WRONG.len());
    let faults: Vec<String> = WRONG.iter().filter_map(|(good, wrong)| fault(good, wrong)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The problem with the error of an invalid file, if there is one.
fn fault(good: &str, wrong: &str) -> Option<String> {
    assert!(GOOD.contains(good), "{good}");
    let text = GOOD.replacen(good, wrong, 1);
    let Err(error) = Source::new("bad.toml", text.as_str()).scenario() else {
        return Some(format!("{wrong}: accepted"));
    };
    let said = error.to_string();
    let line = said.strip_prefix("bad.toml:").and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
    if !line.is_some_and(|line| (1..=text.lines().count() + 1).contains(&line)) {
        return Some(format!("{wrong}: no line in {said}"));
    }
    let of_the_reader = ["struct", "variant", "enum ", "newtype", "u16", "u32", "u64", "Some(", "::", "\n"];
    let word = of_the_reader.iter().find(|word| error.message.contains(*word))?;
    Some(format!("{wrong}: {word:?} in {said}"))
}
