//! Publishing to an MQTT broker with QoS 1.

use std::collections::VecDeque;
use std::future::Future;
use std::str::FromStr;
use std::time::Duration;

use anabranch_net::rdca::Item;
use anabranch_secure::entropy;
use rumqttc::{AsyncClient, Event, EventLoop, MqttOptions, Outgoing, Packet, QoS};

use super::line;
use crate::log::Entry;

/// Messages that wait for the broker's acknowledgement.
const IN_FLIGHT: u16 = 100;
/// Length limit of a message: a record of 64 KiB, of which each byte may take six in JSON.
const LONGEST: usize = 1 << 20;
/// Pause before a new connection, which doubles up to the longest.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A broker and a topic: `mqtt://[USER:PASSWORD@]HOST[:PORT]/TOPIC`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Broker {
    host: String,
    port: u16,
    login: Option<(String, String)>,
    topic: String,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "mqtt://{}:{}/{}", self.host, self.port, self.topic)
    }
}

impl FromStr for Broker {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected mqtt://[USER:PASSWORD@]HOST[:PORT]/TOPIC";
        if text.starts_with("mqtts://") {
            return Err("TLS is not supported; use a tunnel to the broker's host".to_owned());
        }
        let rest = text.strip_prefix("mqtt://").ok_or(expected)?;
        let (place, topic) = rest.split_once('/').ok_or(expected)?;
        let (login, place) = place.rsplit_once('@').map_or((None, place), |(login, at)| (Some(login), at));
        let login = login.map(|login| login.split_once(':').unwrap_or((login, "")));
        let (host, port) = match place.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or(expected)?;
                (host, if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or(expected)?) })
            }
            None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
        };
        let port =
            port.map_or(Ok(1883), |port| port.parse().map_err(|_| format!("`{port}` is not a port")))?;
        let topic = topic.trim_end_matches('/');
        if host.is_empty() || topic.is_empty() {
            return Err(expected.to_owned());
        }
        if topic.contains(['+', '#', '\0']) {
            return Err(format!("`{topic}` is not a topic: `+` and `#` are for subscribers"));
        }
        let login = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
        Ok(Self { host: host.to_owned(), port, login, topic: topic.to_owned() })
    }
}

/// A connection to the broker, which is made again when it breaks.
pub(super) struct Session<'b> {
    broker: &'b Broker,
    client: AsyncClient,
    events: EventLoop,
    pause: Duration,
    is_broken: bool,
}

impl<'b> Session<'b> {
    pub(super) fn new(broker: &'b Broker) -> Self {
        let (client, events) = connect(broker);
        Self { broker, client, events, pause: PAUSE, is_broken: false }
    }

