//! Block-wise transfers over CoAP, held against RFC 7252, RFC 7959 and RFC 9177.

use anabranch_core::coap::{Client, Config, Event, Failure, Method, Server};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::prng::Prng;
use anabranch_wire::coap::{Block, Code, Message, Token, Type, decode, missing, option};
use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::coap_world::{Fate, From, Run, Sent, body, faults, run};

const METHODS: [Method; 4] = [Method::Block1, Method::Block2, Method::QBlock1, Method::QBlock2];
/// Delay of each direction.
const DELAY: Duration = Duration::from_millis(50);

fn config(method: Method, block_size: u16) -> Config {
    Config { method, block_size, ..Config::default() }
}

/// A body of this many blocks of 16 bytes.
fn carry(method: Method, blocks: usize, seed: u64, fate: impl FnMut(From, usize, &Message) -> Fate) -> Run {
    let config = config(method, 16);
    run([config; 2], &body(16 * blocks), (DELAY, seed), fate)
}

fn arrives(_: From, _: usize, _: &Message) -> Fate {
    Fate::Arrives
}

/// A message as in the figures of RFC 9177: type, code, block, list of missing blocks, and whether
/// it is lost.
fn told((_, from, message, is_lost): &Sent) -> String {
    let kind = match message.kind {
        Type::Confirmable => "CON",
        Type::NonConfirmable => "NON",
        Type::Acknowledgement => "ACK",
        Type::Reset => "RST",
    };
    let code = match message.code {
        Code::GET => "GET".to_owned(),
        Code::PUT => "PUT".to_owned(),
        code => code.to_string(),
    };
    let mut text = format!("{} {kind} {code}", if *from == From::Client { ">" } else { "<" });
    let names =
        [(option::BLOCK1, "1"), (option::BLOCK2, "2"), (option::Q_BLOCK1, "Q1"), (option::Q_BLOCK2, "Q2")];
    for (number, name) in names {
        for block in message.blocks(number).flatten() {
            text += &format!(" {name}:{}/{}/{}", block.num, u8::from(block.more), block.size());
        }
    }
    if message.code == Code::INCOMPLETE {
        text += &format!(" {:?}", missing::decode(&message.payload).unwrap_or_default());
    }
    if *is_lost { text + " X" } else { text }
}

fn all_told(run: &Run) -> Vec<String> {
    run.sent.iter().map(told).collect()
}

fn outcome(run: &Run) -> (Duration, Result<(), Failure>) {
    let (at, outcome) = run.outcome.expect("the client has finished");
    (at.saturating_since(Instant::ZERO), outcome)
}

fn millis(run: &Run) -> u64 {
    let (time, outcome) = outcome(run);
    assert_eq!(outcome, Ok(()));
    time.as_millis()
}

/// One block per round trip: the closed form.
#[test]
fn without_losses_a_block_takes_a_round_trip() {
    for method in [Method::Block1, Method::Block2] {
        for blocks in [1, 2, 20] {
            let run = carry(method, blocks, 1, arrives);
            assert_eq!(millis(&run), 100 * blocks as u64, "{method:?}");
            assert_eq!(run.sent.len(), 2 * blocks);
            assert_eq!(run.received.len(), 1);
        }
    }
}

/// Ten blocks at once: 95 blocks take ten round trips instead of 95.
#[test]
fn q_block_takes_a_round_trip_for_ten_blocks() {
    for method in [Method::QBlock1, Method::QBlock2] {
        let run = carry(method, 95, 1, arrives);
        assert_eq!(millis(&run), 1000, "{method:?}");
        let server_is_quiet = method == Method::QBlock1;
        // Nine permissions, and the request or the final response.
        let quiet = run.by(if server_is_quiet { From::Server } else { From::Client }).count();
        assert_eq!((run.sent.len(), quiet), (105, 10));
        let (client, server) = (run.client, run.server);
        assert_eq!(
            [client.timeouts, client.retransmissions, server.timeouts, server.retransmissions],
            [0; 4]
        );
    }
}

