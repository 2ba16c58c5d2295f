//! `anabranch push --to`: deliver a file over this host's network to a running node.

mod digests;
mod once;
pub mod progress;
pub mod report;
mod state;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time;

use anabranch_core::set::StripingPolicy;
use anabranch_core::set::tcp_manager::{Ending, State};
use anabranch_core::set::{
    Failure, FileIdentity, Leg, MAX_SESSIONS, Outcome, RefuseReason, SetAckStatus, TransferId,
};
use anabranch_core::time::Duration;
use anabranch_net::set::{NODE_PORT, Push, PushConfig, PushFile};
use anabranch_secure::FileDigest;
use anabranch_units::{Rate, Span};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tokio::time::Instant;

use self::digests::Digests;
use self::report::Report;
use self::state::Memory;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::files::is_read_once;
use crate::keys::{GatewayName, OfSender};
use crate::output::{self, hex};
use crate::say;
use crate::service::{self, Signals};

/// Options of `push`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// File to deliver; `-` is standard input
    pub file: PathBuf,
    /// Deliver to the node at this address, over this host's network; the default port is 47200
    #[arg(long, value_name = "HOST[:PORT]")]
    pub to: Option<Endpoint>,
    /// Use these gateways instead of those that the node announces
    #[arg(long, value_name = "HOST[:PORT][=KEY],...", value_delimiter = ',', requires = "to")]
    pub via: Vec<GatewayName>,
    /// Say that the paths from the gateways of --via to the node share one radio channel whose MAC
    /// gives up early: see --shared-channel of `anabranch node`
    #[arg(long, requires = "via")]
    pub shared_channel: bool,
    /// The sender's keys.
    #[command(flatten)]
    pub keys: OfSender,
    /// Limit on the total rate, as in "40 kbit/s" [default: no limit]
    #[arg(long, value_name = "RATE", requires = "to")]
    pub rate: Option<Rate>,
    /// Limit on the rate to each gateway, as in "40 kbit/s" [default: no limit]
    #[arg(long, value_name = "RATE", requires = "to")]
    pub rate_gateway: Option<Rate>,
    /// Policy that assigns the file to gateways [default: adaptive].
    ///
    /// With `turns` the packets of different gateways do not meet. This helps in a mesh in which
    /// all paths share the channel around the node. `adaptive` takes turns where the node says that
    /// its gateways share a channel, unless measurements refute that, and is `predictive`
    /// elsewhere.
    #[arg(long, value_name = "POLICY", requires = "to", value_parser = striping())]
    pub striping: Option<StripingPolicy>,
    /// Wait up to this time for a busy node or for congested gateways [default: fail at once]
    #[arg(long, value_name = "DURATION", requires = "to", value_parser = Span::positive)]
    pub wait: Option<Duration>,
    /// After losing the node or all gateways, retry until nothing was delivered for this time
    /// [default: do not retry]
    #[arg(long, value_name = "DURATION", requires = "to", value_parser = Span::positive)]
    pub retry_for: Option<Duration>,
    /// Deliver the file from its first byte instead of resuming.
    ///
    /// This is needed when the file has changed since an interrupted push, or when the node holds
    /// an unfinished other file, which is then discarded.
    #[arg(long, requires = "to")]
    pub restart: bool,
    /// Folder for the state of unfinished pushes and for the digests of files [default:
    /// $XDG_STATE_HOME/anabranch or ~/.local/state/anabranch]
    #[arg(long, value_name = "DIR", requires = "to")]
    pub state: Option<PathBuf>,
    /// Store no state: an interrupted push cannot resume
    #[arg(long, requires = "to", conflicts_with = "state")]
    pub no_resume: bool,
    /// Use at most this number of gateways, or `best` [default: no limit; SET chooses].
    ///
    /// `best`, for simulated networks only, uses the number that the latency model predicts to be
    /// fastest.
    #[arg(long, value_name = "N|best")]
    pub gateways: Option<Wanted>,
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Do not show progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// The options that only a push to a node has. A simulated push refuses them, since with an option
/// that conflicts with `--to`, clap no longer asks for the `--to` that they require.
pub const DEPLOYED: [&str; 17] = [
    "to",
    "via",
    "shared_channel",
    "rate",
    "rate_gateway",
    "striping",
    "wait",
    "retry_for",
    "restart",
    "state",
    "no_resume",
    "key",
    "node_key",
    "psk",
    "signature",
    "manifest",
    "insecure",
];

