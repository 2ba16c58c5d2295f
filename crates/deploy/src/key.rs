//! `anabranch key`: make keys, print public keys, sign and verify files.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anabranch_secure::{KeyText, SecretKey, SharedKey, SigningKey, VerifyingKey};

use crate::error::Error;
use crate::files::{check_apart, digest, write_whole};
use crate::keys::{in_file, read_signature, warn_if_open};
use crate::output;

/// Commands for keys of senders, gateways and nodes.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make key pairs: NAME.key is secret, NAME.pub is for the peers
    New(New),
    /// Print the public key of a secret key
    Public(Public),
    /// Sign a file for nodes with --signers; the signature is written to FILE.sig
    Sign(Sign),
    /// Check the signature of a file
    Verify(Verify),
}

/// What a key is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Kind {
    /// Identifies a sender, a gateway or a node (X25519).
    Identity,
    /// Signs files and manifests (Ed25519).
    Signing,
    /// Secret shared by a sender and a node.
    Psk,
}

/// Options of `key new`.
#[derive(Debug, clap::Args)]
pub struct New {
    /// Paths of the new keys, without an extension
    #[arg(required = true, value_name = "NAME")]
    names: Vec<PathBuf>,
    /// Kind of the keys
    #[arg(long, value_enum, default_value_t = Kind::Identity)]
    kind: Kind,
}

/// Options of `key public`.
#[derive(Debug, clap::Args)]
pub struct Public {
    /// File with the secret key
    file: PathBuf,
}

/// Options of `key sign`.
#[derive(Debug, clap::Args)]
pub struct Sign {
    /// File to sign
    file: PathBuf,
    /// File with the secret signing key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Write the signature to this file [default: FILE.sig]
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
}

/// Options of `key verify`.
#[derive(Debug, clap::Args)]
pub struct Verify {
    /// Signed file
    file: PathBuf,
    /// File with the signer's public key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// File with the signature [default: FILE.sig]
    #[arg(long, value_name = "PATH")]
    signature: Option<PathBuf>,
}

/// Runs a command for keys.
///
/// # Errors
/// A file cannot be read or written, or a signature is invalid.
pub fn main(command: &Command) -> Result<(), Error> {
    match command {
        Command::New(new) => new.names.iter().try_for_each(|name| make(name, new.kind)),
        Command::Public(public) => {
            for key in in_file(&public.file)? {
                let Some(public) = key.public() else {
                    return Err(Error::input(format!(
                        "{}: no secret key in this file",
                        public.file.display()
                    ))
                    .with_hint("name a NAME.key of `anabranch key new`"));
                };
                output::text(&format!("{}\n", public.to_line()))?;
            }
            Ok(())
        }
        Command::Sign(sign) => sign.run(),
        Command::Verify(verify) => verify.run(),
    }
}

fn make(name: &Path, kind: Kind) -> Result<(), Error> {
    let last = name.as_os_str().as_encoded_bytes().rsplit(|octet| *octet == b'/').next();
    if last.is_none_or(|last| matches!(last, b"" | b"." | b"..")) {
        return Err(Error::input(format!("{}: this is a folder; expected a name", name.display()))
            .with_hint("`anabranch key new NAME` makes NAME.key and NAME.pub"));
    }
    let no_entropy = |e| Error::missing(format!("{e}"));
    let key = match kind {
        Kind::Identity => KeyText::Secret(SecretKey::generate().map_err(no_entropy)?),
        Kind::Signing => KeyText::Signing(SigningKey::generate().map_err(no_entropy)?),
        Kind::Psk => KeyText::Shared(SharedKey::generate().map_err(no_entropy)?),
    };
    let with = |extension: &str| {
        let mut path = name.as_os_str().to_owned();
        path.push(extension);
        PathBuf::from(path)
    };
    write_new(&with(".key"), 0o600, &format!("# keep this to yourself\n{}\n", key.to_line()))?;
    if let Some(public) = key.public() {
        write_new(&with(".pub"), 0o644, &format!("{}\n", public.to_line()))?;
        output::text(&format!("{} {}\n", name.display(), public.to_line()))?;
    }
    Ok(())
}

/// Writes a new file with this mode; never replaces an existing key.
fn write_new(path: &Path, mode: u32, text: &str) -> Result<(), Error> {
    let mut options = File::options();
    let file = options.write(true).create_new(true).mode(mode).open(path);
    let mut file = file.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::input(format!("{} already exists", path.display()))
            .with_hint("keys are never overwritten: choose another name, or remove the file"),
        _ => Error::unwritable(path, &error),
    })?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| {
        // This process created the file, and an incomplete key is useless.
        let _ = fs::remove_file(path);
        Error::unwritable(path, &error)
    })
}

impl Sign {
    fn run(&self) -> Result<(), Error> {
        let path = self.out.clone().unwrap_or_else(|| beside(&self.file));
        let inputs = [("the file to sign,", self.file.as_path()), ("the key", self.key.as_path())];
        check_apart(inputs, [("--out", path.as_path())])?;
        let [KeyText::Signing(key)] = &in_file(&self.key)?[..] else {
            return Err(Error::input(format!("{}: not a signing key", self.key.display()))
                .with_hint("`anabranch key new NAME --kind signing` makes a signing key"));
        };
        warn_if_open(&self.key);
        let signature = key.sign(&digest(&self.file)?.1);
        write_whole(&path, format!("{signature}\n").as_bytes())?;
        output::text(&format!("{}\n", path.display()))
    }
}

impl Verify {
    fn run(&self) -> Result<(), Error> {
        let keys = in_file(&self.key)?;
        let path = self.signature.clone().unwrap_or_else(|| beside(&self.file));
        let (file, signature) = (digest(&self.file)?.1, read_signature(&path)?);
        let signers: Vec<VerifyingKey> = keys
            .iter()
            .filter_map(|key| if let KeyText::Verifying(key) = key { Some(*key) } else { None })
            .collect();
        if signers.is_empty() {
            return Err(Error::input(format!(
                "{}: no public key of a signer in this file",
                self.key.display()
            ))
            .with_hint("name a NAME.pub of `anabranch key new NAME --kind signing`"));
        }
        match signers.iter().any(|key| key.has_signed(&file, &signature)) {
            true => output::text("the signature is valid\n"),
            false => Err(Error::job(format!(
                "{}: invalid signature: not of this file by this key",
                path.display()
            ))
            .with_hint("the file has changed since it was signed, or another key signed it")),
        }
    }
}

/// Default path of a signature: FILE.sig.
fn beside(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(".sig");
    path.into()
}
