//! In the steady state a packet causes no allocation.

use std::net::Ipv4Addr;

use anabranch_core::aodv::{Config, Passage, Route, Router, SequenceNumber};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::counting::allocations;
use anabranch_wire::aodv::{Message, RouteReply, emit};

#[test]
fn routes_in_use_allocate_nothing() {
    let address = |n: u8| Ipv4Addr::new(10, 0, 0, n);
    let mut router = Router::new(Config::default(), address(1), Instant::ZERO);
    for destination in 3..200 {
        let reply = RouteReply {
            repair: false,
            acknowledge: false,
            prefix_size: 0,
            hop_count: 2,
            destination: address(destination),
            destination_sequence: SequenceNumber(1),
            originator: address(1),
            lifetime: 1_000_000,
            hello_interval: None,
        };
        let mut payload = Vec::new();
        emit(&Message::Reply(reply), &mut payload).expect("a reply");
        router.handle_message(Instant::ZERO, address(2), 1, &payload);
    }
    let mut packet = |n: u64| {
        let (now, source) = (Instant::ZERO + Duration::from_millis(n), address(3 + (n % 100) as u8));
        let (destination, previous) = (address(104 + (n % 90) as u8), Some(source));
        assert_eq!(router.route(now, destination), Route::Via(address(2)));
        assert_eq!(router.forward(now, destination, source), Route::Via(address(2)));
        router.note_use(now, Passage { source, destination, previous, next: Some(address(2)) });
        assert!(router.next_timeout().is_some());
    };
    (0..1_000).for_each(&mut packet);
    let before = allocations();
    (1_000..10_000).for_each(&mut packet);
    assert_eq!(allocations() - before, 0);
}
