//! Behaviour of the emulated host outside of TCP.

use anabranch_packetdrill::{Outcome, run};

/// A script that continues after a listener has accepted descriptor 4. The round trip is 100 ms.
fn after_accept(rest: &str) -> Outcome {
    run(&format!(
        "`sysctl -q net.ipv4.tcp_wmem=\"4096 50000 4194304\"`\n\
         0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
         +0 bind(3, ..., ...) = 0\n\
         +0 listen(3, 1) = 0\n\
         +0 < S 0:0(0) win 60000 <mss 1000>\n\
         +0 > S. 0:0(0) ack 1 <mss 1460>\n\
         +.1 < . 1:1(0) ack 1 win 60000\n\
         +0 accept(3, ..., ...) = 4\n\
         {rest}\n"
    ))
}

fn failure(outcome: Outcome) -> String {
    let Outcome::Failed(place) = outcome else { panic!("{outcome:?}") };
    place.message
}

#[test]
fn the_error_queue_has_timestamps_of_writes() {
    let script = |nanos: u32, byte: u32| {
        let message = |kind: &str, nanos: u32| {
            format!(
                "+0 recvmsg(4, {{msg_name(...)=..., msg_iov(1)=[{{...,0}}], msg_flags=MSG_ERRQUEUE, \
                 msg_control=[{{cmsg_level=SOL_SOCKET, cmsg_type=SCM_TIMESTAMPING, \
                 cmsg_data={{scm_sec=0,scm_nsec={nanos}}}}}, \
                 {{cmsg_level=CMSG_LEVEL_IP, cmsg_type=CMSG_TYPE_RECVERR, \
                 cmsg_data={{ee_errno=ENOMSG, ee_info={kind}, ee_data={byte}}}}}]}}, MSG_ERRQUEUE) = 0\n"
            )
        };
        after_accept(&format!(
            "+0 setsockopt(4, SOL_SOCKET, SO_TIMESTAMPING, [SOF_TIMESTAMPING_TX_SOFTWARE | \
             SOF_TIMESTAMPING_TX_ACK | SOF_TIMESTAMPING_OPT_ID], 4) = 0\n\
             +0 write(4, ..., 0) = 0\n\
             +0 write(4, ..., 300) = 300\n\
             +0 > P. 1:301(300) ack 1\n\
             +.1 < . 1:1(0) ack 301 win 60000\n\
             {}{}\
             +0 recvmsg(4, {{msg_iov(1)=[{{...,0}}]}}, MSG_ERRQUEUE) = -1 EAGAIN\n",
            message("SCM_TSTAMP_SND", 100_000_000),
            message("SCM_TSTAMP_ACK", nanos),
        ))
    };
    assert_eq!(script(200_000_000, 299), Outcome::Passed);
    assert!(failure(script(210_000_000, 299)).contains("time"));
    assert!(failure(script(200_000_000, 300)).contains("ee_data"));
}

/// 50,000 bytes of memory hold a buffer of 30 segments as long as there is any room. Two windows of
/// 80 segments, at 2304 bytes each, hold 12 such buffers.
#[test]
fn a_send_buffer_grows_with_the_window() {
    let outcome = after_accept(
        "+0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n\
         +0 write(4, ..., 400000) = 70000\n\
         +.1 < . 1:1(0) ack 10001 win 60000\n\
         +.1 < . 1:1(0) ack 30001 win 60000\n\
         +.1 < . 1:1(0) ack 70001 win 60000\n\
         +0 write(4, ..., 400000) = 360000",
    );
    assert_eq!(outcome, Outcome::Passed);
}

#[test]
fn peeking_takes_nothing() {
    let outcome = after_accept(
        "+0 < P. 1:301(300) ack 1 win 60000\n\
         +0 > . 1:1(0) ack 301\n\
         +0 recv(4, ..., 200, MSG_PEEK) = 200\n\
         +0 read(4, ..., 1000) = 300",
    );
    assert_eq!(outcome, Outcome::Passed);
}

/// Accurate ECN is another protocol.
#[test]
fn accurate_ecn_is_not_applicable() {
    let outcome = after_accept("+0 `sysctl -q net.ipv4.tcp_ecn=3`");
    assert!(
        matches!(&outcome, Outcome::NotApplicable(place) if place.message.contains("accurate ECN")),
        "{outcome:?}"
    );
}
