//! Block-wise transfers with libcoap, over the loopback device.

#![allow(clippy::disallowed_types, reason = "the kernel's sockets run in real time")]

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anabranch_core::coap::{Client, Config, Counters, Event, Failure, Method, Server};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::debian::{find_or_install, skipped};
use bytes::Bytes;

use super::coap_world::body;

const PACKAGE: &str = "libcoap3-bin";
const LEN: usize = 50_000;

/// A client or a server.
enum Machine {
    Client(Client),
    Server(Server),
}

/// A socket, the machine behind it, and its events.
struct End {
    socket: UdpSocket,
    peer: Option<SocketAddr>,
    machine: Machine,
    began: std::time::Instant,
    received: Vec<Bytes>,
    outcome: Option<Result<(), Failure>>,
    /// Number of datagrams of the peer.
    datagrams: u64,
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a port of the loopback device");
    socket.set_read_timeout(Some(std::time::Duration::from_millis(2))).expect("a wait");
    socket
}

impl End {
    fn new(socket: UdpSocket, peer: Option<SocketAddr>, machine: Machine) -> Self {
        let began = std::time::Instant::now();
        Self { socket, peer, machine, began, received: Vec::new(), outcome: None, datagrams: 0 }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    fn counters(&self) -> Counters {
        match &self.machine {
            Machine::Client(client) => client.counters(),
            Machine::Server(server) => server.counters(),
        }
    }

    /// Sends what is to be sent, and waits a little for a datagram or the time-out.
    fn step(&mut self) {
        let now = self.now();
        while let Some(octets) = match &mut self.machine {
            Machine::Client(client) => client.poll_transmit(now),
            Machine::Server(server) => server.poll_transmit(now),
        } {
            let peer = self.peer.expect("a server answers a client");
            let _ = self.socket.send_to(&octets, peer);
        }
        while let Some(event) = match &mut self.machine {
            Machine::Client(client) => client.poll_event(),
            Machine::Server(server) => server.poll_event(),
        } {
            match event {
                Event::Received(body) => self.received.push(body),
                Event::Finished(outcome) => self.outcome = Some(outcome),
                Event::Discarded => panic!("blocks were discarded"),
            }
        }
        let mut buffer = [0; 2000];
        if let Ok((len, from)) = self.socket.recv_from(&mut buffer) {
            self.peer = Some(from);
            self.datagrams += 1;
            let (now, octets) = (self.now(), Bytes::copy_from_slice(&buffer[..len]));
            match &mut self.machine {
                Machine::Client(client) => client.handle_datagram(now, &octets),
                Machine::Server(server) => server.handle_datagram(now, &octets),
            }
        }
        let now = self.now();
        match &mut self.machine {
            Machine::Client(client) if client.next_timeout().is_some_and(|at| at <= now) => {
                client.handle_timeout(now);
            }
            Machine::Server(server) if server.next_timeout().is_some_and(|at| at <= now) => {
                server.handle_timeout(now);
            }
            _ => {}
        }
    }
}

/// A process that is killed on drop.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(program: &Path, arguments: &[&str]) -> Process {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Process(command.spawn().expect("the program starts"))
}

fn config(method: Method) -> Config {
    Config { method, ..Config::default() }
}

fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("anabranch-coap-{name}-{}", std::process::id()))
}

/// Our server while libcoap's client runs with these arguments, the URI last.
fn serve(client: &Path, arguments: &[&str]) -> End {
    let socket = socket();
    let uri = format!("coap://{}/b", socket.local_addr().expect("an address"));
    let server = Server::serving(Config::default(), body(LEN), 1);
    let mut end = End::new(socket, None, Machine::Server(server));
    let mut process = start(client, &[arguments, &[&uri]].concat());
    while process.0.try_wait().expect("its state").is_none() {
        end.step();
        assert!(end.began.elapsed().as_secs() < 60, "libcoap's client takes too long");
    }
    end
}

/// Our client with libcoap's server at this address.
fn ask(address: SocketAddr, client: impl FnOnce(Instant) -> Client) -> End {
    let client = client(Instant::ZERO);
    let mut end = End::new(socket(), Some(address), Machine::Client(client));
    while end.outcome.is_none() {
        end.step();
        assert!(end.began.elapsed().as_secs() < 60, "the transfer takes too long");
    }
    end
}

