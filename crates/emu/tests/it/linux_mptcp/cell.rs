//! The test matrix: every subject of RFC 8684, over both versions of IP, each opened by either end.

use anabranch_core::mptcp;
use anabranch_core::tcp::{self, DsnWidth};
use anabranch_core::time::Duration;
use anabranch_sim::packet::IpVersion;

use super::middlebox::{Meddling, Way};

/// The end that opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opener {
    Kernel,
    Ours,
}

/// What our end does at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deed {
    /// Opens a subflow from our second address.
    Join,
    /// Announces our second address.
    Announce,
    /// Announces our second address with a port.
    AnnouncePort,
    /// Withdraws our second address.
    Remove,
    /// Declares the second subflow a backup.
    Backup,
    /// Closes the second subflow.
    Close,
    /// Aborts the connection.
    Abort,
}

/// Network conditions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    Plain,
    /// Some packets are lost, in both directions.
    Loss,
    /// Some packets are late, some are duplicated.
    Reordering,
    /// The first path fails without a sign and returns; then the second.
    Failing,
}

/// What a cell is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Subject {
    /// One subflow: MP_CAPABLE, DSS, DATA_FIN.
    Single,
    /// The kernel opens a second subflow.
    KernelJoins,
    /// Our end opens a second subflow.
    WeJoin,
    /// The kernel announces its second address, and our end connects to it.
    KernelAnnounces,
    /// The kernel announces its second address with a port.
    KernelAnnouncesPort,
    /// Our end announces its second address, and the kernel connects to it.
    WeAnnounce,
    /// Our end announces its second address with a port.
    WeAnnouncePort,
    /// The kernel opens a second subflow and withdraws its address.
    KernelRemoves,
    /// Our end opens a second subflow and withdraws its address.
    WeRemove,
    /// The kernel opens a second subflow as a backup.
    KernelBacksUp,
    /// The kernel declares the second subflow a backup while it is in use (MP_PRIO).
    KernelPrio,
    /// Our end declares the second subflow a backup while it is in use (MP_PRIO).
    WePrio,
    /// Our end closes the second subflow.
    WeCloseSubflow,
    /// The kernel allows no further subflows to the address of the first (flag C).
    NoJoins,
    /// The kernel aborts the connection.
    KernelFastcloses,
    /// Our end aborts the connection.
    WeFastclose,
    /// A middlebox meddles with the only subflow.
    Meddled(Meddling),
    /// A middlebox meddles with the first of two subflows, the second of which the kernel opens.
    MeddledOfTwo(Meddling),
}

/// One connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) subject: Subject,
    pub(crate) opener: Opener,
    pub(crate) ip: IpVersion,
    pub(crate) condition: Condition,
    /// Which ends require checksums: the kernel, and ours.
    pub(crate) checksums: [bool; 2],
    pub(crate) width: DsnWidth,
    /// Number of bytes that each end sends.
    pub(crate) octets: usize,
}

/// The cells with transfers of this many bytes: all, or one of each subject and condition.
pub(crate) fn cells(octets: usize, all: bool) -> Vec<Cell> {
    use Condition::{Failing, Loss, Plain, Reordering};
    use Subject::*;
    let meddling = [
        Meddling::StripSyn,
        Meddling::StripSynAck,
        Meddling::StripThird,
        Meddling::StripData,
        Meddling::StripAll,
        Meddling::DropCapable,
        Meddling::Corrupt(Way::ToUs),
        Meddling::Corrupt(Way::FromUs),
    ];
    let of_two = [Meddling::StripJoin, Meddling::Corrupt(Way::ToUs), Meddling::Corrupt(Way::FromUs)];
    let subjects = [
        Single,
        KernelJoins,
        WeJoin,
        KernelAnnounces,
        KernelAnnouncesPort,
        WeAnnounce,
        WeAnnouncePort,
        KernelRemoves,
        WeRemove,
        KernelBacksUp,
        KernelPrio,
        WePrio,
        WeCloseSubflow,
        NoJoins,
        KernelFastcloses,
        WeFastclose,
    ];
    let subjects = subjects.into_iter().chain(meddling.map(Meddled)).chain(of_two.map(MeddledOfTwo));
    let plain = subjects.map(|subject| (subject, Plain));
    let rough = [Loss, Reordering, Failing]
        .into_iter()
        .flat_map(|condition| [(Single, condition), (KernelJoins, condition), (WeJoin, condition)]);
    // A single subflow over a path that fails waits for its time-out, which TCP's matrix tries.
    let rough = rough.filter(|case| *case != (Single, Failing));
    let mut cells = Vec::new();
    for (i, (subject, condition)) in plain.chain(rough).enumerate() {
        let mut possible = Vec::new();
        for (j, (opener, ip)) in [
            (Opener::Kernel, IpVersion::V4),
            (Opener::Kernel, IpVersion::V6),
            (Opener::Ours, IpVersion::V4),
            (Opener::Ours, IpVersion::V6),
        ]
        .into_iter()
        .enumerate()
        {
            let corrupts =
                matches!(subject, Meddled(Meddling::Corrupt(_)) | MeddledOfTwo(Meddling::Corrupt(_)));
            // Each subject and each opener meets both sizes of numbers, and checksums on and off.
            let turn = i + j + j / 2;
            let checksums = match turn % 4 {
                _ if corrupts => [true; 2],
                1 => [true, false],
                3 => [turn % 8 < 4, true],
                _ => [false; 2],
            };
            let width = if turn % 2 == 0 { DsnWidth::Eight } else { DsnWidth::Four };
            // The transfer must last longer than the failures.
            let octets = if condition == Failing { octets.max(5_000_000) } else { octets };
            let cell = Cell { subject, opener, ip, condition, checksums, width, octets };
            if cell.is_possible() {
                possible.push(cell);
            }
        }
        // If only one is wanted, openers and versions take turns.
        let one = (i + i / 4) % possible.len();
        cells.extend(if all { possible } else { vec![possible[one]] });
    }
    cells
}

