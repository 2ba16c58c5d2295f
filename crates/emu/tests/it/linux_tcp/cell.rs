//! The test matrix: every option on and off at each end, every condition, both versions of IP and
//! every order of closing, each opened by either end; ECN and D-SACK, negotiated and refused; and
//! `Config::modern()`.

use anabranch_core::tcp::{Config, EcnMode, RtoConfig, SackRole};
use anabranch_core::time::Duration;
use anabranch_sim::packet::IpVersion;

use serde_json::{Value, json};

use super::watch::Options;

/// The end that opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opener {
    Kernel,
    Ours,
}

/// Who sends and closes when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    AtOnce,
    /// Our end sends after the kernel has closed its direction.
    KernelFirst,
    /// The kernel sends after our end has closed its direction.
    OursFirst,
}

/// Network conditions and buffer limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    Plain,
    /// Every hundredth packet is lost, and every fiftieth in the other direction.
    Loss,
    /// Some packets are late, some are duplicated.
    Reordering,
    /// A few segments fill the receive buffers, and initially nothing is read.
    SmallWindows,
    /// Queues mark packets.
    Marking,
    /// Queues mark packets, and a filter drops SYNs that request ECN.
    Filter,
    /// Queues mark packets, and the first SYN-ACK is lost.
    LostAnswer,
    /// Some packets arrive twice, in order.
    Duplication,
    /// Some packets are so late that they are taken for lost.
    Lateness,
    /// Packets are lost, late, duplicated and marked.
    Rough,
    /// The bandwidth-delay product exceeds the buffers of [`Config::default`].
    Long,
}

/// ECN settings of both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ecn {
    /// The sysctl `tcp_ecn`: 0 is off, 1 requests and accepts, 2 accepts.
    pub(crate) kernel: u8,
    pub(crate) ours: EcnMode,
}

/// Which ends report duplicates (RFC 2883).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Dsack {
    /// The sysctl `tcp_dsack`.
    pub(crate) kernel: bool,
    pub(crate) ours: bool,
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
    pub(crate) ecn: Ecn,
    pub(crate) dsack: Dsack,
    /// Our end uses [`Config::modern`].
    pub(crate) modern: bool,
}

const ALL: Options = Options { sack: true, timestamps: true, window_scaling: true };
const NONE: Options = Options { sack: false, timestamps: false, window_scaling: false };
const NO_SACK: Options = Options { sack: false, ..ALL };
const NO_STAMPS: Options = Options { timestamps: false, ..ALL };
const NO_SCALING: Options = Options { window_scaling: false, ..ALL };

/// A cell with the kernel's options and ours. ECN and D-SACK have the defaults of Linux and
/// [`Config::default`].
const fn cell(
    opener: Opener,
    condition: Condition,
    ip: IpVersion,
    order: Order,
    (kernel, ours): (Options, Options),
) -> Cell {
    let (ecn, dsack) = (Ecn { kernel: 2, ours: EcnMode::Off }, Dsack { kernel: true, ours: false });
    Cell { opener, condition, ip, order, kernel, ours, ecn, dsack, modern: false }
}

/// All cells.
pub(crate) const CELLS: [Cell; 33] = {
    use Condition::{
        Duplication, Filter, Lateness, Long, Loss, LostAnswer, Marking, Plain, Reordering, Rough,
        SmallWindows,
    };
    use EcnMode::{Accept, Off, Request};
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
        // ECN is negotiated.
        cell(Kernel, Marking, V6, AtOnce, (ALL, ALL)).ecn(1, Accept),
        cell(Kernel, Marking, V4, AtOnce, (ALL, ALL)).modern().ecn(1, Request),
        cell(Ours, Marking, V4, AtOnce, (ALL, ALL)).ecn(2, Request),
        cell(Ours, Marking, V6, AtOnce, (ALL, ALL)).modern().ecn(1, Request),
        // ECN is refused or not requested, or the path drops its negotiation.
        cell(Kernel, Marking, V4, AtOnce, (ALL, ALL)).ecn(1, Off),
        cell(Kernel, Marking, V6, AtOnce, (ALL, ALL)).ecn(2, Request),
        cell(Ours, Marking, V4, AtOnce, (ALL, ALL)).ecn(0, Request),
        cell(Ours, Marking, V6, AtOnce, (ALL, ALL)).ecn(1, Accept),
        cell(Kernel, Filter, V6, AtOnce, (ALL, ALL)).ecn(1, Request),
        cell(Ours, Filter, V4, AtOnce, (ALL, ALL)).ecn(1, Request),
        cell(Kernel, LostAnswer, V4, AtOnce, (ALL, ALL)).ecn(1, Request),
        cell(Ours, LostAnswer, V6, AtOnce, (ALL, ALL)).ecn(1, Request),
        // D-SACK.
        cell(Kernel, Duplication, V6, AtOnce, (ALL, ALL)).dsack(true, true),
        cell(Kernel, Duplication, V4, AtOnce, (ALL, ALL)).dsack(false, true),
        cell(Ours, Duplication, V4, AtOnce, (ALL, NO_STAMPS)).dsack(true, true),
        cell(Kernel, Lateness, V4, AtOnce, (ALL, ALL)).dsack(true, true),
        cell(Ours, Lateness, V6, AtOnce, (NO_STAMPS, ALL)).dsack(true, true),
        // All of `Config::modern()`.
        cell(Kernel, Rough, V6, AtOnce, (ALL, ALL)).modern().ecn(1, Request),
        cell(Ours, Rough, V4, AtOnce, (ALL, ALL)).modern().ecn(2, Request),
        cell(Kernel, Long, V4, AtOnce, (ALL, ALL)).modern().ecn(2, Request),
        cell(Ours, Long, V6, AtOnce, (ALL, ALL)).modern().ecn(2, Request),
    ]
};

