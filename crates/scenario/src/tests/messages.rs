//! Packets of different sizes, flows with a connection each, and requests with replies.

use super::*;

/// Two nodes 50 ms apart, and one traffic; the keys of a test are at the end of its table, or after
/// it.
fn pair(rate: &str, loss: &str, traffic: &str) -> Source {
    Source::new(
        "pair.toml",
        format!(
            "stop = \"20000 s\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
             [[link]]\nname = \"cable\"\nfrom = \"a\"\nto = \"b\"\nrate = \"{rate}\"\ndelay = \"50 ms\"\nmtu = 65535\n\
             queue = \"unlimited\"\nloss = {loss}\n\
             [[traffic]]\nname = \"messages\"\nfrom = \"a\"\nto = \"b\"\n{traffic}"
        ),
    )
}

fn figures(source: &Source, seed: u64) -> impl Fn(&str) -> f64 + use<> {
    let scenario = source.scenario().unwrap_or_else(|e| panic!("{e}"));
    let metrics = scenario.run(seed, 0, &BTreeMap::new()).unwrap().1;
    move |name| metrics[&format!("traffic.messages.{name}")].value.unwrap_or(f64::NAN)
}

/// An M/M/1 queue: a packet waits load / (1 - load) mean service times. Headers of 48 bytes make
/// service times slightly less random, by 1 %.
#[test]
fn packets_of_exponential_length_wait_as_in_a_queue_of_exponential_services() {
    for (load, packets) in [(0.5, 500_000), (0.8, 2_000_000)] {
        let service = 5048.0 * 8.0 / 8e6;
        let traffic = format!(
            "kind = \"poisson\"\npayload = {{ exponential = {{ mean = \"5 kB\" }} }}\ninterval = \"{} ns\"\npackets = {packets}\n\
             [probe.queue]\nkind = \"queues\"\nnodes = \"a\"\nto = \"b\"\n",
            (service / load * 1e9) as u64
        );
        let scenario = pair("8 Mbit/s", "0", &traffic).scenario().unwrap();
        let metrics = scenario.run(1, 0, &BTreeMap::new()).unwrap().1;
        let expected = service * load / (1.0 - load);
        let wait = metrics["probe.queue.wait_mean_s"].value.unwrap();
        assert!((wait / expected - 1.0).abs() < 0.02, "{load}: {wait} s instead of {expected} s");
        // The waiting times of packets that wait are exponential: the fraction beyond t is load *
        // exp(-(1 - load) t / service).
        let expected = service / (1.0 - load) * (load / 0.05).ln();
        let wait = metrics["probe.queue.wait_p95_s"].value.unwrap();
        assert!((wait / expected - 1.0).abs() < 0.03, "{load}: {wait} s instead of {expected} s");
    }
}

/// Every transport that supports size distributions has the given mean rate and delivers all
/// packets.
#[test]
fn a_rate_is_that_of_all_sizes() {
    // RDCA, which probes before it increases its rate, must not be limited here.
    for (over, most, rate) in [("udp", "65 kB", 80e3), ("tcp", "1 MB", 80e3), ("rdca", "80 B", 20e3)] {
        for sizes in [
            format!("{{ exponential = {{ mean = \"70 B\", most = \"{most}\" }} }}"),
            format!("{{ pareto = {{ mean = \"60 B\", most = \"{most}\" }} }}"),
            format!("{{ cdf = [[\"20 B\", 0], [\"40 B\", 0.9], [\"{most}\", 1]] }}")
                .replace("65 kB", "6 kB")
                .replace("1 MB", "6 kB"),
        ] {
            let traffic = format!(
                "kind = \"poisson\"\nover = \"{over}\"\npayload = {sizes}\nrate = \"{rate} bit/s\"\nstop = \"3000 s\"\n"
            );
            let figure = figures(&pair("100 Mbit/s", "0", &traffic), 1);
            let found = figure("throughput_bit_per_s");
            assert!((found / rate - 1.0).abs() < 0.08, "{over} {sizes}: {found}");
            assert!(figure("packets_delivered") >= figure("packets_made") - 3.0, "{over} {sizes}");
        }
    }
}