impl Cell {
    /// False for what Linux does not offer: a client has no listener for further subflows.
    fn is_possible(&self) -> bool {
        use Subject::*;
        let needs_listener =
            matches!(self.subject, WeJoin | WeRemove | WePrio | WeCloseSubflow | KernelAnnounces | NoJoins);
        !(needs_listener && self.opener == Opener::Kernel)
    }

    /// Configuration of our end.
    pub(crate) fn config(&self) -> mptcp::Config {
        let mss = match self.ip {
            // Linux does not count the option of an infinite mapping in its segment size: its
            // packet would exceed the MTU.
            _ if matches!(self.subject, Subject::Meddled(Meddling::Corrupt(_))) => 1380,
            IpVersion::V4 => 1460,
            IpVersion::V6 => 1440,
        };
        let base = tcp::Config::modern();
        let rto = if self.meddling() == Meddling::DropCapable {
            tcp::RtoConfig { initial: Duration::from_millis(300), ..base.rto }
        } else {
            base.rto
        };
        let timestamps = self.has_timestamps();
        let tcp = tcp::Config { mss, window_scale: Some(7), rto, timestamps, ..base };
        let checksums = self.checksums[1];
        let repeat_keys = true;
        mptcp::Config { tcp, dsn_width: self.width, checksums, repeat_keys, ..mptcp::Config::default() }
    }

    /// Whether segments have timestamps: an ADD_ADDR with an IPv6 address and a port has no room
    /// beside them.
    pub(crate) fn has_timestamps(&self) -> bool {
        let ports = matches!(self.subject, Subject::KernelAnnouncesPort | Subject::WeAnnouncePort);
        !(ports && self.ip == IpVersion::V6)
    }

    /// What the middlebox does.
    pub(crate) fn meddling(&self) -> Meddling {
        match self.subject {
            Subject::Meddled(meddling) | Subject::MeddledOfTwo(meddling) => meddling,
            _ => Meddling::Nothing,
        }
    }

    /// Our deeds when the connection is open to joins, and when half of the bytes have arrived.
    pub(crate) fn deeds(&self) -> [Vec<Deed>; 2] {
        use Subject::*;
        match self.subject {
            WeJoin => [vec![Deed::Join], vec![]],
            WeAnnounce => [vec![Deed::Announce], vec![]],
            WeAnnouncePort => [vec![Deed::AnnouncePort], vec![]],
            WeRemove => [vec![Deed::Join], vec![Deed::Remove]],
            WePrio => [vec![Deed::Join], vec![Deed::Backup]],
            WeCloseSubflow => [vec![Deed::Join], vec![Deed::Close]],
            NoJoins => [vec![Deed::Join], vec![]],
            WeFastclose => [vec![], vec![Deed::Abort]],
            _ => [vec![], vec![]],
        }
    }