impl Cell {
    const fn ecn(self, kernel: u8, ours: EcnMode) -> Self {
        Self { ecn: Ecn { kernel, ours }, ..self }
    }

    const fn dsack(self, kernel: bool, ours: bool) -> Self {
        Self { dsack: Dsack { kernel, ours }, ..self }
    }

    /// [`Config::modern`] reports duplicates and requests ECN.
    const fn modern(self) -> Self {
        Self { modern: true, ..self.dsack(true, true) }
    }

    /// True if the end that opens requests ECN.
    pub(crate) fn asks_for_ecn(&self) -> bool {
        match self.opener {
            Opener::Kernel => self.ecn.kernel == 1,
            Opener::Ours => self.ecn.ours == EcnMode::Request,
        }
    }

    /// Whether the kernel, and our end, may send ECN-capable packets.
    pub(crate) fn ecn_capable(&self) -> [bool; 2] {
        let answers = match self.opener {
            Opener::Kernel => self.ecn.ours != EcnMode::Off,
            Opener::Ours => self.ecn.kernel != 0,
        };
        let both = self.asks_for_ecn() && answers;
        match (self.condition, self.opener) {
            (Condition::Filter, _) => [false; 2],
            // The second SYN tells our end that the kernel has given up on ECN.
            (Condition::LostAnswer, Opener::Kernel) => [false; 2],
            // The kernel follows our first SYN. Our second SYN forbids us to send ECT (RFC 3168
            // section 6.1.1).
            (Condition::LostAnswer, Opener::Ours) => [both, false],
            _ => [both; 2],
        }
    }

    /// Number of bytes that each end sends.
    pub(crate) fn octets(&self) -> usize {
        match self.condition {
            Condition::Marking | Condition::Filter | Condition::LostAnswer
                if self.ecn_capable() == [false; 2] =>
            {
                500_000
            }
            Condition::Marking | Condition::Filter | Condition::LostAnswer | Condition::Lateness => 4_000_000,
            Condition::Duplication | Condition::Rough => 5_000_000,
            Condition::Plain
            | Condition::Loss
            | Condition::Reordering
            | Condition::SmallWindows
            | Condition::Long => 10_000_000,
        }
    }
    /// The options that both ends offer.
    pub(crate) fn both(&self) -> Options {
        let Self { kernel, ours, .. } = self;
        Options {
            sack: kernel.sack && ours.sack,
            timestamps: kernel.timestamps && ours.timestamps,
            window_scaling: kernel.window_scaling && ours.window_scaling,
        }
    }

    /// Receive buffer in bytes where it is limited.
    pub(crate) fn receive_buffer(&self) -> Option<u32> {
        (self.condition == Condition::SmallWindows).then_some(8192)
    }

    /// Configuration of our end.
    pub(crate) fn tcp(&self) -> Config {
        let Self { ours, .. } = self;
        let base = if self.modern { Config::modern() } else { Config::default() };
        let rto = RtoConfig {
            initial: match self.condition {
                // The second SYN, which does not request ECN, leaves before the kernel's second
                // SYN-ACK.
                Condition::Filter | Condition::LostAnswer if self.opener == Opener::Ours => {
                    Duration::from_millis(300)
                }
                // On a busy machine, a short timeout could replace the first SYN, which requests
                // ECN, by the second.
                _ if self.ecn.ours == EcnMode::Request => Duration::from_secs(10),
                _ => base.rto.initial,
            },
            ..base.rto
        };
        Config {
            mss: if self.ip == IpVersion::V4 { 1460 } else { 1440 },
            sack: if ours.sack { SackRole::Both } else { SackRole::Off },
            timestamps: ours.timestamps,
            window_scale: ours.window_scaling.then_some(7),
            receive_buffer: self.receive_buffer().unwrap_or(base.receive_buffer),
            dsack: self.dsack.ours,
            undo: self.dsack.ours,
            ecn: self.ecn.ours,
            rto,
            ..base
        }
    }