/// The striping policies by the words of scenarios.
const STRIPING: [(&str, StripingPolicy); 4] = [
    ("adaptive", StripingPolicy::Adaptive),
    ("predictive", StripingPolicy::Predictive),
    ("turns", StripingPolicy::Turns),
    ("window", StripingPolicy::Window),
];

/// Parses a striping policy.
fn striping() -> impl TypedValueParser<Value = StripingPolicy> {
    PossibleValuesParser::new(STRIPING.map(|(word, _)| word)).map(|text| {
        let named = STRIPING.into_iter().find(|(word, _)| *word == text);
        named.expect("one of the words").1
    })
}

/// Number of gateways that `--gateways` asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// At most this number.
    AtMost(u32),
    /// The number that the latency model finds best.
    Best,
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("best", _) => Ok(Self::Best),
            (_, Ok(0)) => Err("SET needs at least one gateway".to_owned()),
            (_, Ok(n)) => Ok(Self::AtMost(n)),
            (_, Err(_)) => Err("expected a number of gateways or `best`".to_owned()),
        }
    }
}

/// Time to wait for an answer of the node, and number of requests: together about half a minute.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(8);
const REQUEST_TRIES: u32 = 4;

/// Delivers a file to the node of `--to`.
///
/// # Errors
/// Why the file was not delivered.
pub fn main(arguments: &Arguments) -> Result<(), Error> {
    let Some(node) = &arguments.to else {
        return Err(Error::input("no node given").with_hint("give its address with --to HOST[:PORT]"));
    };
    if arguments.via.len() > MAX_SESSIONS {
        let message =
            format!("--via: {} gateways; a transfer uses at most {MAX_SESSIONS}", arguments.via.len());
        return Err(Error::input(message).with_hint("name fewer gateways"));
    }
    let mut digests = Digests::open(state::folder(arguments).as_deref());
    let (file, digest) = open(arguments, &mut digests)?;
    let length = digest.length;
    let address = node.resolve(NODE_PORT)?;
    let mut config = PushConfig::new(address, transfer()?);
    config.via = GatewayName::resolve_all(&arguments.via, arguments.shared_channel)?;
    config.keys = arguments.keys.keys()?;
    config.set.request_timeout = REQUEST_TIMEOUT;
    config.set.request_tries = REQUEST_TRIES;
    if let Some(striping) = arguments.striping {
        config.set.striping = striping;
    }
    config.set.gateways = match arguments.gateways {
        None => usize::MAX,
        Some(Wanted::AtMost(n)) => n as usize,
        Some(Wanted::Best) => {
            return Err(Error::input(
                "--gateways best: the latency model exists for simulated networks only",
            )
            .with_hint("give a number, or omit --gateways: SET then chooses"));
        }
    };
    let signature = arguments.keys.signature()?;
    config.manifest = arguments.keys.manifest(&digest)?.map(Into::into);
    let sha256 = hex(&digest.sha256);
    let said = (sha256.as_str(), length);
    let (state, transfer) = Memory::open(arguments, address, said, config.transfer)?;
    config.transfer = transfer;
    let discard = arguments.restart;
    config.set.file = Some(FileIdentity { digest: digest.sha256, signature, discard });
    config.set.busy_patience = arguments.wait.unwrap_or(Duration::ZERO);
    config.set.congestion_patience = config.set.busy_patience;
    config.rate = arguments.rate.map(|Rate(rate)| rate);
    config.rate_gateway = arguments.rate_gateway.map(|Rate(rate)| rate);
    // Gateways of `--via` are shown as the user named them; those of the node's table are shown by
    // the node's identifiers.
    let mut names = Vec::new();
    if !arguments.via.is_empty() {
        names.push(String::new());
        names.extend(arguments.via.iter().map(|gateway| gateway.text().to_owned()));
    }
    let bars = progress::Bars::new(arguments.quiet, names.clone(), length);
    service::runtime()?.block_on(async {
        let mut signals = Signals::catch()?;
        let mut retries = Retries::new(arguments.retry_for);
        let (push, stopped) = loop {
            let file = file.try_clone().map_err(|error| Error::unreadable(&arguments.file, &error))?;
            let mut push = Push::new(config.clone(), file);
            let mut told = 0;
            let stopped = loop {
                let ended = tokio::select! {
                    outcome = push.step() => outcome.is_some().then_some(false),
                    _ = signals.first() => Some(true),
                };
                for decision in push.decisions().iter().skip(told) {
                    let at = decision.at.saturating_since(push.moments().started);
                    bars.say(&format!("striping, after {:.1} s: {decision}", at.as_secs_f64()));
                }
                told = push.decisions().len();
                if let Some(stopped) = ended {
                    break stopped;
                }
                bars.update(push.sessions(), push.delivered());
            };
            let again = match push.outcome() {
                Some(Outcome::Failed(failure)) if !stopped => {
                    retries.after(failure, push.delivered()).map(|pause| (failure, pause))
                }
                _ => None,
            };
            if again.is_none() {
                // Between two tries the node keeps its place for the transfer. After the last one
                // the place is released.
                push.cancel();
            }
            push.close().await;
            let Some((failure, pause)) = again else { break (push, stopped) };
            if !arguments.quiet {
                say!("{failure}; trying again in {} s", pause.as_secs());
            }
            // `--restart` has discarded the old part already; the retry must keep what was received
            // since.
            if let Some(file) = &mut config.set.file
                && push.establishment().is_some()
            {
                file.discard = false;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = signals.first() => {
                    push.cancel();
                    push.close().await;
                    break (push, true);
                }
            }
        };
        bars.finish();
        if stopped {
            let next = if state.remembers() { "; repeat the command to resume" } else { "" };
            let delivered = push.delivered().max(retries.delivered);
            say!("interrupted: {delivered} of {length} bytes were delivered{next}");
            return Err(Error::Interrupted);
        }
        match push.outcome() {
            Some(Outcome::Delivered) => state.forget(),
            // The file does not match its digest: a stored digest was stale.
            Some(Outcome::Failed(Failure::Refused(RefuseReason::Digest))) => digests.forget(&digest),
            // The transfer never started, so the node holds nothing of it.
            Some(Outcome::Failed(
                Failure::Refused(_) | Failure::Unfinished(_) | Failure::NodeUnreachable | Failure::NoGateway,
            )) if push.delivered().max(retries.delivered) == 0 => state.forget_if_fresh(),
            Some(Outcome::Failed(_)) => digests.forget(&digest),
            None => {}
        }
        let mut report = Report::of_deployed(&push, node.text().to_owned(), said, &names);
        // An earlier try may have delivered more than the last one.
        report.delivered_bytes = report.delivered_bytes.max(retries.delivered);
        let printed = if arguments.json { output::json(&report) } else { output::text(&report.to_string()) };
        // A reader that has gone does not turn a failure into a success.
        verdict(&push, length, report.delivered_bytes, &config).and(printed)
    })
}

