//! The size of the send buffer of a multipath connection changes during a transfer: no data is
//! lost, and the buffer never exceeds its limit.

use crate::mptcp_world::{Path, World};
use anabranch_core::mptcp::{Config, Event};
use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::prng::Prng;
use bytes::Bytes;

fn config(send_buffer: u32) -> Config {
    Config { tcp: tcp::Config { mss: 1000, send_buffer, ..tcp::Config::default() }, ..Config::default() }
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

#[test]
fn growing_makes_room_at_once_and_shrinking_drops_nothing() {
    let paths = vec![Path::new(2_000_000, 20), Path::new(1_000_000, 80)];
    let mut world = World::new(config(20_000), config(1 << 20), paths, 3);
    let sent = Bytes::from(Prng::new(5).octets(1_000_000));
    world.client.outbox = sent.clone();
    world.client.closes = true;
    world.server.closes = true;
    world.run_until(at(1), |_| false);
    assert_eq!(world.client.mptcp().info().buffered, 20_000);
    world.client.events.clear();
    world.client.mptcp().set_send_buffer(60_000);
    world.settle();
    assert!(world.client.events.contains(&Event::Writable));
    assert_eq!(world.client.mptcp().info().buffered, 60_000);

    world.client.mptcp().set_send_buffer(10_000);
    let before = world.client.mptcp().info();
    assert_eq!((before.buffered, before.send_buffer), (60_000, 10_000));
    let mut most = before.buffered;
    let drained = world.run_until(at(4), |world| {
        let buffered = world.client.mptcp().info().buffered;
        assert!(buffered <= most, "{buffered} of {most}");
        most = buffered.max(10_000);
        buffered <= 10_000
    });
    assert!(drained);
    assert!(world.run_to_end(300));
    assert!(world.server.inbox == sent, "octets differ");
}

/// Random sizes over lossy paths, one of which fails and returns. The stored data, including that
/// kept by subflows, never exceeds the limit, or the amount stored when the limit was lowered.
#[test]
fn never_more_is_kept_than_the_limit() {
    for seed in 0..20 {
        let mut dice = Prng::new(seed);
        let mut paths = vec![Path::new(3_000_000, 10), Path::new(1_000_000, 100), Path::new(2_000_000, 50)];
        paths.iter_mut().for_each(|path| path.loss = 20);
        paths[seed as usize % 3].down = Some((at(2), at(5)));
        let mut world = World::new(config(50_000), config(1 << 20), paths, seed);
        let sent = Bytes::from(Prng::new(seed).octets(2_000_000));
        world.client.outbox = sent.clone();
        world.client.closes = true;
        let (mut next, mut most) = (Instant::ZERO, 50_000);
        let over = world.run_until(at(300), |world| {
            let now = world.now;
            let client = world.client.mptcp();
            let buffered = client.info().buffered;
            assert!(buffered <= most, "seed {seed} at {now}: {buffered} of {most}");
            let mut limit = u64::from(client.info().send_buffer);
            if now >= next {
                next = now + Duration::from_millis(100);
                limit = 2_000 + dice.below(150_000);
                client.set_send_buffer(limit as u32);
            }
            most = buffered.max(limit);
            world.server.inbox.len() == sent.len()
        });
        assert!(over, "seed {seed}: {} octets", world.server.inbox.len());
        assert!(world.server.inbox == sent, "seed {seed}: octets differ");
    }
}
