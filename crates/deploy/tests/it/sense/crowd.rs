//! Ten thousand senders at one sink.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration as Wait;

use anabranch_core::time::Duration;
use anabranch_net::clock::Clock;
use anabranch_net::rdca::{Sense, SenseEvent, sender_config};
use anabranch_secure::datagram::Clear;
use anabranch_secure::entropy;
use anabranch_testkit::daemon::home;

use super::{folder, sink};

const SENDERS: usize = 10_000;
const MOST_BYTES: u64 = 256 << 20;

fn metric(address: &str, name: &str) -> u64 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().parse().unwrap()
}

/// All senders share one socket: a session belongs to no address.
#[test]
fn ten_thousand_senders_need_less_than_256_mib() {
    let folder = folder();
    let arguments = ["--listen", &home(), "--insecure", "--out", "out.jsonl", "--metrics", "127.0.0.1:0"];
    let daemon = sink(folder.path(), &arguments);
    let metrics = daemon.says("metrics on http://");
    let metrics = metrics.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(&daemon.address).unwrap();
    socket.set_read_timeout(Some(Wait::from_millis(1))).unwrap();
    let clock = Clock::start();
    let (mut buffer, mut out) = (vec![0; 2048], Vec::new());
    let mut open = Vec::new();
    let mut left = SENDERS;
    let mut confirmed = 0;
    // A few hundred handshakes at a time, so that the sink's receive buffer holds them.
    while confirmed < SENDERS {
        while left > 0 && open.len() < 200 {
            left -= 1;
            let name = format!("sensor-{left}").parse().unwrap();
            let mut sense = Sense::new(sender_config(400, 4), Clear, (&name, left as u64), None, entropy);
            sense.open(clock.now());
            sense.write(clock.now(), 1, b"21.5").unwrap();
            open.push(sense);
        }
        let now = clock.now();
        for sense in &mut open {
            if sense.next_timeout().is_some_and(|at| at <= now) {
                sense.handle_timeout(now);
            }
            while sense.poll_transmit(now, &mut out) {
                let _ = socket.send(&out);
            }
        }
        while let Ok(n) = socket.recv(&mut buffer) {
            // Each takes only what is for its own session.
            let now = clock.now() + Duration::ZERO;
            open.iter_mut().for_each(|sense| sense.handle_datagram(now, &buffer[..n]));
        }
        open.retain_mut(|sense| {
            let is_done = |event| matches!(event, SenseEvent::Confirmed { .. });
            let done = std::iter::from_fn(|| sense.poll_event()).any(is_done);
            confirmed += usize::from(done);
            !done
        });
    }
    assert_eq!(metric(&metrics, "anabranch_sink_senders "), SENDERS as u64);
    let resident = metric(&metrics, "process_resident_memory_bytes ");
    println!("{SENDERS} senders: {resident} bytes resident");
    assert!(resident < MOST_BYTES, "{resident}");
}
