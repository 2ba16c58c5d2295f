//! Keys of senders of records and of their sink.

use std::path::PathBuf;

use anabranch_secure::KeyText;
use anabranch_secure::datagram::{Accepts, AnyProof, Forward, Known};

use super::{named, public, publics, revoked, secret, shared, who_may};
use crate::error::Error;

/// Options of a sink about its own key and its senders.
#[derive(Debug, clap::Args)]
pub struct OfSink {
    /// File with the sink's secret key, made by `anabranch key new`
    #[arg(long, value_name = "FILE", requires = "senders")]
    key: Option<PathBuf>,
    /// Accept senders with these public keys, each given as text or as a file
    #[arg(long, value_name = "KEY|FILE,...", value_delimiter = ',', requires = "key")]
    senders: Vec<String>,
    /// Also accept senders with one of these pre-shared keys, each in a file made by `anabranch key
    /// new --kind psk`
    #[arg(long, value_name = "FILE,...", value_delimiter = ',')]
    psk: Vec<PathBuf>,
    /// Reject these keys of senders even if other options name them.
    ///
    /// Each is a public, secret or pre-shared key, given as text or as a file, which may be empty.
    #[arg(long, value_name = "KEY|FILE,...", value_delimiter = ',', conflicts_with = "insecure")]
    revoked: Vec<String>,
    /// Accept any sender, without encryption; only for networks in which every host is trusted
    #[arg(long, conflicts_with_all = ["key", "senders", "psk"])]
    insecure: bool,
}

impl OfSink {
    /// The accepted senders.
    pub(crate) fn accepts(&self) -> Result<Accepts, Error> {
        if self.insecure {
            return Ok(Accepts { insecure: true, ..Accepts::default() });
        }
        if self.key.is_none() && self.psk.is_empty() {
            return Err(who_may("--key FILE --senders KEY,..., or --psk FILE"));
        }
        let revoked = revoked(&self.revoked)?;
        let is_valid = |key: KeyText| !revoked.contains(&key.to_line());
        let mut known = publics(&self.senders)?;
        known.retain(|key| is_valid(KeyText::Public(*key)));
        let mut shared: Vec<_> = named(&self.psk)?.into_iter().map(|(_, key)| key).collect();
        shared.retain(|key| is_valid(KeyText::Shared(key.clone())));
        Ok(Accepts { own: self.key.as_deref().map(secret).transpose()?, known, shared, insecure: false })
    }

    /// Whether any sender is accepted.
    pub(crate) const fn is_insecure(&self) -> bool {
        self.insecure
    }
}

/// Options of a sender about its own key and its sink.
#[derive(Debug, clap::Args)]
pub struct OfSense {
    /// File with the sender's secret key, made by `anabranch key new`
    #[arg(long, value_name = "FILE", requires = "sink_key")]
    key: Option<PathBuf>,
    /// Public key of the sink, given as text or as a file
    #[arg(long, value_name = "KEY|FILE", requires = "key", conflicts_with = "psk")]
    sink_key: Option<String>,
    /// File with the key that sender and sink share, instead of --key and --sink-key
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    psk: Option<PathBuf>,
    /// Send without encryption; only for networks in which every host is trusted
    #[arg(long, conflicts_with_all = ["key", "sink_key", "psk"])]
    insecure: bool,
}

impl OfSense {
    /// How the sender proves who it is.
    pub(crate) fn proof(&self) -> Result<AnyProof, Error> {
        match (&self.key, &self.sink_key, &self.psk) {
            _ if self.insecure => Ok(AnyProof::Clear),
            (Some(own), Some(sink), _) => {
                Ok(AnyProof::Known(Known { own: secret(own)?, sink: public(sink)? }))
            }
            (_, _, Some(psk)) => Ok(AnyProof::Forward(Forward(shared(psk)?))),
            _ => Err(who_may("--key FILE --sink-key KEY, or --psk FILE")),
        }
    }
}
