//! Keys on the command line and in files: the own key, the keys of peers, and `--insecure`.

#[cfg(feature = "rdca")]
mod rdca;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anabranch_net::set::{GATEWAY_PORT, KnownGateway, greeting_number};
use anabranch_secure::{
    Acquaintance, BadKey, Doorkeeper, FileDigest, KeyText, NodeKeys, PublicKey, SecretKey, SenderKeys,
    SharedKey, Signature, VerifyingKey, WhoMay,
};

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::log::Entry;
use crate::{envelope, greetings};

#[cfg(feature = "rdca")]
pub use rdca::{OfSense, OfSink};

/// A gateway with its optional public key, as text or as a file: `HOST[:PORT][=KEY]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GatewayName {
    endpoint: Endpoint,
    key: Option<String>,
}

impl FromStr for GatewayName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (endpoint, key) = text.split_once('=').map_or((text, None), |(host, key)| (host, Some(key)));
        Ok(Self { endpoint: endpoint.parse()?, key: key.map(str::to_owned) })
    }
}

impl GatewayName {
    /// The first address and the key of each gateway; their paths share a radio channel or not.
    ///
    /// # Errors
    /// A name does not resolve, or a key cannot be read.
    pub fn resolve_all(names: &[Self], shared_channel: bool) -> Result<Vec<KnownGateway>, Error> {
        let known = |name: &Self| {
            let key = name.key.as_deref().map(public).transpose()?;
            Ok(KnownGateway { key, shared_channel, ..name.endpoint.resolve(GATEWAY_PORT)?.into() })
        };
        names.iter().map(known).collect()
    }

    /// The gateway's name without the key.
    pub(crate) fn text(&self) -> &str {
        self.endpoint.text()
    }
}

/// Options of a node about its own key and its senders.
#[derive(Debug, clap::Args)]
pub struct OfNode {
    /// File with the node's secret key, made by `anabranch key new`
    #[arg(long, value_name = "FILE", requires = "senders")]
    key: Option<PathBuf>,
    /// Take files only from senders with these public keys, each given as text or as a file
    #[arg(long, value_name = "KEY|FILE,...", value_delimiter = ',', requires = "key")]
    senders: Vec<String>,
    /// Also take files from senders with one of these pre-shared keys.
    ///
    /// Each key is in a file made by `anabranch key new --kind psk`, and counts as one sender.
    #[arg(long, value_name = "FILE,...", value_delimiter = ',')]
    psk: Vec<PathBuf>,
    /// Reject these keys of senders and signers even if other options name them.
    ///
    /// Each is a public, secret or pre-shared key, given as text or as a file, which may be empty.
    #[arg(long, value_name = "KEY|FILE,...", value_delimiter = ',', conflicts_with = "insecure")]
    revoked: Vec<String>,
    /// Folder for state that must survive a restart [default: $STATE_DIRECTORY,
    /// $XDG_STATE_HOME/anabranch or ~/.local/state/anabranch].
    ///
    /// It holds the numbers of greetings, so that recorded ones are refused, and the highest
    /// sequence numbers of manifests.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Take files from any sender, without encryption; only for networks in which every host is
    /// trusted
    #[arg(long, conflicts_with_all = ["key", "senders", "psk"])]
    insecure: bool,
    /// Take only files signed with one of these Ed25519 keys, each given as text or as a file
    #[arg(long, value_name = "KEY|FILE,...", value_delimiter = ',')]
    signers: Vec<String>,
}

impl OfNode {
    /// The senders whose files the node takes; `None` means any sender.
    pub(crate) fn who(&self) -> Result<Option<WhoMay>, Error> {
        if self.insecure {
            return Ok(None);
        }
        if self.key.is_none() && self.psk.is_empty() {
            return Err(who_may("--key FILE --senders KEY,..., or --psk FILE"));
        }
        let revoked = revoked(&self.revoked)?;
        let senders = publics(&self.senders)?.into_iter();
        let senders = senders.filter(|key| !revoked.contains(&KeyText::Public(*key).to_line())).collect();
        let mut shared = named(&self.psk)?;
        shared.retain(|(_, key)| !revoked.contains(&KeyText::Shared(key.clone()).to_line()));
        Ok(Some(WhoMay { own: self.key.as_deref().map(secret).transpose()?, senders, shared }))
    }