/// Decides whether and when a failed push is retried.
#[derive(Debug)]
struct Retries {
    /// How long to retry after the last progress.
    span: time::Duration,
    since: Instant,
    pause: time::Duration,
    /// Number of bytes delivered so far.
    delivered: u64,
}

/// First and longest pause between two tries.
const FIRST_RETRY: time::Duration = time::Duration::from_secs(1);
const LONGEST_RETRY: time::Duration = time::Duration::from_secs(8);

impl Retries {
    fn new(span: Option<Duration>) -> Self {
        let span = time::Duration::from_nanos(span.unwrap_or(Duration::ZERO).as_nanos());
        Self { span, since: Instant::now(), pause: FIRST_RETRY, delivered: 0 }
    }

    /// The pause before the next try; `None` if the failure is permanent or the time is over.
    fn after(&mut self, failure: Failure, delivered: u64) -> Option<time::Duration> {
        if delivered > self.delivered {
            (self.delivered, self.since, self.pause) = (delivered, Instant::now(), FIRST_RETRY);
        }
        // Only failures that can pass by themselves: a refusal would be repeated.
        let passes = matches!(
            failure,
            Failure::NodeUnreachable | Failure::GatewaysLost | Failure::Congested | Failure::Stalled
        );
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_RETRY);
        (passes && self.since.elapsed() + pause <= self.span).then_some(pause)
    }
}

