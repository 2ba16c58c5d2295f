//! What is tried: every option on and off at each end, every condition, both versions of IP and every order of closing,
//! each with either end as the one that opens.

use anabranch_core::tcp::{Config, SackRole};
use anabranch_sim::packet::IpVersion;

use super::watch::Options;

/// Which end opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opener {
    Kernel,
    Ours,
}

/// Who sends and closes when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    AtOnce,
    /// We send on a connection that the kernel has closed for itself.
    KernelFirst,
    /// The kernel sends on a connection that we have closed for ourselves.
    OursFirst,
}

/// What the network does to packets, and how little the ends hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    Plain,
    /// Every hundredth packet is lost, every fiftieth back.
    Loss,
    /// Some come late, some twice.
    Reordering,
    /// A few segments fill the receivers' buffers, and at first nobody reads.
    SmallWindows,
}

/// One connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) opener: Opener,
    pub(crate) condition: Condition,
    pub(crate) ip: IpVersion,
    pub(crate) order: Order,
    pub(crate) kernel: Options,
    pub(crate) ours: Options,
}

const ALL: Options = Options { sack: true, timestamps: true, window_scaling: true };
const NONE: Options = Options { sack: false, timestamps: false, window_scaling: false };
const NO_SACK: Options = Options { sack: false, ..ALL };
const NO_STAMPS: Options = Options { timestamps: false, ..ALL };
const NO_SCALING: Options = Options { window_scaling: false, ..ALL };

/// The kernel's options, and ours.
const fn cell(
    opener: Opener,
    condition: Condition,
    ip: IpVersion,
    order: Order,
    (kernel, ours): (Options, Options),
) -> Cell {
    Cell { opener, condition, ip, order, kernel, ours }
}

/// All that is tried.
pub(crate) const CELLS: [Cell; 12] = {
    use Condition::{Loss, Plain, Reordering, SmallWindows};
    use IpVersion::{V4, V6};
    use Opener::{Kernel, Ours};
    use Order::{AtOnce, KernelFirst, OursFirst};
    [
        cell(Kernel, Plain, V4, AtOnce, (ALL, ALL)),
        cell(Kernel, Loss, V6, AtOnce, (ALL, ALL)),
        cell(Kernel, Loss, V4, OursFirst, (NONE, ALL)),
        cell(Kernel, Reordering, V6, KernelFirst, (NO_STAMPS, NO_SACK)),
        cell(Kernel, Reordering, V4, AtOnce, (ALL, NO_STAMPS)),
        cell(Kernel, SmallWindows, V6, AtOnce, (NO_SCALING, NO_SCALING)),
        cell(Ours, Plain, V6, OursFirst, (NO_SCALING, ALL)),
        cell(Ours, Loss, V4, AtOnce, (ALL, ALL)),
        cell(Ours, Loss, V6, KernelFirst, (NO_SACK, ALL)),
        cell(Ours, Reordering, V4, AtOnce, (ALL, ALL)),
        cell(Ours, Reordering, V6, AtOnce, (NO_STAMPS, NONE)),
        cell(Ours, SmallWindows, V4, AtOnce, (ALL, ALL)),
    ]
};

impl Cell {
    /// What both ends offer.
    pub(crate) fn both(&self) -> Options {
        let Self { kernel, ours, .. } = self;
        Options {
            sack: kernel.sack && ours.sack,
            timestamps: kernel.timestamps && ours.timestamps,
            window_scaling: kernel.window_scaling && ours.window_scaling,
        }
    }

    /// Octets that a receiver holds where it shall be few.
    pub(crate) fn receive_buffer(&self) -> Option<u32> {
        (self.condition == Condition::SmallWindows).then_some(8192)
    }

    /// How our end behaves.
    pub(crate) fn tcp(&self) -> Config {
        let Self { ours, .. } = self;
        let default = Config::default();
        Config {
            mss: if self.ip == IpVersion::V4 { 1460 } else { 1440 },
            sack: if ours.sack { SackRole::Both } else { SackRole::Off },
            timestamps: ours.timestamps,
            window_scale: ours.window_scaling.then_some(7),
            receive_buffer: self.receive_buffer().unwrap_or(default.receive_buffer),
            ..default
        }
    }

    /// The network: one hop, fast, so that much can be carried.
    pub(crate) fn scenario(&self, netns: &str) -> String {
        let ip = if self.ip == IpVersion::V4 { 4 } else { 6 };
        let link = match self.condition {
            Condition::Plain => "delay = \"1 ms\"",
            Condition::Loss => "delay = \"500 us\"\nloss = \"1 %\"\nback = { loss = \"2 %\" }",
            Condition::Reordering => {
                "delay = \"500 us\"\nreordering = \"2 %\"\nlateness = \"2 ms\"\nduplication = \"1 %\""
            }
            Condition::SmallWindows => "delay = \"100 us\"",
        };
        format!(
            "[network]\nip = {ip}\n[[node]]\nname = \"kernel\"\nhost = \"tun\"\nnetns = \"{netns}\"\n\
             [[node]]\nname = \"ours\"\n[[link]]\nfrom = \"kernel\"\nto = \"ours\"\nrate = \"400 Mbit/s\"\n\
             queue = \"1000 packets\"\n{link}\n"
        )
    }
}

/// Each end has each option on and off, with each opener; and so have condition, version and order.
#[test]
fn nothing_is_tried_with_one_opener_only() {
    for opener in [Opener::Kernel, Opener::Ours] {
        let some = |has: &dyn Fn(&Cell) -> bool| CELLS.iter().any(|c| c.opener == opener && has(c));
        let ends: [fn(&Cell) -> Options; 2] = [|c| c.kernel, |c| c.ours];
        let options: [fn(Options) -> bool; 3] = [|o| o.sack, |o| o.timestamps, |o| o.window_scaling];
        for end in ends {
            for option in options {
                for on in [false, true] {
                    assert!(some(&|c| option(end(c)) == on), "{opener:?}");
                }
            }
        }
        use Condition::{Loss, Plain, Reordering, SmallWindows};
        for condition in [Plain, Loss, Reordering, SmallWindows] {
            assert!(some(&|c| c.condition == condition), "{opener:?} {condition:?}");
        }
        for ip in [IpVersion::V4, IpVersion::V6] {
            assert!(some(&|c| c.ip == ip), "{opener:?} {ip:?}");
        }
        for order in [Order::AtOnce, Order::KernelFirst, Order::OursFirst] {
            assert!(some(&|c| c.order == order), "{opener:?} {order:?}");
        }
    }
}
