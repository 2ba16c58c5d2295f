//! All fuzz targets. A target is a function that panics if it finds a fault.

mod aodv;
mod cache;
mod collector;
mod datagram;
mod embed_cache;
mod embed_sense;
mod event_log;
mod ip_tcp;
mod lowpan;
mod mac_frame;
mod mptcp_machines;
mod mptcp_options;
mod proxy;
mod rdca_machines;
mod rdca_wire;
mod rpl;
mod scenario;
mod set_guard;
mod set_header;
mod set_machines;
mod set_nonces;
mod sockbuf;
mod stream;
mod suit_manifest;
mod tcp_input;
mod wifi_frame;

use crate::probe::Probe;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name on the command line; the corpus is in `corpus/NAME`.
    pub name: &'static str,
    /// Runs the target on one input. Panics only if a check fails.
    pub run: fn(&[u8], &mut Probe),
    /// Maximum length of inputs in bytes.
    pub max_len: usize,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "ip_tcp", run: ip_tcp::run, max_len: 2048 },
    Target { name: "mac_frame", run: mac_frame::run, max_len: 256 },
    Target { name: "wifi_frame", run: wifi_frame::run, max_len: 512 },
    Target { name: "lowpan", run: lowpan::run, max_len: 1024 },
    Target { name: "rpl", run: rpl::run, max_len: 1024 },
    Target { name: "aodv", run: aodv::run, max_len: 512 },
    Target { name: "embed_cache", run: embed_cache::run, max_len: 4096 },
    Target { name: "embed_sense", run: embed_sense::run, max_len: 4096 },
    Target { name: "cache", run: cache::run, max_len: 4096 },
    Target { name: "mptcp_options", run: mptcp_options::run, max_len: 64 },
    Target { name: "proxy", run: proxy::run, max_len: 512 },
    Target { name: "mptcp_machines", run: mptcp_machines::run, max_len: 4096 },
    Target { name: "tcp_input", run: tcp_input::run, max_len: 2048 },
    Target { name: "set_guard", run: set_guard::run, max_len: 2048 },
    Target { name: "set_header", run: set_header::run, max_len: 2048 },
    Target { name: "set_nonces", run: set_nonces::run, max_len: 1024 },
    Target { name: "suit_manifest", run: suit_manifest::run, max_len: 1200 },
    Target { name: "set_machines", run: set_machines::run, max_len: 4096 },
    Target { name: "rdca_wire", run: rdca_wire::run, max_len: 512 },
    Target { name: "rdca_machines", run: rdca_machines::run, max_len: 4096 },
    Target { name: "datagram", run: datagram::run, max_len: 4096 },
    Target { name: "collector", run: collector::run, max_len: 4096 },
    Target { name: "sockbuf", run: sockbuf::run, max_len: 4096 },
    Target { name: "scenario", run: scenario::run, max_len: 4096 },
    Target { name: "event_log", run: event_log::run, max_len: 4096 },
];

/// The target of this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
