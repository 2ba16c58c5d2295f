//! A node that keeps what it receives, gateways, and pushes to the node.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_core::set::{Outcome, RefuseReason, TransferId};
use anabranch_net::set::{
    Allow, Gateway, GatewayConfig, GatewayEvent, KnownGateway, Node, NodeConfig, NodeEvent, Offer, Push,
    PushConfig, RefusedCounters, Sink, Verdict,
};
use bytes::Bytes;
use tokio::task::JoinHandle;

use super::keys;

/// Upper limit of any step.
const PATIENCE: Duration = Duration::from_secs(60);

/// State of a sink.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) octets: Vec<u8>,
    pub(crate) begun: u32,
    pub(crate) finished: u32,
    pub(crate) abandoned: u32,
    /// Digest of the current file.
    pub(crate) digest: Option<[u8; 32]>,
    /// If set, the sink refuses every offer with this reason.
    pub(crate) refuses: Option<RefuseReason>,
    /// The sink fails once it has this many bytes.
    pub(crate) fails_at: Option<usize>,
    /// The error that finishing a file returns.
    pub(crate) end: Option<io::ErrorKind>,
    /// A single pause, once the sink has 1 MB.
    pub(crate) pause: std::time::Duration,
}

/// A sink that keeps everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory(Arc<Mutex<Kept>>);

impl Memory {
    pub(crate) fn look(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Memory {
    async fn begin(&mut self, offer: &Offer) -> io::Result<Verdict> {
        let mut kept = self.look();
        kept.begun += 1;
        if let Some(reason) = kept.refuses {
            return Ok(Verdict::Refuse(reason, kept.octets.len() as u64));
        }
        // A sender that announces its file can resume it.
        if offer.file.is_none() || offer.file.map(|file| file.digest) != kept.digest {
            kept.octets.clear();
        }
        kept.digest = offer.file.map(|file| file.digest);
        Ok(Verdict::From(kept.octets.len() as u64))
    }

    async fn write(&mut self, octets: Bytes) -> io::Result<()> {
        if self.look().octets.len() > 1_000_000 {
            let pause = std::mem::take(&mut self.look().pause);
            // Sleeping for zero time takes a millisecond.
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
        let mut kept = self.look();
        kept.octets.extend_from_slice(&octets);
        match kept.fails_at {
            Some(most) if kept.octets.len() > most => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    async fn finish(&mut self) -> io::Result<()> {
        let mut kept = self.look();
        if let Some(error) = kept.end {
            return Err(error.into());
        }
        kept.finished += 1;
        Ok(())
    }

    fn abandon(&mut self) {
        self.look().abandoned += 1;
    }
}

/// A gateway and the events that it has reported.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) task: JoinHandle<()>,
    pub(crate) events: Arc<Mutex<Vec<GatewayEvent>>>,
}

impl Running {
    /// The gateway as a table lists it, with its key in tests with keys.
    pub(crate) fn known(&self) -> KnownGateway {
        KnownGateway { key: Some(keys::gateway().public()), ..self.address.into() }
    }
}

/// A gateway that may relay to nodes at `ip`.
pub(crate) fn gateway(ip: IpAddr) -> Running {
    gateway_with(ip, |config| {
        config.allow = vec![format!("[{ip}]:1-65535").parse::<Allow>().expect("a rule")];
    })
}

pub(crate) fn gateway_with(ip: IpAddr, change: impl FnOnce(&mut GatewayConfig)) -> Running {
    let mut config = GatewayConfig::new((ip, 0).into());
    keys::of_gateway(&mut config);
    change(&mut config);
    let gateway = Gateway::bind(config).expect("a port");
    let address = gateway.address().expect("it is bound");
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&events);
    let task = tokio::spawn(async move {
        gateway.run(|event| told.lock().unwrap_or_else(PoisonError::into_inner).push(event)).await;
    });
    Running { address, task, events }
}

/// A node and the events that it has reported.
pub(crate) struct Receiving {
    pub(crate) address: SocketAddr,
    pub(crate) sink: Memory,
    pub(crate) task: JoinHandle<()>,
    pub(crate) events: Arc<Mutex<Vec<NodeEvent>>>,
    refused: Arc<Mutex<RefusedCounters>>,
}

impl Receiving {
    /// The refusals so far.
    pub(crate) fn refused(&self) -> RefusedCounters {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn told(&self) -> Vec<String> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|e| format!("{e:?}")).collect()
    }
}

/// A node that announces these gateways.
pub(crate) fn node(ip: IpAddr, gateways: &[&Running]) -> Receiving {
    node_with(ip, gateways, |_| {})
}

pub(crate) fn node_with(
    ip: IpAddr,
    gateways: &[&Running],
    change: impl FnOnce(&mut NodeConfig),
) -> Receiving {
    let mut config = NodeConfig::new((ip, 0).into());
    keys::of_node(&mut config);
    config.gateways = gateways.iter().map(|gateway| gateway.known()).collect();
    change(&mut config);
    let sink = Memory::default();
    let mut node = Node::bind(config, sink.clone()).expect("a port");
    let address = node.address();
    let events = Arc::new(Mutex::new(Vec::new()));
    let refused = Arc::<Mutex<RefusedCounters>>::default();
    let (told, counted) = (Arc::clone(&events), Arc::clone(&refused));
    let task = tokio::spawn(async move {
        loop {
            if let Some(event) = node.next().await {
                told.lock().unwrap_or_else(PoisonError::into_inner).push(event);
            }
            *counted.lock().unwrap_or_else(PoisonError::into_inner) = node.refused();
        }
    });
    Receiving { address, sink, task, events, refused }
}

/// The default options.
pub(crate) fn config(node: SocketAddr) -> PushConfig {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let id = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let mut config = PushConfig::new(node, TransferId(id));
    keys::of_push(&mut config);
    config
}

/// Runs a push to its outcome; `look` is called after each step.
pub(crate) async fn run(mut push: Push, mut look: impl FnMut(&Push)) -> (Outcome, Push) {
    let transfer = async {
        loop {
            if let Some(outcome) = push.step().await {
                break outcome;
            }
            look(&push);
        }
    };
    let outcome = tokio::time::timeout(PATIENCE, transfer).await.expect("it never ends");
    push.close().await;
    (outcome, push)
}

/// Waits until `happened` returns true, however long a loaded machine takes.
pub(crate) async fn until(mut happened: impl FnMut() -> bool) {
    let wait = async {
        while !happened() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it never happens");
}

/// A file to push.
pub(crate) fn contents(octets: usize) -> Bytes {
    anabranch_testkit::contents(octets).into()
}

pub(crate) fn on_one_thread(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(test);
}

pub(crate) const V4: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
pub(crate) const V6: IpAddr = IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);