/// RFC 7252 section 4.2: the first wait is 2 to 3 s, and doubles with each of four retransmissions;
/// the sender gives up within MAX_TRANSMIT_WAIT.
#[test]
fn a_silent_peer_is_given_up_after_five_transmissions() {
    let mut firsts = Vec::new();
    for method in [Method::Block1, Method::Block2] {
        for seed in 0..50 {
            let run = carry(method, 3, seed, |_, _, _| Fate::Lost);
            let times: Vec<Duration> =
                run.sent.iter().map(|sent| sent.0.saturating_since(Instant::ZERO)).collect();
            assert_eq!(times.len(), 5);
            let first = times[1];
            assert!((2_000..=3_000).contains(&first.as_millis()), "{first}");
            assert_eq!(times[2..], [first * 3, first * 7, first * 15]);
            let (time, outcome) = outcome(&run);
            assert_eq!((time, outcome), (first * 31, Err(Failure::Silent)));
            assert!(time <= Config::default().max_transmit_wait());
            assert!(run.sent.windows(2).all(|pair| pair[0].2 == pair[1].2), "all copies are alike");
            firsts.push(first.as_millis());
        }
    }
    let mean = firsts.iter().sum::<u64>() / firsts.len() as u64;
    assert!((2_400..2_600).contains(&mean), "the waits are uniform: {mean}");
}

/// A lost answer: the server repeats it and does not process the block again.
#[test]
fn a_lost_answer_is_repeated_and_the_block_processed_once() {
    let run = carry(Method::Block1, 3, 7, |from, count, _| {
        if from == From::Server && count == 1 { Fate::Lost } else { Fate::Arrives }
    });
    let [client, server] = [From::Client, From::Server].map(|end| run.by(end).collect::<Vec<_>>());
    assert_eq!(client[1].2, client[2].2);
    assert_eq!(server[1].2, server[2].2);
    let wait = client[2].0.saturating_since(client[1].0);
    assert!((2_000..=3_000).contains(&wait.as_millis()));
    // The wait replaces the round trip of the lost answer.
    assert_eq!(outcome(&run), (DELAY * 6 + wait, Ok(())));
    assert_eq!(run.received.len(), 1);
    assert_eq!((run.client.retransmissions, run.client.timeouts), (1, 1));
}

/// RFC 9177 figures 5 and 6. The whole set leaves at once, so 12 is sent before the list arrives.
#[test]
fn q_block1_recovers_as_in_figures_5_and_6() {
    let run = carry(Method::QBlock1, 13, 3, |from, count, _| {
        if from == From::Client && [1, 9, 10].contains(&count) { Fate::Lost } else { Fate::Arrives }
    });
    let block = |num: u32, rest: &str| format!("> NON PUT Q1:{num}/{}/16{rest}", u8::from(num < 12));
    let mut expected: Vec<String> = (0..10).map(|num| block(num, "")).collect();
    expected[1] += " X";
    expected[9] += " X";
    expected.extend([block(10, " X"), block(11, ""), block(12, "")]);
    expected.push("< NON 4.08 [1, 9]".into());
    expected.extend([block(1, ""), block(9, "")]);
    expected.push("< NON 4.08 [10]".into());
    expected.extend([block(10, ""), "< NON 2.04".into()]);
    assert_eq!(all_told(&run), expected);
    // NON_TIMEOUT_RANDOM between the sets, NON_RECEIVE_TIMEOUT from the arrival of 9 to the list.
    let at = |i: usize| run.sent[i].0.saturating_since(Instant::ZERO);
    assert!((2_000..=3_000).contains(&at(10).as_millis()));
    assert_eq!(at(13), at(10) + DELAY);
    assert_eq!(at(16), at(14) + DELAY + Duration::from_secs(4));
    assert_eq!(run.client.retransmissions, 3);
    // All blocks have the same Request-Tag and length, and a token of their own (sections 4.3,
    // 4.6).
    let blocks: Vec<_> = run.by(From::Client).map(|(.., message, _)| message).collect();
    let tags: Vec<_> =
        blocks.iter().map(|m| (m.values(option::REQUEST_TAG).next(), m.uint(option::SIZE1))).collect();
    assert!(tags.iter().all(|tag| *tag == tags[0] && tag.0.is_some() && tag.1 == Some(208)));
    let tokens: std::collections::HashSet<_> = blocks.iter().map(|message| message.token).collect();
    assert_eq!(tokens.len(), blocks.len());
    // The list has the token of the latest block (section 5).
    assert_eq!(run.sent[13].2.token, run.sent[11].2.token);
}