    /// The signers of which the node requires a signature; empty if it requires none.
    pub(crate) fn signers(&self) -> Result<Vec<VerifyingKey>, Error> {
        let keys = self.trusted()?;
        if keys.is_empty() && !self.signers.is_empty() {
            // Without any signer the node would accept unsigned files.
            return Err(Error::input("--revoked has all keys of --signers").with_hint("name another signer"));
        }
        Ok(keys)
    }

    /// The keys of `--signers` that are not revoked. Unlike [`OfNode::signers`], an empty result is
    /// allowed: a running node that requires signatures keeps requiring them.
    pub(crate) fn trusted(&self) -> Result<Vec<VerifyingKey>, Error> {
        let revoked = revoked(&self.revoked)?;
        let mut keys = verifying(&self.signers)?;
        keys.retain(|key| !revoked.contains(&KeyText::Verifying(*key).to_line()));
        Ok(keys)
    }

    /// The folder for state that must survive a restart.
    pub(crate) fn state(&self) -> Option<PathBuf> {
        greetings::state_folder(self.state.as_deref())
    }

    /// Restores the replay protection: greetings from before the start are refused.
    pub(crate) fn remember(&self, keys: &NodeKeys, port: u16) {
        let Some(own) = keys.public() else { return };
        if let Some((floors, ledger)) = greetings::stored(self.state.as_deref(), "node", own, port) {
            keys.remember(floors, ledger);
        }
    }
}