/// Alone on the link, a flow takes a round trip for the handshake, half of one for its data, and
/// the transmission time.
#[test]
fn a_flow_with_a_connection_of_its_own_takes_its_handshake_and_its_way() {
    let traffic = |more: &str| {
        let text = format!("kind = \"cbr\"\nover = \"tcp\"\ninterval = \"10 s\"\npackets = 20\n{more}");
        figures(&pair("8 Mbit/s", "0", &text), 1)
    };
    let short = traffic("payload = \"1 kB\"\nconnection = \"each\"\n");
    assert_eq!((short("packets_delivered"), short("failures")), (20.0, 0.0));
    for (name, delay) in [("delay_mean_s", 0.1512), ("delay_p50_s", 0.1512), ("delay_p99_s", 0.1512)] {
        assert!((short(name) - delay).abs() < 5e-4, "{name}: {}", short(name));
    }
    // Only the first one pays for the handshake.
    let shared = traffic("payload = { cdf = [[\"1 kB\", 1]] }\n");
    assert_eq!(shared("packets_delivered"), 20.0);
    assert!((shared("delay_p50_s") - 0.0511).abs() < 5e-4, "{}", shared("delay_p50_s"));
    assert!((shared("delay_p99_s") - 0.1512).abs() < 5e-4, "{}", shared("delay_p99_s"));
    // Ten segments, then twenty, then the rest of a megabyte at the rate of the link.
    let long = traffic("payload = \"1 MB\"\nconnection = \"each\"\n");
    assert!((1.2..1.7).contains(&long("delay_mean_s")), "{}", long("delay_mean_s"));
}

/// Flows that share a link fairly are a processor-sharing queue: a flow takes its time on an idle
/// link divided by (1 - load), whatever the distribution of sizes.
#[test]
fn many_flows_take_as_long_as_processor_sharing_says() {
    for sizes in [
        "\"200 kB\"",
        "{ exponential = { mean = \"200 kB\" } }",
        "{ pareto = { mean = \"200 kB\", shape = 1.6, most = \"10 MB\" } }",
    ] {
        let text = format!(
            "kind = \"poisson\"\nover = \"tcp\"\nconnection = \"each\"\npayload = {sizes}\nrate = \"50 Mbit/s\"\nstop = \"100 s\"\n"
        );
        let source = pair("100 Mbit/s", "0", &text)
            .set("link.cable.delay=100 us")
            .set("link.cable.mtu=1500")
            .set("link.cable.queue=100 packets")
            .set("link.cable.discipline=fq-codel");
        let figure = figures(&source, 3);
        let (mean, made) = (figure("delay_mean_s"), figure("packets_made"));
        let alone = 50e6 * 100.0 / made / 95e6;
        assert!((mean / (alone / 0.47) - 1.0).abs() < 0.2, "{sizes}: {mean} s, alone {alone} s");
        assert_eq!(figure("failures"), 0.0);
    }
}

#[test]
fn requests_follow_replies() {
    for (over, connection, delay) in [("udp", "one", 0.1202), ("tcp", "one", 0.1202), ("tcp", "each", 0.2203)]
    {
        let text = format!(
            "kind = {{ request-response = {{ reply = \"20 kB\", think = \"500 ms\" }} }}\nover = \"{over}\"\nconnection = \"{connection}\"\n\
             payload = \"100 B\"\nstop = \"5000 s\"\n"
        );
        // A window with room for a whole reply, and no delay for it but its transmission.
        let source = pair("8 Mbit/s", "0", &text);
        let figure = figures(&source, 1);
        // TCP's initial window has ten segments; a reply has fourteen.
        let (median, rounds) = (figure("delay_p50_s"), if over == "udp" { 0.0 } else { 0.1 });
        assert!(median > delay - 0.001 && median < delay + rounds + 0.005, "{over} {connection}: {median}");
        let expected = 5000.0 / (0.5 + figure("delay_mean_s"));
        let answered = figure("packets_delivered");
        assert!(
            (answered / expected - 1.0).abs() < 0.03,
            "{over} {connection}: {answered} instead of {expected}"
        );
        // The throughput is that of replies.
        let rate = figure("throughput_bit_per_s");
        assert!((rate / (answered * 160e3 / 5000.0) - 1.0).abs() < 0.01, "{rate}");
        assert_eq!(figure("failures"), 0.0);
    }
}