/// RFC 9177 figure 7: the server asks after 4, 8, 16 and 32 s, and gives up 64 s later.
#[test]
fn q_block1_fails_as_in_figure_7() {
    let is_lost = |message: &Message| message.block(option::Q_BLOCK1).is_some_and(|block| block.num == 1);
    let run = carry(
        Method::QBlock1,
        3,
        3,
        |_, _, message| if is_lost(message) { Fate::Lost } else { Fate::Arrives },
    );
    let asked: Vec<u64> = run.by(From::Server).map(|sent| sent.0.as_nanos() / 1_000_000).collect();
    assert_eq!(asked, [4_050, 12_050, 28_050, 60_050]);
    assert!(run.by(From::Server).all(|sent| told(sent) == "< NON 4.08 [1]"));
    assert_eq!(run.discarded, [Instant::ZERO + Duration::from_millis(124_050)]);
    // The client hears the last list at 60.1 s, and waits NON_PARTIAL_TIMEOUT for a final answer.
    assert_eq!(
        outcome(&run),
        (Duration::from_millis(60_100) + Duration::from_secs(247), Err(Failure::Unconfirmed))
    );
    assert!(run.received.is_empty());
}

/// RFC 9177 figure 10, for a GET.
#[test]
fn q_block2_recovers_as_in_figure_10() {
    let run = carry(Method::QBlock2, 11, 3, |from, count, _| {
        // Blocks 1 and 9, and block 1 again.
        if from == From::Server && [1, 9, 11].contains(&count) { Fate::Lost } else { Fate::Arrives }
    });
    let block = |num: u32, rest: &str| format!("< NON 2.05 Q2:{num}/{}/16{rest}", u8::from(num < 10));
    let mut expected = vec!["> NON GET Q2:0/1/16".to_owned()];
    expected.extend((0..10).map(|num| block(num, if [1, 9].contains(&num) { " X" } else { "" })));
    expected.extend([block(10, ""), "> NON GET Q2:1/0/16 Q2:9/0/16".into(), block(1, " X"), block(9, "")]);
    expected.extend(["> NON GET Q2:1/0/16".into(), block(1, "")]);
    assert_eq!(all_told(&run), expected);
    let at = |i: usize| run.sent[i].0.saturating_since(Instant::ZERO);
    assert!((2_000..=3_000).contains(&(at(11) - at(1)).as_millis()));
    // NON_RECEIVE_TIMEOUT from the arrival of 9 to the second request.
    assert_eq!(at(15), at(14) + DELAY + Duration::from_secs(4));
    // Blocks have the token of the request that asked for them; all have one ETag and the length.
    let token = |i: usize| run.sent[i].2.token;
    assert!((1..=11).all(|i| token(i) == token(0)));
    assert!([13, 14].iter().all(|i| token(*i) == token(12)) && token(16) == token(15));
    let blocks: Vec<_> = run.by(From::Server).map(|(.., message, _)| message).collect();
    assert!(blocks.iter().all(|m| m.values(option::ETAG).eq(blocks[0].values(option::ETAG))));
    assert!(blocks.iter().all(|m| m.has(option::ETAG) && m.uint(option::SIZE2) == Some(176)));
}

/// Nothing arrives at all: NON_RECEIVE_TIMEOUT, doubled four times.
#[test]
fn a_silent_server_of_q_block2_is_given_up() {
    let run = carry(Method::QBlock2, 11, 3, |_, _, _| Fate::Lost);
    let times: Vec<u64> = run.sent.iter().map(|sent| sent.0.as_nanos() / 1_000_000_000).collect();
    assert_eq!(times, [0, 4, 12, 28, 60]);
    assert_eq!(outcome(&run), (Duration::from_secs(124), Err(Failure::Missing)));
}