    /// Keeps the connection alive until `work` is done.
    pub(super) async fn idle_until<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                event = self.events.poll() => if let Err(error) = event {
                    let pause = self.broke(&error);
                    tokio::select! {
                        done = &mut work => return done,
                        () = tokio::time::sleep(pause) => {}
                    }
                } else {
                    self.is_well();
                },
            }
        }
    }

    /// Publishes items, and returns when the broker has acknowledged all. While the broker is away
    /// it waits; what was not acknowledged is published again.
    pub(super) async fn publish(&mut self, items: &[Item]) {
        let mut left: VecDeque<&Item> = items.iter().collect();
        // Messages in the order of publishing, and those with a packet id that wait for PUBACK.
        let mut given: VecDeque<&Item> = VecDeque::new();
        let mut sent: VecDeque<(u16, &Item)> = VecDeque::new();
        while !(left.is_empty() && given.is_empty() && sent.is_empty()) {
            while given.len() + sent.len() < usize::from(IN_FLIGHT)
                && let Some(item) = left.pop_front()
            {
                let topic = format!("{}/{}", self.broker.topic, item.source.name);
                let mut payload = Vec::new();
                line::write(item, &mut payload);
                payload.pop();
                // The channel has room for all messages in flight.
                if self.client.try_publish(topic, QoS::AtLeastOnce, false, payload).is_err() {
                    left.push_front(item);
                    break;
                }
                given.push_back(item);
            }
            match self.events.poll().await {
                Ok(Event::Outgoing(Outgoing::Publish(id))) => {
                    if let Some(item) = given.pop_front() {
                        sent.push_back((id, item));
                    }
                }
                Ok(Event::Incoming(Packet::PubAck(ack))) => {
                    if let Some(at) = sent.iter().position(|(id, _)| *id == ack.pkid) {
                        sent.remove(at);
                    }
                    self.is_well();
                }
                Ok(_) => {}
                Err(error) => {
                    let pause = self.broke(&error);
                    // A new connection knows nothing of the messages of the old one. Packet ids
                    // wrap, so the order is that of the first sending.
                    left = sent.into_iter().map(|(_, item)| item).chain(given).chain(left).collect();
                    (given, sent) = (VecDeque::new(), VecDeque::new());
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    fn is_well(&mut self) {
        self.pause = PAUSE;
        if std::mem::take(&mut self.is_broken) {
            Entry::info("broker", format!("{:?} is back", self.broker)).write();
        }
    }

    /// Replaces the connection. Returns the time to wait before it is used.
    fn broke(&mut self, error: &rumqttc::ConnectionError) -> Duration {
        if !std::mem::replace(&mut self.is_broken, true) {
            let message = format!("no connection to {:?}: {error}; records wait", self.broker);
            Entry::warning("broker", message).write();
        }
        (self.client, self.events) = connect(self.broker);
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

fn connect(broker: &Broker) -> (AsyncClient, EventLoop) {
    // A broker ends the connection of an older client with the same id. Process numbers are the
    // same in many containers.
    let mut octets = [0; 8];
    let id = match entropy(&mut octets) {
        Ok(()) => u64::from_ne_bytes(octets),
        Err(_) => std::process::id().into(),
    };
    let id = format!("anabranch-{id:x}");
    let mut options = MqttOptions::new(id, broker.host.clone(), broker.port);
    options.set_inflight(IN_FLIGHT).set_max_packet_size(LONGEST, LONGEST);
    if let Some((user, password)) = &broker.login {
        options.set_credentials(user, password);
    }
    AsyncClient::new(options, 2 * usize::from(IN_FLIGHT))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use anabranch_net::rdca::{Source, What};
    use bytes::Bytes;

    use super::*;
    use crate::service;

    /// Reads a packet: the first byte, and what follows the length.
    fn packet(stream: &mut TcpStream) -> (u8, Vec<u8>) {
        let mut octet = || {
            let mut octet = [0];
            stream.read_exact(&mut octet).unwrap();
            octet[0]
        };
        let (kind, mut length, mut shift) = (octet(), 0, 0);
        loop {
            let next = octet();
            length |= usize::from(next & 0x7f) << shift;
            shift += 7;
            if next < 0x80 {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        (kind, body)
    }

    /// A broker for one connection, which ends after `publications` and acknowledges the
    /// first of them. Returns the numbers of their records, and the connection.
    fn broker(listener: &TcpListener, publications: usize, acknowledged: usize) -> (Vec<u64>, TcpStream) {
        let mut stream = listener.accept().unwrap().0;
        assert_eq!(packet(&mut stream).0 >> 4, 1, "CONNECT");
        stream.write_all(&[0x20, 2, 0, 0]).unwrap();
        let publication = |at| {
            let (kind, body) = packet(&mut stream);
            assert_eq!(kind, 0x32, "PUBLISH with QoS 1");
            let rest = &body[2 + usize::from(u16::from_be_bytes([body[0], body[1]]))..];
            if at < acknowledged {
                stream.write_all(&[0x40, 2, rest[0], rest[1]]).unwrap();
            }
            line::read(std::str::from_utf8(&rest[2..]).unwrap()).unwrap().2 - 1
        };
        let numbers = (0..publications).map(publication).collect();
        (numbers, stream)
    }

    #[test]
    fn a_new_connection_repeats_what_is_not_acknowledged_in_the_first_order() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        // Packet ids begin again after 100.
        let broker = std::thread::spawn(move || {
            let (first, _) = broker(&listener, 160, 60);
            (first, broker(&listener, 140, 140))
        });
        let item = |number: u64| Item {
            source: Source { name: "a".parse().unwrap(), key: "".into() },
            run: 7,
            next: number + 1,
            received: 2,
            what: What::Record { created: 1, payload: Bytes::from_static(b"x") },
        };
        let items: Vec<Item> = (0..200).map(item).collect();
        let to = format!("mqtt://127.0.0.1:{port}/t").parse().unwrap();
        service::runtime().unwrap().block_on(async { Session::new(&to).publish(&items).await });
        let (first, (second, _)) = broker.join().unwrap();
        assert_eq!(first, (0..160).collect::<Vec<_>>());
        assert_eq!(second, (60..200).collect::<Vec<_>>());
    }

    #[test]
    fn a_broker_is_a_host_and_a_topic() {
        let shown = |text: &str| text.parse::<Broker>().map(|broker| format!("{broker:?}"));
        for (text, broker) in [
            ("mqtt://host/a/b", "mqtt://host:1883/a/b"),
            ("mqtt://u:p@w@[fd00::1]:1884/a/", "mqtt://fd00::1:1884/a"),
            ("mqtt://10.0.0.1:7/a", "mqtt://10.0.0.1:7/a"),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(broker));
        }
        for text in [
            "host/a",
            "mqtt://host",
            "mqtt://host/",
            "mqtt:///a",
            "mqtt://h:x/a",
            "mqtt://h/a/#",
            "mqtts://h/a",
        ] {
            assert!(shown(text).is_err(), "{text}");
        }
        let broker: Broker = "mqtt://u:p@w@h/a".parse().unwrap();
        assert_eq!(broker.login, Some(("u".to_owned(), "p@w".to_owned())));
    }
}