/// Opens the file and computes its digest. A regular file is not held in memory.
fn open(arguments: &Arguments, digests: &mut Digests) -> Result<(PushFile, FileDigest), Error> {
    let path = &arguments.file;
    if is_read_once(path) {
        return once::read(path);
    }
    let (file, digest) = digests.of(path, arguments.restart)?;
    Ok((PushFile::OnDisk(file, digest.length), digest))
}

/// Draws a random transfer identifier, so that the node can tell transfers apart.
fn transfer() -> Result<TransferId, Error> {
    let mut octets = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut octets));
    read.map_err(|e| Error::missing(format!("cannot draw a random number from /dev/urandom: {e}")))?;
    Ok(TransferId(u64::from_ne_bytes(octets)))
}

/// Limit on the gateways whose reasons an error names.
const MOST_REASONS: usize = 4;

/// Why each gateway was lost, in parentheses.
fn lost(push: &Push) -> String {
    let mut why: BTreeMap<SocketAddr, String> = BTreeMap::new();
    for session in push.sessions() {
        let error = push.errors().iter().find(|error| error.peer == session.address);
        let reason =
            error.map_or_else(|| report::state_name(session.state).to_owned(), |e| e.error.to_string());
        why.insert(session.address, reason);
    }
    let more = if why.len() > MOST_REASONS { "; ..." } else { "" };
    let why: Vec<_> = why.iter().take(MOST_REASONS).map(|(peer, why)| format!("{peer}: {why}")).collect();
    if why.is_empty() { String::new() } else { format!(" ({}{more})", why.join("; ")) }
}