/// A silent server of Q-Block1 gets every set once, two to three seconds apart; the client gives up
/// NON_PARTIAL_TIMEOUT after the last.
#[test]
fn a_silent_server_of_q_block1_is_given_up() {
    let run = carry(Method::QBlock1, 35, 9, |_, _, _| Fate::Lost);
    assert_eq!(run.sent.len(), 35);
    let starts: Vec<Duration> =
        run.sent.iter().step_by(10).map(|sent| sent.0.saturating_since(Instant::ZERO)).collect();
    let pause = starts[1];
    assert!((2_000..=3_000).contains(&pause.as_millis()));
    assert_eq!(starts, [Duration::ZERO, pause, pause * 2, pause * 3]);
    assert_eq!(outcome(&run), (pause * 3 + Duration::from_secs(247), Err(Failure::Unconfirmed)));
    assert_eq!(run.client.timeouts, 3);
}

/// Lost permissions cost the pause and nothing else.
#[test]
fn a_lost_permission_costs_the_pause() {
    for method in [Method::QBlock1, Method::QBlock2] {
        let run = carry(method, 20, 5, |_, _, message| {
            let continues = message.code == Code::CONTINUE
                || message.code == Code::GET
                    && message.block(option::Q_BLOCK2).is_some_and(|block| block.num == 10);
            if continues { Fate::Lost } else { Fate::Arrives }
        });
        let half = if method == Method::QBlock1 { 100 } else { 150 };
        let pause = millis(&run) - half + if method == Method::QBlock1 { 0 } else { 50 };
        assert!((2_000..=3_000).contains(&pause), "{method:?}: {pause}");
        assert_eq!(run.client.retransmissions + run.server.retransmissions, 0);
    }
}

#[test]
fn every_method_delivers_equal_bytes_despite_faults() {
    for method in METHODS {
        for (len, block_size, loss, seeds) in [
            (0, 16, 10, 60),
            (1, 16, 10, 60),
            (63, 64, 10, 60),
            (64, 64, 10, 60),
            (65, 64, 10, 60),
            (1024, 1024, 10, 60),
            (3_000, 64, 10, 40),
            (100_000, 1024, 10, 10),
            (100_000, 1024, 0, 1),
        ] {
            let (mut failed, sent) = (0, body(len));
            for seed in 0..seeds {
                let config = config(method, block_size);
                let run = run([config; 2], &sent, (DELAY, seed), faults(seed, loss));
                for (_, received) in &run.received {
                    assert_eq!(received.len(), sent.len(), "{method:?} {len} {seed}");
                    assert_eq!(*received, sent, "{method:?} {len} {seed}");
                }
                failed += u64::from(run.received.is_empty());
            }
            // With one message in ten lost, both blocks of a body of two are in one of a hundred,
            // and the server knows of nothing. All other methods repeat the first message.
            let most = if method == Method::QBlock1 && len == 65 { 3 } else { 0 };
            assert!(failed <= most, "{method:?}, {len} bytes: {failed} of {seeds} were not delivered");
        }
    }
}

/// RFC 7959 section 2.5, figure 8: the server asks for smaller blocks, and the client goes on with
/// their numbers.
#[test]
fn the_answer_reduces_the_size_of_blocks() {
    let sizes = |method, client, server| {
        let configs = [config(method, client), config(method, server)];
        let run = run(configs, &body(400), (DELAY, 1), arrives);
        assert_eq!((run.received[0].1.clone(), outcome(&run).1), (body(400), Ok(())));
        all_told(&run)
    };
    let put = sizes(Method::Block1, 128, 32);
    assert_eq!(
        put[..4],
        ["> CON PUT 1:0/1/128", "< ACK 2.31 1:0/1/32", "> CON PUT 1:4/1/32", "< ACK 2.31 1:4/1/32"]
    );
    let get = sizes(Method::Block2, 128, 64);
    assert_eq!(
        get[..4],
        ["> CON GET 2:0/0/128", "< ACK 2.05 2:0/1/64", "> CON GET 2:1/0/64", "< ACK 2.05 2:1/1/64"]
    );
    let q_get = sizes(Method::QBlock2, 128, 64);
    assert_eq!(q_get[..2], ["> NON GET Q2:0/1/128", "< NON 2.05 Q2:0/1/64"]);
    // A server with larger blocks takes the client's.
    assert_eq!(sizes(Method::Block2, 64, 1024)[1], "< ACK 2.05 2:0/1/64");
}

