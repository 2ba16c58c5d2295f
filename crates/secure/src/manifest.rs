//! Signed firmware manifests: SUIT envelopes (draft-ietf-suit-manifest), whose information model is
//! RFC 9124.
//!
//! The profile is the part of SUIT that admits one file to one component of a device. A manifest
//! names the file by length and SHA-256, the devices by vendor and class, and has a sequence number
//! and maybe a last moment (draft-ietf-suit-update-management). Ed25519 signs it (COSE_Sign1, RFC
//! 9052, with a detached payload). What is not of the profile is refused by its name, as section
//! 6.2 of the draft asks for commands that are not supported; so is CBOR that is not encoded
//! deterministically (RFC 8949, section 4.2.1).
//!
//! There is no clock and no storage here: the caller gives the time and what it has admitted
//! before.

mod read;
mod write;

use anabranch_wire::set::RefuseReason;

use crate::signature::{FileDigest, Signature, VerifyingKey};

/// The longest envelope, in octets: it goes with a request, and a node holds it before it knows
/// whose it is. One that [`Manifest::sign`] makes has about 300.
pub const MAX_ENVELOPE: usize = 1024;

/// Octets that checking a signature allocates at most, beside those of the envelope: the heads of
/// COSE's Sig_structure.
pub const STATEMENT_OVERHEAD: usize = 24;

/// The longest name of a component, in octets.
pub const MAX_COMPONENT: usize = 64;

/// A UUID (RFC 9562), in the order of its text.
pub type Uuid = [u8; 16];

/// What a signer says of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manifest<'a> {
    /// Grows from one release of a component to the next; suit-manifest-sequence-number.
    pub sequence: u64,
    /// Who makes the device.
    pub vendor: Uuid,
    /// Which of the vendor's devices.
    pub class: Uuid,
    /// What of the device the file is for, from 1 to [`MAX_COMPONENT`] octets.
    pub component: &'a [u8],
    /// The file.
    pub file: FileDigest,
    /// From then on the file is not to be taken, in seconds since 1970; suit-parameter-use-before.
    pub use_before: Option<u64>,
}

/// An envelope whose manifest has been read. Nobody has looked at its signatures yet: see
/// [`Envelope::is_signed_by`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope<'a> {
    manifest: Manifest<'a>,
    /// The SUIT_Digest of the manifest, which is what is signed.
    digest: &'a [u8],
    /// The authentication blocks, each in a byte string.
    blocks: &'a [u8],
}

/// What is wrong with an envelope.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadEnvelope {
    /// It is longer than [`MAX_ENVELOPE`].
    #[error("longer than {MAX_ENVELOPE} bytes")]
    TooLong,
    /// CBOR that ends too early, goes on too long, has another type or order, or is not encoded
    /// deterministically.
    #[error("{0} is not deterministic CBOR of the expected type")]
    Malformed(&'static str),
    /// SUIT or COSE has a meaning for it, or may have one later, that is not of the profile.
    #[error("{0} {1} is not supported")]
    Unsupported(&'static str, i64),
    /// The profile needs it.
    #[error("no {0}")]
    Missing(&'static str),
    /// It is there twice.
    #[error("more than one {0}")]
    Twice(&'static str),
    /// The digest beside the signatures is not that of the manifest.
    #[error("the digest of the manifest is not the signed digest")]
    Digest,
}

/// What a device is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device<'a> {
    /// Who makes it.
    pub vendor: Uuid,
    /// Which of the vendor's devices it is.
    pub class: Uuid,
    /// What of it is written here.
    pub component: &'a [u8],
}

/// The highest sequence number that was admitted to a component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Highest {
    /// The number.
    pub sequence: u64,
    /// SHA-256 of the file.
    pub sha256: [u8; 32],
}

/// 2026-01-01. This program is younger: a clock that says less was never set.
pub const YOUNGER: u64 = 1_767_225_600;

/// The time of a clock in seconds since 1970, or after every expiry if the clock was never set. A
/// device whose clock begins in 1970 must not take what expired long ago.
pub const fn if_set(clock: u64) -> u64 {
    if clock < YOUNGER { u64::MAX } else { clock }
}

/// Why a file is not admitted by a manifest, whoever has signed it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotAdmitted {
    /// The manifest is about another file.
    #[error("the manifest describes another file")]
    OtherFile,
    /// Of another vendor, class or component.
    #[error("the manifest is for another vendor, class or component")]
    OtherDevice,
    /// A higher sequence number was admitted before, or the same one with another file.
    #[error("a higher sequence number was accepted before, or the same one with another file")]
    Rollback,
    /// Its time is over.
    #[error("the manifest has expired")]
    Expired,
}