/// Public keys of signers, each as text or as a file.
pub(crate) fn verifying(texts: &[String]) -> Result<Vec<VerifyingKey>, Error> {
    let keys = texts.iter().map(|text| {
        let keys = all(text, in_file)?.into_iter().map(|key| match key {
            KeyText::Verifying(key) => Ok(key),
            other => Err(wrong(text, "ed25519", other.kind())),
        });
        keys.collect::<Result<Vec<_>, _>>()
    });
    Ok(keys.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Options of a gateway about its own key and its senders.
#[derive(Debug, clap::Args)]
pub struct OfGateway {
    /// File with the gateway's secret key, made by `anabranch key new`
    #[arg(long, value_name = "FILE", requires = "senders")]
    key: Option<PathBuf>,
    /// Serve only senders with these public keys, each given as text or as a file
    #[arg(long, value_name = "KEY|FILE,...", value_delimiter = ',', requires = "key")]
    senders: Vec<String>,
    /// Reject these keys of senders even if --senders names them.
    ///
    /// Each is a public or secret key, given as text or as a file, which may be empty.
    #[arg(long, value_name = "KEY|FILE,...", value_delimiter = ',', conflicts_with = "insecure")]
    revoked: Vec<String>,
    /// Folder for state that must survive a restart [default: $STATE_DIRECTORY,
    /// $XDG_STATE_HOME/anabranch or ~/.local/state/anabranch].
    ///
    /// It holds the numbers of greetings, so that recorded ones are refused.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Serve any sender; only for networks in which every host is trusted
    #[arg(long, conflicts_with_all = ["key", "senders"])]
    insecure: bool,
}

impl OfGateway {
    /// The keys with which the gateway checks senders; `None` means any sender.
    pub(crate) fn door(&self) -> Result<Option<Arc<Doorkeeper>>, Error> {
        match &self.key {
            _ if self.insecure => Ok(None),
            None => Err(who_may("--key FILE --senders KEY,...")),
            Some(key) => Ok(Some(Doorkeeper::new(secret(key)?, self.served()?))),
        }
    }

    /// The keys of `--senders` that are not revoked.
    pub(crate) fn served(&self) -> Result<Vec<PublicKey>, Error> {
        let revoked = revoked(&self.revoked)?;
        let mut senders = publics(&self.senders)?;
        senders.retain(|key| !revoked.contains(&KeyText::Public(*key).to_line()));
        Ok(senders)
    }

    /// Restores the replay protection: greetings from before the start are refused.
    pub(crate) fn remember(&self, door: &Doorkeeper, port: u16) {
        if let Some((floors, ledger)) =
            greetings::stored(self.state.as_deref(), "gateway", door.public(), port)
        {
            door.remember(floors, ledger);
        }
    }
}

/// Options of a sender about its own key and its node.
#[derive(Debug, clap::Args)]
pub struct OfSender {
    /// File with the sender's secret key, made by `anabranch key new`
    #[arg(long, value_name = "FILE", requires = "to")]
    key: Option<PathBuf>,
    /// Public key of the node, given as text or as a file
    #[arg(long, value_name = "KEY|FILE", requires = "key", conflicts_with = "psk")]
    node_key: Option<String>,
    /// File with the key that sender and node share.
    ///
    /// The key of --key then only identifies the sender to the gateways.
    #[arg(long, value_name = "FILE", requires = "key")]
    psk: Option<PathBuf>,
    /// Signature of the file, made by `anabranch key sign`, for nodes with --signers
    #[arg(long, value_name = "FILE", requires = "to")]
    signature: Option<PathBuf>,
    /// Manifest of the file, made by `anabranch manifest create`, for nodes with --vendor and
    /// --class
    #[arg(long, value_name = "FILE", requires = "to")]
    manifest: Option<PathBuf>,
    /// Send without encryption; only for networks in which every host is trusted
    #[arg(long, requires = "to", conflicts_with_all = ["key", "node_key", "psk"])]
    insecure: bool,
}

impl OfSender {
    /// The file's signature, if `--signature` was given.
    pub(crate) fn signature(&self) -> Result<Option<[u8; 64]>, Error> {
        self.signature.as_deref().map(|path| read_signature(path).map(|signature| signature.0)).transpose()
    }

    /// The file's manifest, if `--manifest` was given.
    ///
    /// # Errors
    /// It cannot be read, or describes another file.
    pub(crate) fn manifest(&self, file: &FileDigest) -> Result<Option<Vec<u8>>, Error> {
        self.manifest.as_deref().map(|path| envelope::for_file(path, file)).transpose()
    }

    /// The keys of sender and node; `None` if nothing is encrypted.
    pub(crate) fn keys(&self) -> Result<Option<Arc<SenderKeys>>, Error> {
        if self.insecure {
            return Ok(None);
        }
        let node = match (&self.node_key, &self.psk) {
            (Some(text), _) => Acquaintance::Known(public(text)?),
            (None, Some(path)) => Acquaintance::Shared(shared(path)?),
            (None, None) => return Err(who_may("--key FILE --node-key KEY, or --key FILE --psk FILE")),
        };
        let own = self.key.as_deref().ok_or_else(|| who_may("--key FILE --node-key KEY"))?;
        Ok(Some(SenderKeys::new(secret(own)?, node, greeting_number)))
    }
}

fn who_may(flags: &str) -> Error {
    Error::input(format!("no keys given: expected {flags}")).with_hint(
        "`anabranch key new NAME` or `anabranch-key new NAME` makes keys; in a network where every host is trusted, --insecure runs without keys",
    )
}

fn wrong(place: &str, wanted: &'static str, is: &'static str) -> Error {
    let hint = match (wanted, is) {
        ("x25519", "x25519-secret") | ("ed25519", "ed25519-secret") => {
            "name the NAME.pub of the same key pair; NAME.key stays with its owner"
        }
        ("x25519-secret", "x25519") => "name the NAME.key of the same key pair; NAME.pub is for its peers",
        ("psk", _) => "`anabranch key new NAME --kind psk` makes a pre-shared key, which both ends need",
        ("ed25519", _) => {
            "`anabranch key new NAME --kind signing` makes NAME.key for the signer and NAME.pub for nodes"
        }
        _ => "`anabranch key new NAME` makes the secret NAME.key and the public NAME.pub",
    };
    Error::input(format!("{place}: {}", BadKey::Other { wanted, is })).with_hint(hint)
}

/// Reads the keys of a file, at least one.
pub(crate) fn in_file(path: &Path) -> Result<Vec<KeyText>, Error> {
    let keys = any_in_file(path)?;
    if keys.is_empty() {
        return Err(Error::input(format!("{}: no key in this file", path.display()))
            .with_hint("put each key on its own line; lines that begin with # are comments"));
    }
    Ok(keys)
}

/// Reads the keys of a file, which may be empty.
fn any_in_file(path: &Path) -> Result<Vec<KeyText>, Error> {
    let text =
        fs::read_to_string(path).map_err(|e| Error::unreadable(path, &e).with_hint("name a file of keys"))?;
    KeyText::all(&text).map_err(|(line, error)| {
        Error::input(format!("{}:{line}: {error}", path.display()))
            .with_hint("`anabranch key new NAME` makes keys")
    })
}

/// The key that `text` is, or all keys that `read` finds in the file of that name.
fn all(text: &str, read: fn(&Path) -> Result<Vec<KeyText>, Error>) -> Result<Vec<KeyText>, Error> {
    match text.parse() {
        Ok(key) => Ok(vec![key]),
        Err(BadKey::Kind) => read(Path::new(text)),
        Err(error) => Err(Error::input(format!("{error}"))),
    }
}

/// The revoked keys, each as the line that identifies a peer. For a key pair that is the public
/// key, whichever half was given.
fn revoked(texts: &[String]) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    for text in texts {
        let keys = all(text, any_in_file)?;
        lines.extend(keys.iter().map(|key| key.public().as_ref().unwrap_or(key).to_line()));
    }
    Ok(lines)
}

/// All pre-shared keys of these files with their names. A name is the file's path and the key's
/// position in the file, counted from 1.
fn named(paths: &[PathBuf]) -> Result<Vec<(Arc<str>, SharedKey)>, Error> {
    let mut named: Vec<(Arc<str>, SharedKey)> = Vec::new();
    for path in paths {
        warn_if_open(path);
        for (place, key) in (1..).zip(in_file(path)?) {
            let KeyText::Shared(key) = key else {
                return Err(wrong(&path.display().to_string(), "psk", key.kind()));
            };
            named.push((format!("{}:{place}", path.display()).into(), key));
        }
    }
    Ok(named)
}

fn publics(texts: &[String]) -> Result<Vec<PublicKey>, Error> {
    let keys = texts.iter().map(|text| {
        let keys = all(text, in_file)?.into_iter().map(|key| match key {
            KeyText::Public(key) => Ok(key),
            other => Err(wrong(text, "x25519", other.kind())),
        });
        keys.collect::<Result<Vec<_>, Error>>()
    });
    Ok(keys.collect::<Result<Vec<_>, _>>()?.concat())
}

fn public(text: &str) -> Result<PublicKey, Error> {
    let keys = publics(&[text.to_owned()])?;
    match keys[..] {
        [key] => Ok(key),
        _ => Err(Error::input(format!("{text}: expected one key, found {}", keys.len()))),
    }
}

/// The only key of a file that must hold one secret key of the kind that `pick` selects.
fn one<T>(path: &Path, kind: &'static str, pick: impl Fn(&KeyText) -> Option<T>) -> Result<T, Error> {
    let picked = match &in_file(path)?[..] {
        [key] => pick(key).ok_or_else(|| wrong(&path.display().to_string(), kind, key.kind())),
        keys => Err(Error::input(format!("{}: expected one key, found {}", path.display(), keys.len()))),
    };
    picked.inspect(|_| warn_if_open(path))
}

pub(crate) fn secret(path: &Path) -> Result<SecretKey, Error> {
    one(path, "x25519-secret", |key| if let KeyText::Secret(key) = key { Some(key.clone()) } else { None })
}

fn shared(path: &Path) -> Result<SharedKey, Error> {
    one(path, "psk", |key| if let KeyText::Shared(key) = key { Some(key.clone()) } else { None })
}

/// Warns if other users can read a secret file.
pub(crate) fn warn_if_open(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    if path.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0) {
        let message =
            format!("other users can read the secret file {0}; run `chmod 600 {0}`", path.display());
        Entry::warning("open key", message).with("file", path.display().to_string()).write();
    }
}

/// Reads a signature that `key sign` has written.
pub(crate) fn read_signature(path: &Path) -> Result<Signature, Error> {
    const HINT: &str =
        "`anabranch key sign` makes signatures; `anabranch manifest create` makes files for --manifest";
    let mut octets = Vec::new();
    // A signature has 128 hexadecimal digits. The limit keeps a wrong, maybe very long file out of
    // memory.
    let read = File::open(path).and_then(|file| file.take(1 << 10).read_to_end(&mut octets));
    read.map_err(|e| Error::unreadable(path, &e).with_hint(HINT))?;
    let text = String::from_utf8_lossy(&octets);
    text.trim().parse().map_err(|error| Error::input(format!("{}: {error}", path.display())).with_hint(HINT))
}

#[cfg(test)]
mod tests;