fn datagram(message: &Message) -> Bytes {
    let mut octets = Vec::new();
    message.encode(&mut octets);
    octets.into()
}

fn with_code(mut message: Message, code: Code) -> Message {
    message.code = code;
    message
}

fn put(id: u16) -> Message {
    Message::new(Type::Confirmable, Code::PUT, id, Token::new(&[1, 2]).expect("a token"))
}

/// The answers of a server to messages.
fn answers(server: &mut Server, message: &Message) -> Vec<Message> {
    server.handle_datagram(Instant::ZERO, &datagram(message));
    std::iter::from_fn(|| server.poll_transmit(Instant::ZERO))
        .map(|octets| decode(&octets).expect("valid"))
        .collect()
}

#[test]
fn a_server_refuses_what_the_rfcs_say() {
    let mut server = Server::receiving(Config::default(), 1);
    let block = |num, more| Block { num, more, szx: 0 };
    let payload = Bytes::from_static(&[5; 16]);
    let cases = [
        // RFC 7959 section 2.9.2: the first block is missing.
        (put(1).with_block(option::BLOCK1, block(1, true)).with_payload(payload.clone()), Code::INCOMPLETE),
        // A block with M is full.
        (
            put(2).with_block(option::BLOCK1, block(0, true)).with_payload(payload.slice(1..)),
            Code::BAD_REQUEST,
        ),
        // RFC 9177 sections 4.3 and 4.6: Request-Tag and Size1.
        (
            put(3).with_block(option::Q_BLOCK1, block(0, true)).with_payload(payload.clone()),
            Code::BAD_REQUEST,
        ),
        // RFC 9177 section 4.1: no mix.
        (
            put(4).with_block(option::Q_BLOCK1, block(0, true)).with_block(option::BLOCK1, block(0, true)),
            Code::BAD_OPTION,
        ),
        // RFC 7252 section 5.4.1: an unknown critical option; an elective one is ignored.
        (put(5).with(9, &b"x"[..]), Code::BAD_OPTION),
        (put(6).with(10, &b"x"[..]).with_payload(payload), Code::CHANGED),
        (with_code(put(7), Code::new(0, 4)), Code::METHOD_NOT_ALLOWED),
        (with_code(put(8), Code::GET), Code::NOT_FOUND),
    ];
    for (request, code) in cases {
        let got = answers(&mut server, &request);
        assert_eq!(
            got.iter().map(|m| (m.kind, m.code, m.id, m.token)).collect::<Vec<_>>(),
            [(Type::Acknowledgement, code, request.id, request.token)],
            "{request:?}"
        );
        // The duplicate gets the same answer.
        assert_eq!(answers(&mut server, &request), got);
    }
    // A ping (RFC 7252 section 4.3), and what is no CoAP.
    assert_eq!(
        answers(&mut server, &Message::empty(Type::Confirmable, 77)),
        [Message::empty(Type::Reset, 77)]
    );
    server.handle_datagram(Instant::ZERO, &Bytes::from_static(b"hello"));
    assert_eq!(server.poll_transmit(Instant::ZERO), None);
    // RFC 9177 section 4.4: the numbers of a request ascend.
    let mut server = Server::serving(Config::default(), body(64), 1);
    let mut get = with_code(put(1), Code::GET);
    get.kind = Type::NonConfirmable;
    let wrong = get
        .clone()
        .with_block(option::Q_BLOCK2, block(2, false))
        .with_block(option::Q_BLOCK2, block(1, false));
    assert_eq!(answers(&mut server, &wrong)[0].code, Code::BAD_REQUEST);
    // Overlapping options give one instance of each block; M stands for the rest of the set.
    get.id = 2;
    let both = get.with_block(option::Q_BLOCK2, block(1, true)).with_block(option::Q_BLOCK2, block(2, false));
    let blocks: Vec<_> =
        answers(&mut server, &both).iter().filter_map(|m| m.block(option::Q_BLOCK2)).map(|b| b.num).collect();
    assert_eq!(blocks, [1, 2, 3]);
}