fn verdict(push: &Push, octets: u64, delivered: u64, config: &PushConfig) -> Result<(), Error> {
    let Some(Outcome::Failed(failure)) = push.outcome() else { return Ok(()) };
    let refused = |with: SetAckStatus| {
        push.sessions().any(|session| session.state == State::Closed(Ending::Refused(with)))
    };
    let (forbidden, unreachable) = (refused(SetAckStatus::Forbidden), refused(SetAckStatus::Unreachable));
    // The node closed a session that was already open: it no longer knows the transfer.
    let is_forgotten = failure == Failure::GatewaysLost
        && push.sessions().any(|session| {
            session.establishment.is_some() && matches!(session.state, State::Closed(Ending::Stream(_)))
        });
    let was_open = push.sessions().any(|session| session.establishment.is_some());
    let said = match failure {
        Failure::GatewaysLost if is_forgotten => String::new(),
        Failure::GatewaysLost if unreachable => " (a gateway cannot reach the node)".to_owned(),
        Failure::GatewaysLost => lost(push),
        Failure::Stalled if !was_open => lost(push),
        Failure::NodeUnreachable => {
            let error = push.errors().iter().rfind(|error| error.leg == Some(Leg::Control));
            error.map(|error| format!(" ({}: {})", error.peer, error.error)).unwrap_or_default()
        }
        // The node's refusal contains the reason.
        _ => String::new(),
    };
    if let Some(error) = push.unread() {
        let message = format!("not delivered: cannot read the rest of the file: {error}");
        return Err(Error::job(message)
            .with_hint("the file has changed, or its disk fails; `--restart` pushes the current content"));
    }
    let got = format!("{delivered} of {octets} bytes were delivered");
    let forbidden_hint = format!(
        "a gateway does not allow this node: its operator must start it with `--allow {}`",
        config.node
    );
    let hint = match failure {
        Failure::NodeUnreachable if config.manifest.is_some() => {
            "is `anabranch node` running there, does its version support manifests, and is there a route to it?"
        }
        // A node does not answer unknown senders: an answer would tell a stranger that the node
        // exists.
        Failure::NodeUnreachable if config.keys.is_some() => {
            "is `anabranch node` running there, do its --senders (or --psk) have this sender's key, is --node-key its key, \
             and is there a route to it?"
        }
        Failure::NodeUnreachable => {
            "is `anabranch node --insecure` running there, and is there a route to it?"
        }
        Failure::NoGateway => "name some with --via, or start the node with --gateways",
        Failure::Refused(RefuseReason::Busy) => {
            "use `--wait 5min`; an abandoned transfer is removed after the node's --idle"
        }
        Failure::Refused(RefuseReason::Unwanted | RefuseReason::Failed) => {
            "the node's log has the reason; repeat the command to resume"
        }
        Failure::Refused(RefuseReason::TooLarge) => {
            "send a smaller file, or raise the node's --max-size; the node's log has both numbers"
        }
        Failure::Refused(RefuseReason::NoRoom) => {
            "free space on the node's disk (its log has the figures) and repeat the command to resume; `--restart` \
             discards an unfinished transfer of another file"
        }
        Failure::Refused(RefuseReason::Digest) => {
            "the node discarded it; if the file has changed since, `--restart` pushes the current content"
        }
        Failure::Refused(RefuseReason::Signature) if config.manifest.is_some() => {
            "create a manifest with `anabranch manifest create` and a key of the node's --signers"
        }
        Failure::Refused(RefuseReason::Signature) => {
            "sign the file with `anabranch key sign` and a key of the node's --signers, and give --signature; a node with --vendor needs `anabranch manifest create` and --manifest"
        }
        Failure::Refused(RefuseReason::Rollback) => {
            "to install an older file, create a manifest with a higher --sequence; at a node with --mcuboot, remove the newer image first"
        }
        Failure::Refused(RefuseReason::WrongDevice) => {
            "`anabranch manifest show` prints its device; create one for this node with --vendor, --class and --component"
        }
        Failure::Refused(RefuseReason::Expired) => {
            "create a new manifest; if this one should still be valid, check the node's clock"
        }
        Failure::Refused(RefuseReason::Image) => {
            "sign the file with `imgtool sign`, without --pad and --encrypt; the node's log has the reason"
        }
        Failure::Refused(RefuseReason::LongManifest) => {
            "manifest too long, or the node has no device identity: omit --manifest or shorten it"
        }
        Failure::Unfinished(_) => "finish that push, or discard its bytes with `--restart`",
        Failure::Refused(_) => "use the same version of anabranch on both sides",
        Failure::GatewaysLost if forbidden => &forbidden_hint,
        Failure::GatewaysLost if is_forgotten => {
            "did the node restart, or did its program abandon the file? Repeat the command to resume; `--retry-for 10min` \
             resumes automatically"
        }
        Failure::GatewaysLost if unreachable => {
            "is `anabranch node` running, and is there a route from the gateway to it? Repeat the command to resume; \
             `--retry-for 10min` resumes automatically"
        }
        Failure::GatewaysLost => {
            "is `anabranch gateway` running there? Check the node's log and repeat the command to resume"
        }
        Failure::Congested => "use `--wait 5min` to wait for a gateway, or repeat the command to resume",
        Failure::Stalled if !was_open => {
            "is `anabranch gateway` running there, and does the node's log show connections from it?"
        }
        Failure::Stalled => "check the node's disk and its --pipe command",
        _ => "try again",
    };
    let failure =
        if is_forgotten { "the node has lost the transfer".to_owned() } else { failure.to_string() };
    Err(Error::job(format!("not delivered: {failure}{said}; {got}")).with_hint(hint))
}