/// With one loss in five in each direction, four in five of four in five datagrams return; TCP
/// retransmits.
#[test]
fn a_request_without_a_reply_is_given_up_over_udp_alone() {
    for (over, connection, share) in [("udp", "one", 0.64), ("tcp", "one", 1.0), ("tcp", "each", 1.0)] {
        let text = format!(
            "kind = {{ request-response = {{ reply = {{ exponential = {{ mean = \"3 kB\" }} }} }} }}\nover = \"{over}\"\n\
             connection = \"{connection}\"\npayload = \"100 B\"\npackets = 2000\n"
        );
        let figure = figures(&pair("8 Mbit/s", "0.2", &text), 2);
        assert_eq!(figure("packets_made"), 2000.0);
        let ratio = figure("delivery_ratio");
        assert!((ratio - share).abs() < 0.04, "{over} {connection}: {ratio}");
        let failures = figure("failures");
        assert_eq!(failures, 2000.0 - figure("packets_delivered"), "{over} {connection}");
    }
}

/// A source whose connection fails, or whose node fails, continues: no number occurs twice, and
/// data that a shared connection had accepted arrives nevertheless.
#[test]
fn messages_outlive_connections_and_nodes() {
    let failing = "[[event]]\nat = \"100 s\"\naction = \"fail-node\"\nnode = \"b\"\n[[event]]\nat = \"130 s\"\naction = \"recover-node\"\nnode = \"b\"\n";
    for connection in ["one", "each"] {
        let text = format!(
            "kind = \"poisson\"\nover = \"tcp\"\nconnection = \"{connection}\"\npayload = {{ exponential = {{ mean = \"2 kB\" }} }}\n\
             interval = \"1 s\"\nstop = \"300 s\"\n{failing}"
        );
        let figure = figures(&pair("8 Mbit/s", "0", &text), 1);
        let (made, delivered) = (figure("packets_made"), figure("packets_delivered"));
        assert!(delivered <= made && delivered > 0.85 * made, "{connection}: {delivered} of {made}");
        if connection == "one" {
            assert!(delivered >= made - 1.0, "{delivered} of {made}");
            assert!(figure("failures") >= 1.0);
        }
        let own = text.replace("node = \"b\"", "node = \"a\"");
        let figure = figures(&pair("8 Mbit/s", "0", &own), 1);
        let (made, delivered) = (figure("packets_made"), figure("packets_delivered"));
        assert!(delivered <= made && delivered > 0.8 * made, "{connection}: {delivered} of {made}");
    }
}