/// RFC 7252 section 5.2.2: an empty ACK, then a confirmable response of its own.
#[test]
fn a_separate_response_is_acknowledged() {
    let mut client = Client::put(Instant::ZERO, Config::default(), "/x", body(5), 1);
    let request = decode(&client.poll_transmit(Instant::ZERO).expect("a request")).expect("valid");
    assert_eq!(request.values(option::URI_PATH).collect::<Vec<_>>(), ["x"]);
    let later = Instant::ZERO + Duration::from_secs(1);
    client.handle_datagram(later, &datagram(&Message::empty(Type::Acknowledgement, request.id)));
    // The client no longer repeats the request.
    assert!(client.next_timeout().is_some_and(|at| at > later + Duration::from_secs(100)));
    let response = Message::new(Type::Confirmable, Code::CHANGED, 4711, request.token);
    for _ in 0..2 {
        client.handle_datagram(later, &datagram(&response));
        let ack = decode(&client.poll_transmit(later).expect("an ACK")).expect("valid");
        assert_eq!(ack, Message::empty(Type::Acknowledgement, 4711));
    }
    assert_eq!(client.poll_event(), Some(Event::Finished(Ok(()))));
    assert_eq!((client.poll_event(), client.next_timeout()), (None, None));
    // A response to nothing is reset.
    let strange = Message::new(Type::Confirmable, Code::CHANGED, 1, Token::default());
    client.handle_datagram(later, &datagram(&strange));
    let reset = decode(&client.poll_transmit(later).expect("an RST")).expect("valid");
    assert_eq!(reset, Message::empty(Type::Reset, 1));
}

/// RFC 7959 sections 2.9.2 and 2.9.3: the client begins again, with smaller blocks where the server
/// says so, but not for ever. Section 2.4: a new ETag is a new body.
#[test]
fn a_client_begins_again_where_the_server_has_lost_the_blocks() {
    let now = Instant::ZERO;
    let config = config(Method::Block1, 64);
    let mut client = Client::put(now, config, "x", body(200), 1);
    let next = |client: &mut Client| decode(&client.poll_transmit(now).expect("a request")).expect("valid");
    let reply = |request: &Message, code, block: Block| {
        let number = if request.code == Code::PUT { option::BLOCK1 } else { option::BLOCK2 };
        Message::new(Type::Acknowledgement, code, request.id, request.token).with_block(number, block)
    };
    let block = |message: &Message| message.block(option::BLOCK1).map(|block| (block.num, block.size()));
    let first = next(&mut client);
    assert_eq!((block(&first), first.uint(option::SIZE1)), (Some((0, 64)), Some(200)));
    let small = Block { num: 0, more: true, szx: 1 };
    client.handle_datagram(now, &datagram(&reply(&first, Code::TOO_LARGE, small)));
    let again = next(&mut client);
    assert_eq!((block(&again), again.token == first.token), (Some((0, 32)), false));
    client.handle_datagram(now, &datagram(&reply(&again, Code::CONTINUE, small)));
    let mut request = next(&mut client);
    assert_eq!(block(&request), Some((1, 32)));
    for _ in 0..3 {
        client.handle_datagram(now, &datagram(&reply(&request, Code::INCOMPLETE, small)));
        request = next(&mut client);
        assert_eq!(block(&request), Some((0, 32)));
    }
    client.handle_datagram(now, &datagram(&reply(&request, Code::INCOMPLETE, small)));
    assert_eq!(client.outcome(), Some(Err(Failure::Refused(Code::INCOMPLETE))));

    let mut client = Client::get(now, config, "x", 1);
    let answer = |client: &mut Client, num, more, etag: &'static [u8]| {
        let request = next(client);
        let block = Block { num, more, szx: 2 };
        let answer = reply(&request, Code::CONTENT, block).with(option::ETAG, etag);
        client.handle_datagram(now, &datagram(&answer.with_payload(vec![etag[0]; 64])));
        request.block(option::BLOCK2).map(|block| block.num)
    };
    assert_eq!(answer(&mut client, 0, true, b"1"), Some(0));
    assert_eq!(answer(&mut client, 1, true, b"2"), Some(1));
    assert_eq!(answer(&mut client, 0, true, b"2"), Some(0));
    assert_eq!(answer(&mut client, 1, false, b"2"), Some(1));
    assert_eq!(client.poll_event(), Some(Event::Received(Bytes::from(vec![b'2'; 128]))));
}