impl From<NotAdmitted> for RefuseReason {
    /// What a node tells the sender.
    fn from(why: NotAdmitted) -> Self {
        match why {
            NotAdmitted::OtherFile => Self::Signature,
            NotAdmitted::OtherDevice => Self::WrongDevice,
            NotAdmitted::Rollback => Self::Rollback,
            NotAdmitted::Expired => Self::Expired,
        }
    }
}

impl Manifest<'_> {
    /// Whether `file` may go to `device` at `now`, in seconds since 1970, after `highest`. A device
    /// without a clock says [`u64::MAX`], and takes no manifest that expires; see also [`if_set`].
    ///
    /// Lower numbers are refused (section 8.4.2 of the draft). The last number admits its own file
    /// again, so that a delivery that was cut off can be repeated.
    ///
    /// # Errors
    /// The first reason against it.
    pub fn admits(
        &self,
        file: &FileDigest,
        device: Option<&Device<'_>>,
        highest: Option<&Highest>,
        now: u64,
    ) -> Result<(), NotAdmitted> {
        let is_other = |device: &Device<'_>| {
            (device.vendor, device.class, device.component) != (self.vendor, self.class, self.component)
        };
        let is_old = |highest: &Highest| {
            self.sequence < highest.sequence
                || self.sequence == highest.sequence && self.file.sha256 != highest.sha256
        };
        if self.file != *file {
            Err(NotAdmitted::OtherFile)
        } else if device.is_some_and(is_other) {
            Err(NotAdmitted::OtherDevice)
        } else if highest.is_some_and(is_old) {
            Err(NotAdmitted::Rollback)
        } else if self.use_before.is_some_and(|end| now >= end) {
            Err(NotAdmitted::Expired)
        } else {
            Ok(())
        }
    }
}

impl<'a> Envelope<'a> {
    /// Reads an envelope, and checks the manifest against the digest that is signed.
    ///
    /// # Errors
    /// It is none of the profile.
    pub fn read(octets: &'a [u8]) -> Result<Self, BadEnvelope> {
        read::envelope(octets)
    }

    /// What it says, if the one who has signed it is believed.
    pub const fn manifest(&self) -> &Manifest<'a> {
        &self.manifest
    }

    /// Whether one of its signatures is by the owner of this key. Signatures by other algorithms
    /// are nobody's.
    pub fn is_signed_by(&self, key: &VerifyingKey) -> bool {
        let mut blocks = read::Blocks::new(self.blocks);
        core::iter::from_fn(|| blocks.next().ok().flatten()).any(|block| {
            block.ed25519.is_some_and(|(protected, signature)| {
                key.has_signed_octets(&write::statement(protected, self.digest), &Signature(signature))
            })
        })
    }
}

/// Keys of maps, commands and parameters.
mod label {
    pub(super) const ENVELOPE: u64 = 107;
    pub(super) const AUTHENTICATION: u64 = 2;
    pub(super) const MANIFEST: u64 = 3;
    pub(super) const SIGN1: u64 = 18;

    pub(super) const VERSION: u64 = 1;
    pub(super) const SEQUENCE: u64 = 2;
    pub(super) const COMMON: u64 = 3;
    pub(super) const REFERENCE_URI: u64 = 4;
    pub(super) const VALIDATE: u64 = 7;
    pub(super) const INSTALL: u64 = 20;
    pub(super) const TEXT: u64 = 23;

    pub(super) const COMPONENTS: u64 = 2;
    pub(super) const SHARED: u64 = 4;

    /// Conditions and parameters with the same number are about the same thing.
    pub(super) const VENDOR: u64 = 1;
    pub(super) const CLASS: u64 = 2;
    pub(super) const IMAGE: u64 = 3;
    pub(super) const USE_BEFORE: u64 = 4;
    pub(super) const SIZE: u64 = 14;
    pub(super) const URI: u64 = 21;

    pub(super) const OVERRIDE: u64 = 20;
    pub(super) const FETCH: u64 = 21;

    pub(super) const SHA256: i64 = -16;
    pub(super) const ALGORITHM: u64 = 1;
    pub(super) const KEY_ID: u64 = 4;
    /// EdDSA, whose curve is the key's (RFC 9053), and Ed25519 (RFC 9864).
    pub(super) const EDDSA: i64 = -8;
    pub(super) const ED25519: i64 = -19;
}

#[cfg(test)]
mod tests;