#[test]
fn libcoap_puts_and_gets_50_kb() {
    let Some(client) = find_or_install("coap-client-notls", PACKAGE) else { return };
    let file = temporary("file");
    fs::write(&file, body(LEN)).expect("a file to send");
    for size in ["1024", "64"] {
        let put = serve(&client, &["-m", "put", "-b", size, "-f", file.to_str().expect("text")]);
        assert!(put.received == [body(LEN)], "Block1 of {size}");
        let out = temporary("out");
        let get = serve(&client, &["-m", "get", "-b", size, "-o", out.to_str().expect("text")]);
        assert!(fs::read(&out).expect("what libcoap received") == body(LEN), "Block2 of {size}");
        let blocks = LEN.div_ceil(size.parse().expect("a size")) as u64;
        assert_eq!((put.datagrams, get.datagrams), (blocks, blocks), "one request for each block");
        fs::remove_file(out).expect("it was there");
    }
    fs::remove_file(file).expect("it was there");
}

#[test]
fn libcoaps_server_takes_and_gives_50_kb() {
    let Some(server) = find_or_install("coap-server-notls", PACKAGE) else { return };
    // The port is free again when the server takes it.
    let address = socket().local_addr().expect("an address");
    let port = address.port().to_string();
    let _process = start(&server, &["-A", "127.0.0.1", "-p", &port, "-d", "4"]);
    for (path, block_size) in [("a", 1024), ("b/c", 64)] {
        let of = |method| Config { block_size, ..config(method) };
        // Messages that come before the server listens are repeated.
        let put = ask(address, |now| Client::put(now, of(Method::Block1), path, body(LEN), 2));
        assert_eq!(put.outcome, Some(Ok(())), "{path}");
        let get = ask(address, |now| Client::get(now, of(Method::Block2), path, 3));
        assert_eq!(get.outcome, Some(Ok(())), "{path}");
        assert!(get.received == [body(LEN)], "{path}");
    }
    let missing = ask(address, |now| Client::get(now, config(Method::Block2), "none", 4));
    let not_found = anabranch_wire::coap::Code::NOT_FOUND;
    assert_eq!(missing.outcome, Some(Err(Failure::Refused(not_found))));
}

/// Q-Block1 and Q-Block2, in both roles, also where libcoap loses some of its datagrams: blocks, or
/// a Continue. It would not repeat a lost GET. Debian's libcoap has no Q-Block: build one with
/// `cmake -DENABLE_Q_BLOCK=ON -DENABLE_DTLS=OFF`.
#[test]
fn libcoap_with_q_block_puts_and_gets_50_kb() {
    let Some(folder) = std::env::var_os("LIBCOAP").map(PathBuf::from) else {
        return skipped("LIBCOAP names no folder with coap-client and coap-server, built with Q-Block");
    };
    let [client, server] = ["coap-client", "coap-server"].map(|name| folder.join(name));
    let (file, out) = (temporary("q-file"), temporary("q-out"));
    fs::write(&file, body(LEN)).expect("a file to send");
    // 1 + 4: blocks by the library, Q-Block if the peer has it.
    for loss in ["0%", "5,13,14,30"] {
        let options = ["-N", "-L", "5", "-b", "1024", "-B", "100", "-l", loss];
        let put =
            serve(&client, &[&options[..], &["-m", "put", "-f", file.to_str().expect("text")]].concat());
        assert!(put.received == [body(LEN)], "Q-Block1, {loss}: {:?}", put.counters());
        let get = serve(&client, &[&options[..], &["-m", "get", "-o", out.to_str().expect("text")]].concat());
        assert!(fs::read(&out).expect("what libcoap received") == body(LEN), "Q-Block2, {loss}");
        println!("{loss}: {} and {} datagrams of libcoap's client", put.datagrams, get.datagrams);
        // Five sets need a few requests, not one for each block.
        assert!(get.datagrams < 49, "{}", get.datagrams);
        let address = socket().local_addr().expect("an address");
        let port = address.port().to_string();
        let _process = start(&server, &["-A", "127.0.0.1", "-p", &port, "-d", "4", "-L", "5", "-l", loss]);
        // A confirmable message waits until the server listens.
        ask(address, |now| Client::put(now, config(Method::Block1), "b", body(1), 1));
        let put = ask(address, |now| Client::put(now, config(Method::QBlock1), "b", body(LEN), 2));
        assert_eq!(put.outcome, Some(Ok(())), "{loss}");
        let get = ask(address, |now| Client::get(now, config(Method::QBlock2), "b", 3));
        assert_eq!(get.outcome, Some(Ok(())), "{loss}");
        assert!(get.received == [body(LEN)], "{loss}");
        println!("{loss}: {} and {} datagrams of libcoap's server", put.datagrams, get.datagrams);
    }
    fs::remove_file(file).expect("it was there");
    fs::remove_file(out).expect("it was there");
}