    /// Arguments of `ip mptcp endpoint add ADDRESS` for the kernel's second address, if there are
    /// any.
    pub(crate) fn endpoint(&self) -> Option<&'static [&'static str]> {
        use Subject::*;
        Some(match self.subject {
            KernelJoins | KernelRemoves | KernelPrio | MeddledOfTwo(_) => &["id", "2", "subflow"],
            KernelBacksUp => &["id", "2", "subflow", "backup"],
            KernelAnnounces => &["id", "2", "signal"],
            KernelAnnouncesPort => &["id", "2", "port", "48001", "signal"],
            _ => return None,
        })
    }

    /// Arguments of `ip mptcp` at the kernel's end when half of the bytes have arrived.
    pub(crate) fn at_half(&self) -> Vec<Vec<&'static str>> {
        use Subject::*;
        match self.subject {
            KernelRemoves => vec![vec!["ip", "mptcp", "endpoint", "delete", "id", "2"]],
            KernelPrio => vec![vec!["ip", "mptcp", "endpoint", "change", "id", "2", "backup"]],
            KernelFastcloses => vec![vec!["reset"]],
            _ => vec![],
        }
    }

    /// Whether the connection is plain TCP from the beginning.
    pub(crate) fn falls_back(&self) -> bool {
        use Meddling::*;
        matches!(
            self.subject,
            Subject::Meddled(
                StripSyn | StripSynAck | StripThird | StripData | StripAll | DropCapable | Corrupt(_)
            )
        )
    }

    /// Least number of subflows that carry data.
    pub(crate) fn subflows(&self) -> usize {
        use Subject::*;
        match self.subject {
            KernelJoins
            | WeJoin
            | KernelAnnounces
            | KernelAnnouncesPort
            | WeAnnounce
            | WeAnnouncePort
            | KernelRemoves
            | WeRemove
            | KernelPrio
            | WePrio
            | WeCloseSubflow
            | MeddledOfTwo(Meddling::Corrupt(_)) => 2,
            _ => 1,
        }
    }

    /// Whether no MPTCP option reaches the kernel.
    pub(crate) fn is_bare(&self) -> bool {
        use Meddling::{DropCapable, StripSyn};
        matches!(self.subject, Subject::Meddled(StripSyn | DropCapable)) && self.opener == Opener::Ours
    }

    /// Whether the second subflow is withdrawn or spared at half time.
    pub(crate) fn gives_up(&self) -> bool {
        use Subject::{KernelPrio, KernelRemoves, WeCloseSubflow, WePrio, WeRemove};
        matches!(self.subject, KernelPrio | KernelRemoves | WeCloseSubflow | WePrio | WeRemove)
    }

    /// Whether the connection is aborted.
    pub(crate) fn is_aborted(&self) -> bool {
        matches!(self.subject, Subject::KernelFastcloses | Subject::WeFastclose)
    }

    /// Counters of MPTcpExt that this subject increments, and those that it may increment, among
    /// those that mean an error, a refusal or a fallback.
    pub(crate) fn counters(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        use Meddling::*;
        use Subject::*;
        let kernel = self.opener == Opener::Kernel;
        let (mut required, allowed) = match self.subject {
            Single | NoJoins => (vec![], vec![]),
            KernelJoins => (vec!["MPJoinSynAckRx"], vec![]),
            WeJoin | WeCloseSubflow => (vec!["MPJoinAckRx"], vec![]),
            KernelAnnounces => (vec!["AddAddrTx", "EchoAdd", "MPJoinAckRx"], vec![]),
            KernelAnnouncesPort => (vec!["AddAddrTx", "EchoAdd", "MPJoinPortAckRx"], vec![]),
            WeAnnounce => (vec!["AddAddr", "EchoAddTx", "MPJoinSynAckRx"], vec![]),
            WeAnnouncePort => (vec!["AddAddr", "PortAdd", "EchoAddTx", "MPJoinSynAckRx"], vec![]),
            // Each end resets the subflow of a withdrawn address.
            KernelRemoves => (vec!["RmAddrTx", "RmSubflow", "MPJoinSynAckRx"], vec!["MPRstTx", "MPRstRx"]),
            WeRemove => (vec!["RmAddr", "MPJoinAckRx"], vec!["MPRstTx", "MPRstRx"]),
            KernelBacksUp => (vec!["MPJoinSynAckRx", "MPJoinSynAckBackupRx"], vec![]),
            KernelPrio => (vec!["MPPrioTx", "MPJoinSynAckRx"], vec![]),
            WePrio => (vec!["MPPrioRx", "MPJoinAckRx"], vec![]),
            KernelFastcloses => (vec!["MPFastcloseTx", "MPRstTx"], vec![]),
            WeFastclose => (vec!["MPFastcloseRx"], vec![]),
            Meddled(Nothing | StripJoin) => (vec![], vec![]),
            Meddled(StripSyn) if kernel => (vec!["MPCapableFallbackSYNACK"], vec![]),
            Meddled(StripSyn) => (vec![], vec![]),
            Meddled(StripSynAck) if kernel => (vec!["MPCapableFallbackSYNACK"], vec![]),
            Meddled(DropCapable) if kernel => (vec!["MPCapableSYNTXDrop", "Blackhole"], vec![]),
            Meddled(DropCapable) => (vec![], vec![]),
            Meddled(StripThird | StripData | StripAll) if kernel => (vec!["MPCapableDataFallback"], vec![]),
            Meddled(StripSynAck | StripThird | StripAll) => (vec!["MPCapableFallbackACK"], vec![]),
            Meddled(StripData) => {
                (vec![], vec!["MPCapableDataFallback", "DssFallback", "MPCapableFallbackACK"])
            }
            Meddled(Corrupt(Way::ToUs)) => {
                (vec!["MPFailRx", "MPFailTx", "InfiniteMapTx"], vec!["InfiniteMapRx", "DssFallback"])
            }
            Meddled(Corrupt(Way::FromUs)) => (
                vec!["DataCsumErr", "MPFailTx"],
                vec!["MPFailRx", "InfiniteMapRx", "InfiniteMapTx", "DssFallback"],
            ),
            MeddledOfTwo(Corrupt(Way::FromUs)) => {
                (vec!["DataCsumErr", "MPFailTx", "MPRstTx"], vec!["MPRstRx"])
            }
            MeddledOfTwo(Corrupt(Way::ToUs)) => (vec!["MPFailRx"], vec!["MPRstTx", "MPRstRx"]),
            // A SYN-ACK without MP_JOIN.
            MeddledOfTwo(_) => (vec![], vec!["MPRstTx"]),
        };
        let keys = matches!(
            self.meddling(),
            StripSyn | StripSynAck | StripThird | StripData | StripAll | DropCapable
        );
        if !keys {
            required.push(if kernel { "MPCapableSYNACKRX" } else { "MPCapableACKRX" });
        }
        (required, allowed)
    }

    /// The network: a star with two access links for each end.
    pub(crate) fn scenario(&self, netns: &str) -> String {
        let ip = if self.ip == IpVersion::V4 { 4 } else { 6 };
        let link = match self.condition {
            Condition::Plain | Condition::Failing => "",
            Condition::Loss => "loss = \"0.5 %\"\n",
            Condition::Reordering => "reordering = \"1 %\"\nlateness = \"2 ms\"\nduplication = \"1 %\"\n",
        };
        let mut text = format!(
            "[network]\nip = {ip}\n\
             [[node]]\nname = \"kernel1\"\nhost = \"tun\"\nnetns = \"{netns}\"\ndevice = \"k1\"\n\
             [[node]]\nname = \"kernel2\"\nhost = \"tun\"\nnetns = \"{netns}b\"\ndevice = \"k2\"\n\
             [[node]]\nname = \"ours1\"\n[[node]]\nname = \"ours2\"\n[[node]]\nname = \"router\"\nkind = \"router\"\n"
        );
        for (i, name) in ["kernel1", "kernel2", "ours1", "ours2"].into_iter().enumerate() {
            let delay = if i % 2 == 0 { 1 } else { 2 };
            let link = if i < 2 { link } else { "" };
            let rate = if self.condition == Condition::Failing { 20 } else { 100 };
            text += &format!(
                "[[link]]\nfrom = \"{name}\"\nto = \"router\"\nrate = \"{rate} Mbit/s\"\n\
                 queue = \"1000 packets\"\ndelay = \"{delay} ms\"\n{link}"
            );
        }
        if self.condition == Condition::Failing {
            for (link, from, to) in [("kernel1", 150, 700), ("kernel2", 900, 1500)] {
                for (at, loss) in [(from, "100 %"), (to, "0 %")] {
                    text += &format!(
                        "[[event]]\nat = \"{at} ms\"\naction = \"set-loss\"\nfrom = \"{link}\"\nto = \"router\"\n\
                         loss = \"{loss}\"\n\
                         [[event]]\nat = \"{at} ms\"\naction = \"set-loss\"\nfrom = \"router\"\nto = \"{link}\"\n\
                         loss = \"{loss}\"\n"
                    );
                }
            }
        }
        text
    }
}
