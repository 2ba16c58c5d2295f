//! Options of the sender.

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
    /// At once on the first session, and for copies of a small file on every session. The gateway
    /// holds bytes that arrive before the wireless half is open. With reinjection, a file of at
    /// most 1200 bytes also follows the request, and sessions wait for its acknowledgement.
    Early,
}

/// When the next session is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Open"))]
pub enum OpenWhen {
    /// When the previous session is open, has failed, or has not answered for too long, as in the
    /// paper (section 4.2.3).
    OneByOne,
    /// When the previous session has reached its gateway: its wireless half opens at the same time
    /// as the next wired half. All sessions open at once when the whole file is assigned, or if it
    /// has at most 1200 bytes.
    Staggered,
    /// All sessions open at once.
    AtOnce,
}

/// What an idle session does about a chunk that holds up others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SetReinjection"))]
pub enum Reinjection {
    /// Nothing, as in the paper.
    Off,
    /// It sends a copy of the chunk, if the copy is expected to arrive first.
    On,
}

/// When a gateway whose session was lost is called again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SetRecovery"))]
pub enum Recovery {
    /// When no session is left. The paper does not cover gateways that return.
    NoneLeft,
    /// Also while other sessions are open: after an eighth of the time since the loss, at most 30
    /// s. A call without an answer is then abandoned and repeated in the same way.
    Always,
}

/// Options of a [`super::Sender`].
#[derive(Clone, Copy, Debug)]
pub struct SenderConfig {
    /// Sessions, plain split TCP, or end-to-end TCP.
    pub plan: Plan,
    /// Largest number of gateways.
    pub gateways: usize,
    /// Layout of the data header.
    pub layout: Layout,
    /// When data may follow a SETSYN.
    pub start: Start,
    /// When the next session is called.
    pub open: OpenWhen,
    /// Distribution of the file over the sessions.
    pub striping: StripingPolicy,
    /// Number of chunks that a session may have in flight beyond the estimated capacity of its
    /// path. They bridge short delays of a busy machine's clock or of batched acknowledgements.
    /// On a slow path they are at most what it carries in 500 ms, but not less than two.
    pub spare_chunks: u64,
    /// What an idle session does about a chunk that holds up others.
    pub reinjection: Reinjection,
    /// Initial time-out of a SETSYN (`t_SET`); doubles. The paper's default is 3 s.
    pub set_timeout: Duration,
    /// Total number of SETSYNs per session.
    pub set_tries: u8,
    /// How long a call may delay the next one; 3 request times if that is longer, up to five times
    /// this value. Also one fifth of the longest time without progress that a copy after the
    /// request delays sessions.
    pub patience: Duration,
    /// Silence after which a session with bytes in flight is suspect and its bytes are reassigned;
    /// 8 request times if that is longer, up to five times this value, and at least four times the
    /// time that its chunks take. After four times that, the session is closed if another is alive.
    pub silence: Duration,
    /// Time without progress after which the transfer fails; ten times as long while a session is
    /// open, so that TCP on the wireless half gives up first.
    pub stall: Duration,
    /// Time without an answer after which a request is repeated.
    pub request_timeout: Duration,
    /// Total number of requests.
    pub request_tries: u32,
    /// When a lost gateway is called again.
    pub recovery: Recovery,
    /// Number of times that a lost gateway is called again without progress when no session is
    /// left.
    pub redials: usize,
    /// Total time during which a busy node is asked again, at increasing intervals, counted from
    /// its first answer that it is busy.
    pub busy_patience: Duration,
    /// Time before a gateway that has reported congestion is called again; doubles with each
    /// further report, up to twelve times this value.
    pub congestion_backoff: Duration,
    /// How long to keep calling when all gateways are congested, counted from the time when no
    /// session was left.
    pub congestion_patience: Duration,
    /// Identity of the file. Only a transfer with an identity can resume after an interruption.
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
            striping: StripingPolicy::Adaptive,
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
    /// the session layer stay, because without them a lost gateway would lose bytes.
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
