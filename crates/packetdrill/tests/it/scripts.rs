//! Every own script passes, and names what it tests.

use anabranch_packetdrill::{Outcome, run};

use crate::own_scripts;

#[test]
fn own_scripts_pass() {
    let scripts = own_scripts();
    assert!(scripts.len() >= 60, "{} scripts", scripts.len());
    let mut failures = Vec::new();
    for (path, text) in &scripts {
        let outcome = run(text);
        if outcome != Outcome::Passed {
            failures.push(outcome.report(&path.display().to_string()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn own_scripts_begin_with_a_clause() {
    for (path, text) in own_scripts() {
        assert!(
            text.starts_with("// RFC "),
            "{} does not begin with the clause that it tests",
            path.display()
        );
    }
}

/// A difference is found in every field that a script can name.
#[test]
fn differences_are_found() {
    let script = |packet: &str| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
             +0 bind(3, ..., ...) = 0\n\
             +0 listen(3, 1) = 0\n\
             +0 < S 0:0(0) win 60000 <mss 1012,sackOK,nop,nop,TS val 7 ecr 0>\n\
             +0 > S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,TS val 100 ecr 7>\n\
             +.1 < . 1:1(0) ack 1 win 60000 <nop,nop,TS val 8 ecr 100>\n\
             +0 accept(3, ..., ...) = 4\n\
             +0 write(4, ..., 2000) = 2000\n\
             {packet}\n"
        )
    };
    assert_eq!(run(&script("+0 > P. 1:2001(2000) ack 1 win 65535 <TS val 200 ecr 8>")), Outcome::Passed);
    for (packet, difference) in [
        ("+0 > P. 2:2002(2000) ack 1 <...>", "sequence number"),
        ("+0 > P. 1:2001(2000) ack 2 <...>", "acknowledgement number"),
        ("+0 > P. 1:1401(1400) ack 1 <...>", "length"),
        ("+0 > P. 1:2001(2000) ack 1 win 7 <...>", "window"),
        ("+0 > FP. 1:2001(2000) ack 1 <...>", "FIN"),
        ("+0 > R. 1:2001(2000) ack 1 <...>", "RST"),
        ("+0 > P. 1:2001(2000) ack 1", "option TS"),
        ("+0 > P. 1:2001(2000) ack 1 <TS val 200 ecr 9>", "option TS ecr"),
        ("+0 > P. 1:2001(2000) ack 1 <sack 1:2,TS val 200 ecr 8>", "option sack"),
        ("+.1 > P. 1:2001(2000) ack 1 <...>", "it left at"),
        ("+0 > P. 1:3001(3000) ack 1 <...>", "got"),
        ("+0 write(4, ..., 10) = 11", "expected 11, got 10"),
        ("+0 read(4, ..., 10) = 0", "blocks"),
        ("+0 %{ assert tcpi_snd_cwnd == 9 }%", "tcpi_snd_cwnd is 10"),
    ] {
        let Outcome::Failed(place) = run(&script(packet)) else { panic!("{packet}") };
        assert_eq!(place.line, 9, "{packet}");
        assert!(place.message.contains(difference), "{packet}: {}", place.message);
    }
}
