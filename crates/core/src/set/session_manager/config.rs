//! The sender's options.

use anabranch_wire::set::{FileIdentity, Layout, Plan};

use crate::set::striping::StripingPolicy;
use crate::time::Duration;

/// When data may follow a SETSYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Start {
    /// After the SETACK, as in the paper.
    #[cfg_attr(feature = "serde", serde(rename = "after-setack"))]
    AfterSetAck,
    /// At once on the first session, and for copies of a small file on every session: the gateway
    /// holds the bytes that arrive before the wireless half is open. With reinjection, a file of at
    /// most 1200 bytes also follows the request, and sessions wait for its acknowledgement.
    Early,
}

/// When the next session is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Open"))]
pub enum OpenWhen {
    /// When the last is open, has failed, or has not answered for too long, as in the paper
    /// (section 4.2.3).
    OneByOne,
    /// When the last has reached its gateway: its wireless half opens while the next wired half
    /// does. All at once when the whole file is assigned, or if it has at most 1200 bytes.
    Staggered,
    /// All together.
    AtOnce,
}

/// What an idle session does about a chunk that holds up the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SetReinjection"))]
pub enum Reinjection {
    /// Nothing, as in the paper.
    Off,
    /// It carries a copy, if the copy will arrive first.
    On,
}

/// When a gateway whose session was lost is called again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SetRecovery"))]
pub enum Recovery {
    /// When no session is left. The paper does not cover gateways that return.
    NoneLeft,
    /// Also while others carry: after an eighth of the time since the loss, at most 30 s. A call
    /// that has no answer while others carry is abandoned and repeated in the same way.
    Always,
}

/// Options of a [`super::Sender`].
#[derive(Clone, Copy, Debug)]
pub struct SenderConfig {
    /// Sessions, plain split TCP, or end-to-end TCP.
    pub plan: Plan,
    /// How many gateways at most.
    pub gateways: usize,
    /// Layout of the data header.
    pub layout: Layout,
    /// When data may follow a SETSYN.
    pub start: Start,
    /// When the next session is called.
    pub open: OpenWhen,
    /// How sessions share the file.
    pub striping: StripingPolicy,
    /// Chunks that a session may have on its way on top of what fills its path as far as that is
    /// known. What a busy machine's clock or a batch of acknowledgements withholds for a moment
    /// must fit.
    pub spare_chunks: u64,
    /// What an idle session does for a chunk that holds up the others.
    pub reinjection: Reinjection,
    /// First time-out of a SETSYN (`t_SET`); doubles. The paper's default is 3 s.
    pub set_timeout: Duration,
    /// SETSYNs in all.
    pub set_tries: u8,
    /// How long a call may keep the next one waiting; 3 request times if that is more, up to five
    /// times this. Also a fifth of the longest time that a copy behind the request keeps sessions
    /// waiting without progress.
    pub patience: Duration,
    /// A session with bytes on its way that is silent for so long is passed over, and its bytes
    /// travel again; 8 request times if that is more, up to five times this, and never less than
    /// four times what its chunks take. After four times that, it is closed, if another is alive.
    pub silence: Duration,
    /// Nothing delivered for this long ends the transfer; ten times as long while a session is
    /// open, so that TCP on the wireless half gives up first.
    pub stall: Duration,
    /// No answer to a request for so long, and it is made anew.
    pub request_timeout: Duration,
    /// Requests in all.
    pub request_tries: u32,
    /// When a lost gateway is called again.
    pub recovery: Recovery,
    /// How often a lost gateway is called again, when no session is left, before something is
    /// delivered.
    pub redials: usize,
    /// A node that is busy is asked again, more and more seldom, until so long after it first said
    /// so.
    pub busy_patience: Duration,
    /// A gateway that says that it is congested is left alone for so long, and twice as long each
    /// time that it says so again, up to twelve times this.
    pub congestion_backoff: Duration,
    /// When every gateway is congested, they are called again and again until so long after none
    /// was left.
    pub congestion_patience: Duration,
    /// Which file it is: only who says so can go on where a transfer was interrupted.
    pub file: Option<FileIdentity>,
}

impl Default for SenderConfig {
    fn default() -> Self {
        Self {
            plan: Plan::Stripe,
            gateways: usize::MAX,
            layout: Layout::Compact,
            start: Start::Early,
            open: OpenWhen::Staggered,
            striping: StripingPolicy::Predictive,
            spare_chunks: 2,
            reinjection: Reinjection::On,
            set_timeout: Duration::from_secs(3),
            set_tries: 6,
            patience: Duration::from_secs(1),
            silence: Duration::from_secs(3),
            stall: Duration::from_secs(120),
            request_timeout: Duration::from_secs(15),
            request_tries: 8,
            recovery: Recovery::Always,
            redials: 2,
            busy_patience: Duration::ZERO,
            congestion_backoff: Duration::from_secs(5),
            congestion_patience: Duration::ZERO,
            file: None,
        }
    }
}

impl SenderConfig {
    /// SET as printed: data after the SETACK, window striping, no re-injection. Acknowledgements of
    /// the session layer stay, since without them a lost gateway would lose bytes.
    pub fn paper() -> Self {
        Self {
            start: Start::AfterSetAck,
            open: OpenWhen::OneByOne,
            striping: StripingPolicy::Window,
            reinjection: Reinjection::Off,
            recovery: Recovery::NoneLeft,
            ..Self::default()
        }
    }
}
