//! No text makes the runner panic or run forever.

use anabranch_packetdrill::{Outcome, run};
use anabranch_testkit::prng::Prng;

use crate::own_scripts;

#[test]
fn scripts_that_are_cut() {
    for (_, text) in own_scripts() {
        for (at, _) in text.char_indices().step_by(11) {
            run(&text[..at]);
            run(&text[at..]);
        }
    }
}

#[test]
fn scripts_with_random_changes() {
    let scripts = own_scripts();
    let mut prng = Prng::new(1);
    let pieces = [
        "0",
        "9",
        "4294967295",
        "-1",
        " ",
        "(",
        ")",
        "<",
        ">",
        ".",
        "+",
        "~",
        "`",
        "%{",
        "}%",
        "[",
        "{",
        "|",
        "=",
        "é",
    ];
    for round in 0..4000 {
        let (_, text) = &scripts[round % scripts.len()];
        let mut chars: Vec<String> = text.chars().map(String::from).collect();
        for _ in 0..=prng.below(3) {
            let at = prng.below(chars.len() as u64) as usize;
            match prng.below(3) {
                0 => {
                    chars.remove(at);
                }
                1 => chars.insert(at, pieces[prng.below(pieces.len() as u64) as usize].to_owned()),
                _ => chars[at] = pieces[prng.below(pieces.len() as u64) as usize].to_owned(),
            }
        }
        run(&chars.concat());
    }
}

/// As left by a full disk: a script that tests nothing does not pass.
#[test]
fn scripts_without_events() {
    for text in
        ["", "\n", "// Nothing yet.\n", "--tolerance_usecs=10000\n", "`sysctl -q net.ipv4.tcp_sack=1`\n"]
    {
        assert!(matches!(run(text), Outcome::Invalid(_)), "{text:?}: {:?}", run(text));
    }
}

#[test]
fn hostile_texts() {
    for text in [
        "".to_owned(),
        "(".repeat(100_000),
        format!("+0 f({}", "[".repeat(100_000)),
        format!("+0 %{{ assert {}1 }}%", "(".repeat(100_000)),
        format!("+0 %{{ assert {}1 }}%", "not ".repeat(100_000)),
        format!("+0 %{{ assert {}1 }}%", "-".repeat(100_000)),
        "+1000000 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n".repeat(50_000),
        "+0 close(9223372036854775807) = 0".to_owned(),
        "`sysctl -q net.ipv4.tcp_rmem=\"1 2 99999999999999999999\"`".to_owned(),
        "--tolerance_usecs=99999999999999999999".to_owned(),
    ] {
        run(&text);
    }
}
