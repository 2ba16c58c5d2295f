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

/// The same for the options of Multipath TCP.
#[test]
fn differences_of_multipath_options_are_found() {
    let script = |packet: &str| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_MPTCP) = 3\n\
             +0 bind(3, ..., ...) = 0\n\
             +0 listen(3, 1) = 0\n\
             +0 `ip mptcp endpoint add 192.168.0.2 signal`\n\
             +0 < S 0:0(0) win 60000 <mss 1000,mpcapable v1 flags[flag_h] nokey>\n\
             +0 > S. 0:0(0) ack 1 <mss 1460,mpcapable v1 flags[flag_h] key[skey]>\n\
             +.1 < . 1:1(0) ack 1 win 60000 <mpcapable v1 flags[flag_h] key[ckey=2,skey]>\n\
             +0 accept(3, ..., ...) = 4\n\
             {packet}\n"
        )
    };
    let announced = "add_address address_id=1 addr[saddr1] hmac=auto";
    let before = format!("+0 > . 1:1(0) ack 1 <dss dack4=1,{announced}>\n");
    assert_eq!(run(&script(&before)), Outcome::Passed);
    for (options, difference) in [
        (format!("dss dack4=2,{announced}"), "DATA_ACK"),
        (announced.to_owned(), "it carries"),
        ("dss dack4=1".to_owned(), "it carries"),
        (format!("dss dack4=1 dsn4=1,{announced}"), "mapping"),
        (format!("dss dack4=1,{announced},mp_prio"), "missing"),
        ("dss dack4=1,add_address address_id=2 addr[saddr1] hmac=auto".to_owned(), "the id"),
        ("dss dack4=1,add_address addr[saddr1] hmac=7".to_owned(), "the HMAC"),
        ("dss dack4=1,add_address addr[saddr1] port=9 hmac=auto".to_owned(), "the port"),
        ("dss dack4=1,add_address addr[saddr1=inet_addr(\"1.2.3.4\")] hmac=auto".to_owned(), "the address"),
    ] {
        let outcome = run(&script(&format!("+0 > . 1:1(0) ack 1 <{options}>")));
        let Outcome::Failed(place) = outcome else { panic!("{options}: {outcome:?}") };
        assert!(place.message.contains(difference), "{options}: {}", place.message);
    }
    for (options, difference) in [
        ("dss dack4=1 dsn4=2 ssn=1 dll=9 nocs", "data sequence number"),
        ("dss dack4=1 dsn4=1 ssn=2 dll=9 nocs", "subflow sequence number"),
        ("dss dack4=1 dsn4=1 ssn=1 dll=8 nocs", "data-level length"),
        ("dss dack4=1 dsn4=1 ssn=1 dll=9", "checksum"),
        ("dss dack4=1 dsn4=1 ssn=1 dll=9 nocs fin", "DATA_FIN"),
        ("mpcapable v1 flags[flag_h] key[ckey,skey] mpcdatalen 9", "missing"),
    ] {
        let packet = format!("{before}+0 write(4, ..., 9) = 9\n+0 > P. 1:10(9) ack 1 <{options}>");
        let outcome = run(&script(&packet));
        let Outcome::Failed(place) = outcome else { panic!("{options}: {outcome:?}") };
        assert!(place.message.contains(difference), "{options}: {}", place.message);
    }
}