/// Whatever the names and transports of traffics, no two at a node draw the same sizes or times.
#[test]
fn no_two_traffics_draw_the_same() {
    let names = ["udp", "packets", "packets of udp", "packets of packets"];
    let overs = ["udp", "tcp", "udp", "rdca"];
    let mut text = String::new();
    for (name, over) in names.iter().zip(overs) {
        text += &format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"poisson\"\nfrom = \"a\"\nto = \"b\"\nover = \"{over}\"\n\
             payload = {{ exponential = {{ mean = \"60 B\", most = \"80 B\" }} }}\ninterval = \"1 s\"\nstop = \"100 s\"\n"
        );
    }
    let network = "[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n";
    let source = Source::new("streams.toml", format!("stop = \"110 s\"\n{network}{text}"));
    let scenario = source.scenario().unwrap_or_else(|e| panic!("{e}"));
    let metrics = scenario.run(1, 0, &BTreeMap::new()).unwrap().1;
    let figures: std::collections::BTreeSet<_> = names
        .iter()
        .map(|name| {
            let of = |figure: &str| metrics[&format!("traffic.{name}.{figure}")].value.unwrap();
            // Bytes per packet, which are the mean of different draws.
            ((of("throughput_bit_per_s") / of("packets_delivered") * 1e9) as u64, of("packets_made") as u64)
        })
        .collect();
    assert_eq!(figures.len(), names.len(), "{figures:?}");
}

#[test]
fn messages_that_cannot_be_are_refused_at_their_place() {
    let good = "kind = \"poisson\"\nover = \"tcp\"\npayload = \"1 kB\"\ninterval = \"1 s\"\n";
    for (settings, message) in [
        (&["connection=each", "over=udp"][..], "`over = \"tcp\"` only"),
        (&["connection=both"], "both"),
        (&["payload={ exponential = { mean = \"1 kB\" } }", "over=mptcp"], "all alike"),
        (&["payload={ exponential = { mean = \"1 kB\" } }", "over=rdca"], "`mean` is 1 kB: expected 12 B"),
        (&["payload=2 GB", "connection=each"], "to 1 GB"),
        (&["payload=2 MB"], "to 65 kB"),
        (&["payload=19 B", "connection=each"], "expected 20 B"),
        (&["kind={ request-response = { reply = \"1 kB\" } }"], "there is no interval"),
        (&["kind={ request-response = { think = \"1 s\" } }"], "reply"),
        (&["kind=request-response"], "reply"),
        (&["kind={ request-response = { reply = \"1 kB\", wait = \"1 s\" } }"], "wait"),
    ] {
        let mut source = pair("8 Mbit/s", "0", good);
        for setting in settings {
            source = source.set(format!("traffic.messages.{setting}"));
        }
        let error = source.scenario().expect_err(message).to_string();
        assert!(error.contains(message), "{settings:?}: {error}");
    }
    let good = "kind = { request-response = { reply = \"1 kB\" } }\nover = \"tcp\"\npayload = \"1 kB\"\n";
    for (settings, message) in [
        (&["over=rdca"][..], "\"udp\" and \"tcp\""),
        (&["over=mptcp"], "\"udp\" and \"tcp\""),
        (&["rate=8 kbit/s"], "there is no interval"),
        (&["kind.request-response.think=0 s"], "`think`: some time"),
        (&["kind.request-response.timeout=1 s"], "repeats what is lost"),
        (&["kind.request-response.timeout=0 s", "over=udp"], "a reply takes some time"),
        (&["kind.request-response.reply=66 kB", "over=udp"], "`reply`: a packet is 66 kB: expected 20 B"),
    ] {
        let mut source = pair("8 Mbit/s", "0", good);
        for setting in settings {
            source = source.set(format!("traffic.messages.{setting}"));
        }
        let error = source.scenario().expect_err(message).to_string();
        assert!(error.contains(message), "{settings:?}: {error}");
    }
    let two = format!("{good}[[traffic]]\nname = \"others\"\nfrom = \"a\"\nto = \"b\"\nport = 9101\n{good}")
        .replace("\"tcp\"", "\"udp\"");
    let error = pair("8 Mbit/s", "0", &two).scenario().unwrap_err().to_string();
    assert!(error.contains("ports lie two or more apart"), "{error}");
    // The resolved scenario has the same meaning.
    let scenario = pair("8 Mbit/s", "0", &good.replace("\"tcp\"", "\"udp\"")).scenario().unwrap();
    let again = Source::new("again", scenario.to_toml()).scenario().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(again, scenario);
    assert!(scenario.to_toml().contains("timeout = \"2 s\""));
}
