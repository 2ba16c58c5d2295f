//! `anabranch manifest`: signed statements of which file is for which devices, and in which order
//! files follow each other.

mod expiry;
pub(crate) mod identifier;

use std::fs::File;
use std::path::{Path, PathBuf};

use anabranch_net::set::unix_time;
use anabranch_secure::manifest::Manifest;
use anabranch_secure::{FileDigest, KeyText};
use serde::Serialize;

use self::expiry::Expiry;
use self::identifier::{Component, class, text, vendor};
use crate::envelope::{about, octets, read};
use crate::error::Error;
use crate::files::{check_apart, digest, write_whole};
use crate::keys::{in_file, verifying, warn_if_open};
use crate::mcuboot;
use crate::output::{self, hex};
use crate::say;

/// Commands for firmware manifests, which are SUIT envelopes.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Sign a manifest of a file for nodes with --vendor and --class; it is written to FILE.suit
    Create(Create),
    /// Print the contents of a manifest, without checking its signature
    Show(Show),
    /// Check the signature of a manifest and, if a file is given, that the manifest describes it
    Verify(Verify),
}

/// Options of `manifest create`.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// File to deliver to devices
    file: PathBuf,
    /// File with the secret signing key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Sequence number, higher than in all earlier manifests of this component.
    ///
    /// The default is the version of an MCUboot image, as a 64-bit number; other files need the
    /// option.
    #[arg(long, value_name = "N")]
    sequence: Option<u64>,
    /// Vendor of the devices: a UUID, or a domain name from which the UUID is derived
    #[arg(long, value_name = "UUID|DOMAIN")]
    vendor: String,
    /// Class of the vendor's devices: a UUID, or a name from which the UUID is derived
    #[arg(long, value_name = "UUID|NAME")]
    class: String,
    /// Component of the device
    #[arg(long, value_name = "NAME", default_value = "firmware")]
    component: Component,
    /// Time after which nodes refuse the file [default: never].
    ///
    /// A UTC date such as 2027-01-31 or 2027-01-31T12:00:00Z, or a time from now such as "90 d".
    #[arg(long, value_name = "DATE|DURATION")]
    expires: Option<Expiry>,
    /// Write the manifest to this file [default: FILE.suit]
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
}

/// Options of `manifest show`.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// Manifest to print
    manifest: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Options of `manifest verify`.
#[derive(Debug, clap::Args)]
pub struct Verify {
    /// Manifest to check
    manifest: PathBuf,
    /// File that the manifest must describe
    file: Option<PathBuf>,
    /// Public keys of the accepted signers, each given as text or as a file; one of them must have
    /// signed the manifest
    #[arg(long, value_name = "KEY|FILE,...", value_delimiter = ',', required = true)]
    signers: Vec<String>,
}

/// Runs a command for manifests.
///
/// # Errors
/// A file cannot be read or written, a manifest is invalid, or its signature is.
pub fn main(command: &Command) -> Result<(), Error> {
    match command {
        Command::Create(create) => create.run(),
        Command::Show(show) => show.run(),
        Command::Verify(verify) => verify.run(),
    }
}

/// Contents of a manifest, as printed.
#[derive(Debug, Serialize)]
struct Said {
    sequence: u64,
    vendor: String,
    class: String,
    component: String,
    bytes: u64,
    sha256: String,
    /// RFC 3339 time; `null` if the manifest never expires.
    expires: Option<String>,
}

/// A component's name as text, or in CBOR diagnostic notation if it has characters that a terminal
/// could interpret.
fn name(component: &[u8]) -> String {
    match std::str::from_utf8(component) {
        Ok(text) if component.iter().all(u8::is_ascii_graphic) => text.to_owned(),
        _ => format!("h'{}'", hex(component)),
    }
}

impl Said {
    fn of(manifest: &Manifest<'_>) -> Self {
        Self {
            sequence: manifest.sequence,
            vendor: text(manifest.vendor),
            class: text(manifest.class),
            component: name(manifest.component),
            bytes: manifest.file.length,
            sha256: hex(&manifest.file.sha256),
            expires: manifest.use_before.map(|end| Expiry(end).to_string()),
        }
    }
}

