//! Both drivers over sockets of loopback.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;

use anabranch_core::rdca::{Outcome, SinkConfig};
use anabranch_net::clock::Clock;
use anabranch_net::rdca::{
    Collector, Item, Ledger, Sense, What, bind, outlet, run_sense, run_sink, sender_config,
};
use anabranch_secure::datagram::{Accepts, Known, Proof, Shared};
use anabranch_secure::{SecretKey, SharedKey, entropy};
use bytes::Bytes;
use tokio::sync::mpsc::channel;

/// Sends `records` records and returns the sink's items.
fn carried<P: Proof>(proof: P, accepts: Accepts, records: u32) -> Vec<Item> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let clock = Clock::start();
        let any: SocketAddr = "[::1]:0".parse().unwrap();
        let (sink, own) = (bind(any).await.unwrap(), bind(any).await.unwrap());
        let to = sink.local_addr().unwrap();
        let collector =
            Collector::new(clock.now(), SinkConfig::deployed(10, 1 << 20), accepts, Ledger::new(10), entropy)
                .unwrap();
        let collector = RefCell::new(collector);
        let (outlet, mut intake) = outlet(1 << 20);
        let name = "probe".parse().unwrap();
        let sense = RefCell::new(Sense::new(sender_config(600, 64), proof, (&name, 7), None, entropy));
        let (give, mut records_in) = channel(8);
        let feed = async {
            for n in 0..records {
                let payload = Bytes::from(vec![n as u8; n as usize % 1500]);
                give.send((u64::from(n), payload)).await.unwrap();
            }
            drop(give);
            std::future::pending().await
        };
        let mut items = Vec::new();
        let store = async {
            while let Some(taken) = intake.next().await {
                items.extend(taken.items.clone());
                intake.stored(taken);
            }
        };
        let to = Cell::new(to);
        let outcome = tokio::select! {
            outcome = run_sense((&own, &to), &clock, &sense, &mut records_in, |_| {}) => outcome.unwrap(),
            end = run_sink(&sink, &clock, &collector, outlet, |_, _| {}) => panic!("the sink ends: {end:?}"),
            () = feed => panic!("it never ends"),
            () = store => panic!("the sink has ended"),
        };
        assert_eq!(outcome, Outcome::Complete);
        items
    })
}

fn judge(items: &[Item], records: u32) {
    let payloads = items.iter().filter_map(|item| match &item.what {
        What::Record { payload, created } => Some((item.next - 1, *created, payload)),
        What::Lost { .. } | What::Ended(_) => None,
    });
    let mut count = 0;
    for (number, created, payload) in payloads {
        assert_eq!((number, created), (u64::from(count), u64::from(count)));
        assert_eq!(payload[..], vec![count as u8; count as usize % 1500]);
        count += 1;
    }
    assert_eq!(count, records);
    assert!(matches!(items.last(), Some(Item { what: What::Ended(_), .. })));
}

#[test]
fn records_go_through_the_kernel_whole_and_in_order() {
    let key = SharedKey::generate().unwrap();
    let accepts = Accepts { shared: vec![key.clone()], ..Accepts::default() };
    judge(&carried(Shared(key), accepts, 300), 300);
    let (own, sink) = (SecretKey::generate().unwrap(), SecretKey::generate().unwrap());
    let accepts = Accepts { own: Some(sink.clone()), known: vec![own.public()], ..Accepts::default() };
    judge(&carried(Known { own, sink: sink.public() }, accepts, 300), 300);
}