#[test]
fn errors_and_resets_end_a_transfer() {
    for method in METHODS {
        for (answer, failure) in [
            (Code::new(5, 0), Failure::Refused(Code::new(5, 0))),
            (Code::NOT_FOUND, Failure::Refused(Code::NOT_FOUND)),
            (Code::EMPTY, Failure::Reset),
            (Code::new(2, 2), Failure::Invalid),
        ] {
            let config = config(method, 16);
            let mut client = match method.is_put() {
                true => Client::put(Instant::ZERO, config, "x", body(100), 1),
                false => Client::get(Instant::ZERO, config, "x", 1),
            };
            let request = decode(&client.poll_transmit(Instant::ZERO).expect("a request")).expect("valid");
            let message = match (answer, request.kind) {
                (Code::EMPTY, _) => Message::empty(Type::Reset, request.id),
                (code, Type::Confirmable) => {
                    Message::new(Type::Acknowledgement, code, request.id, request.token)
                }
                (code, _) => Message::new(Type::NonConfirmable, code, 9, request.token),
            };
            client.handle_datagram(Instant::ZERO, &datagram(&message));
            assert_eq!(client.outcome(), Some(Err(failure)), "{method:?} {answer}");
            assert_eq!(client.next_timeout(), None);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, rng_seed: RngSeed::Fixed(9177), failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a network makes of messages, no machine panics, and no wrong body arrives.
    #[test]
    fn changed_messages_panic_nothing(seed in any::<u64>(), method in proptest::sample::select(&METHODS[..]), len in 0usize..700) {
        let mut random = Prng::new(seed);
        let config = config(method, 16);
        let now = Instant::ZERO;
        let mut server = Server::serving(config, body(len), seed);
        let mut client = match method.is_put() {
            true => Client::put(now, config, "x", body(len), seed),
            false => Client::get(now, config, "x", seed),
        };
        let mut now = now;
        for _ in 0..300 {
            let octets = client.poll_transmit(now).map(|o| (true, o)).or_else(|| server.poll_transmit(now).map(|o| (false, o)));
            match octets {
                Some((by_client, octets)) => {
                    let mut octets = octets.to_vec();
                    if random.chance(30) {
                        for _ in 0..=random.below(3) {
                            let place = random.below(octets.len().min(24) as u64) as usize;
                            octets[place] = random.bits() as u8;
                        }
                        octets.truncate(1 + random.below(octets.len() as u64 + 50) as usize);
                    }
                    let octets = Bytes::from(octets);
                    if by_client { server.handle_datagram(now, &octets) } else { client.handle_datagram(now, &octets) }
                }
                None => {
                    let Some(next) = [client.next_timeout(), server.next_timeout()].into_iter().flatten().min() else { break };
                    now = next;
                    client.handle_timeout(now);
                    server.handle_timeout(now);
                }
            }
        }
        prop_assert!(server.received() <= 1 << 20);
    }
}