impl Create {
    fn run(&self) -> Result<(), Error> {
        let path = self.out.clone().unwrap_or_else(|| beside(&self.file));
        let inputs = [("the file", self.file.as_path()), ("the key", self.key.as_path())];
        check_apart(inputs, [("--out", path.as_path())])?;
        let (mut file, digest) = digest(&self.file)?;
        let sequence = self.sequence(&mut file, &digest)?;
        let [KeyText::Signing(key)] = &in_file(&self.key)?[..] else {
            return Err(Error::input(format!("{}: not a signing key", self.key.display()))
                .with_hint("`anabranch key new NAME --kind signing` makes a signing key"));
        };
        warn_if_open(&self.key);
        let vendor = vendor(&self.vendor)?;
        let manifest = Manifest {
            sequence,
            vendor,
            class: class(vendor, &self.class)?,
            component: self.component.octets(),
            file: digest,
            use_before: self.expires.map(|Expiry(end)| end),
        };
        if manifest.use_before.is_some_and(|end| end <= unix_time().as_secs()) {
            say!("warning: {}: already expired: no node accepts it", path.display());
        }
        write_whole(&path, &manifest.sign(key))?;
        output::text(&format!("{}\n", path.display()))
    }

    /// The number of `--sequence`, or the version of the MCUboot image. An image must be complete
    /// in either case.
    fn sequence(&self, file: &mut File, digest: &FileDigest) -> Result<u64, Error> {
        let bad = |error: &dyn std::fmt::Display| Error::input(format!("{}: {error}", self.file.display()));
        let version = match mcuboot::is_image(file).map_err(|error| Error::unreadable(&self.file, &error))? {
            true => Some(mcuboot::check(file, digest.length).map_err(|error| bad(&error))?.version),
            false => None,
        };
        match self.sequence.or(version.map(mcuboot::Version::number)) {
            Some(u64::MAX) => {
                let message = format!("sequence number {} has no successor", u64::MAX);
                Err(Error::input(message).with_hint("give a lower --sequence"))
            }
            Some(sequence) => Ok(sequence),
            None => Err(bad(&"no sequence number: not an MCUboot image and no --sequence")
                .with_hint("give --sequence N, higher than that of the last manifest")),
        }
    }
}

impl Show {
    fn run(&self) -> Result<(), Error> {
        let octets = octets(&self.manifest)?;
        let said = Said::of(read(&self.manifest, &octets)?.manifest());
        if self.json {
            return output::json(&said);
        }
        let Said { sequence, vendor, class, component, bytes, sha256, expires } = &said;
        let expires = expires.as_deref().unwrap_or("never");
        output::text(&format!(
            "sequence   {sequence}\nvendor     {vendor}\nclass      {class}\ncomponent  {component}\n\
             bytes      {bytes}\nsha256     {sha256}\nexpires    {expires}\n"
        ))
    }
}

impl Verify {
    fn run(&self) -> Result<(), Error> {
        let signers = verifying(&self.signers)?;
        let octets = octets(&self.manifest)?;
        let envelope = read(&self.manifest, &octets)?;
        if !signers.iter().any(|key| envelope.is_signed_by(key)) {
            let message = format!("{}: not signed by any key of --signers", self.manifest.display());
            return Err(Error::job(message));
        }
        if let Some(file) = &self.file {
            about(&self.manifest, &envelope, &digest(file)?.1)?;
        }
        match envelope.manifest().use_before {
            Some(end) if end <= unix_time().as_secs() => {
                Err(Error::job(format!("{}: expired on {}", self.manifest.display(), Expiry(end)))
                    .with_hint("`anabranch manifest create` makes a new one; --expires sets its end"))
            }
            _ => output::text("the manifest is valid\n"),
        }
    }
}

/// Default path of a manifest: FILE.suit.
fn beside(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(".suit");
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_of_another_signer_says_nothing_to_a_terminal() {
        assert_eq!(name(b"radio-2"), "radio-2");
        assert_eq!(name(&[0]), "h'00'");
        assert_eq!(name(b"\x1b[2J"), "h'1b5b324a'");
        assert_eq!(name("é".as_bytes()), "h'c3a9'");
    }
}