    /// Sysctls of the kernel's namespace, in `net.ipv4`.
    pub(crate) fn sysctls(&self) -> Value {
        json!({
            "tcp_ecn": self.ecn.kernel,
            // On a busy machine, the kernel must not stop requesting ECN.
            "tcp_ecn_fallback": u8::from([Condition::Filter, Condition::LostAnswer].contains(&self.condition)),
            "tcp_dsack": u8::from(self.dsack.kernel),
        })
    }

    /// Congestion control of the kernel in cells with ECN; `None` is the default. The default may
    /// be BBR, which ignores marks.
    pub(crate) fn congestion(&self) -> Option<&'static str> {
        self.ecn_capable()[0].then_some("reno")
    }

    /// The network: one fast hop, so that much data can be carried.
    pub(crate) fn scenario(&self, netns: &str) -> String {
        let ip = if self.ip == IpVersion::V4 { 4 } else { 6 };
        let link = match self.condition {
            Condition::Plain => "delay = \"1 ms\"",
            Condition::Loss => "delay = \"500 us\"\nloss = \"1 %\"\nback = { loss = \"2 %\" }",
            Condition::Reordering => {
                "delay = \"500 us\"\nreordering = \"2 %\"\nlateness = \"2 ms\"\nduplication = \"1 %\""
            }
            Condition::SmallWindows => "delay = \"100 us\"",
            Condition::Marking | Condition::Filter | Condition::LostAnswer => {
                "delay = \"1 ms\"\necn_threshold = \"20 packets\""
            }
            Condition::Duplication => "delay = \"500 us\"\nduplication = \"2 %\"",
            Condition::Lateness => "delay = \"500 us\"\nreordering = \"1 %\"\nlateness = \"5 ms\"",
            Condition::Rough => {
                "delay = \"500 us\"\nloss = \"0.5 %\"\nreordering = \"1 %\"\nlateness = \"2 ms\"\n\
                 duplication = \"1 %\"\necn_threshold = \"20 packets\""
            }
            Condition::Long => "delay = \"10 ms\"",
        };
        let (rate, queue) = match self.condition {
            Condition::Marking | Condition::Filter | Condition::LostAnswer => (100, 1000),
            // Slow start overshoots the bandwidth-delay product.
            Condition::Long => (400, 10_000),
            _ => (400, 1000),
        };
        format!(
            "[network]\nip = {ip}\n[[node]]\nname = \"kernel\"\nhost = \"tun\"\nnetns = \"{netns}\"\n\
             [[node]]\nname = \"ours\"\n[[link]]\nfrom = \"kernel\"\nto = \"ours\"\nrate = \"{rate} Mbit/s\"\n\
             queue = \"{queue} packets\"\n{link}\n"
        )
    }
}

/// Each end has each option on and off with each opener; so has every condition, version and order.
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
        use Condition::{
            Duplication, Filter, Lateness, Long, Loss, LostAnswer, Marking, Plain, Reordering, Rough,
            SmallWindows,
        };
        for condition in [
            Plain,
            Loss,
            Reordering,
            SmallWindows,
            Marking,
            Filter,
            LostAnswer,
            Duplication,
            Lateness,
            Rough,
            Long,
        ] {
            assert!(some(&|c| c.condition == condition), "{opener:?} {condition:?}");
        }
        for asks in [false, true] {
            assert!(some(&|c| c.condition == Marking && c.asks_for_ecn() == asks), "{opener:?}");
        }
        for modern in [false, true] {
            assert!(some(&|c| c.ecn_capable() == [true; 2] && c.modern == modern), "{opener:?}");
        }
        assert!(
            some(&|c| c.condition == Marking && c.asks_for_ecn() && c.ecn_capable() == [false; 2]),
            "{opener:?}"
        );
        for ip in [IpVersion::V4, IpVersion::V6] {
            assert!(some(&|c| c.ip == ip), "{opener:?} {ip:?}");
        }
        for order in [Order::AtOnce, Order::KernelFirst, Order::OursFirst] {
            assert!(some(&|c| c.order == order), "{opener:?} {order:?}");
        }
    }
}
