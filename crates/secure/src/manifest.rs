//! Signed firmware manifests: SUIT envelopes (draft-ietf-suit-manifest) with the information model
//! of RFC 9124.
//!
//! The supported profile is the part of SUIT that admits one file to one component of a device. A
//! manifest identifies the file by length and SHA-256, and the devices by vendor and class. It has
//! a sequence number and optionally an expiry time (draft-ietf-suit-update-management). Its
//! signature is Ed25519 (COSE_Sign1, RFC 9052, with a detached payload). Elements outside the
//! profile are refused by name, as section 6.2 of the draft requires for unsupported commands. CBOR
//! that is not encoded deterministically (RFC 8949, section 4.2.1) is refused too.
//!
//! This module has no clock and no storage: the caller passes the time and the manifest that it
//! admitted last.

mod read;
mod write;

use anabranch_wire::set::RefuseReason;

use crate::signature::{FileDigest, Signature, VerifyingKey};

/// Length limit of an envelope in bytes. A request carries the envelope, and a node buffers it
/// before it knows the sender. An envelope of [`Manifest::sign`] has about 300 bytes.
pub const MAX_ENVELOPE: usize = 1024;

/// Upper bound of the bytes that checking a signature allocates in addition to those of the
/// envelope: the headers of COSE's Sig_structure.
pub const STATEMENT_OVERHEAD: usize = 24;

/// Length limit of a component name in bytes.
pub const MAX_COMPONENT: usize = 64;

/// A UUID (RFC 9562), in the byte order of its text.
pub type Uuid = [u8; 16];

/// The signed statement about a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manifest<'a> {
    /// Increases with each release of a component; suit-manifest-sequence-number.
    pub sequence: u64,
    /// Vendor of the device.
    pub vendor: Uuid,
    /// Device class of the vendor.
    pub class: Uuid,
    /// Component of the device that the file is for, 1 to [`MAX_COMPONENT`] bytes.
    pub component: &'a [u8],
    /// Length and digest of the file.
    pub file: FileDigest,
    /// Expiry time in seconds since 1970, from which the file must not be accepted;
    /// suit-parameter-use-before.
    pub use_before: Option<u64>,
}

/// A parsed envelope. Its signatures have not been checked: see [`Envelope::is_signed_by`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope<'a> {
    manifest: Manifest<'a>,
    /// The SUIT_Digest of the manifest, which the signatures cover.
    digest: &'a [u8],
    /// The authentication blocks, each in a byte string.
    blocks: &'a [u8],
}

/// Why an envelope was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadEnvelope {
    /// It is longer than [`MAX_ENVELOPE`].
    #[error("longer than {MAX_ENVELOPE} bytes")]
    TooLong,
    /// The CBOR is truncated, has extra bytes, a wrong type or a wrong order, or is not encoded
    /// deterministically.
    #[error("{0} is not deterministic CBOR of the expected type")]
    Malformed(&'static str),
    /// An element of SUIT or COSE, or one reserved for later use, that is outside the profile.
    #[error("{0} {1} is not supported")]
    Unsupported(&'static str, i64),
    /// An element that the profile requires is missing.
    #[error("no {0}")]
    Missing(&'static str),
    /// An element occurs twice.
    #[error("more than one {0}")]
    Twice(&'static str),
    /// The signed digest is not that of the manifest.
    #[error("the digest of the manifest is not the signed digest")]
    Digest,
}

/// Identity of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device<'a> {
    /// Vendor of the device.
    pub vendor: Uuid,
    /// Device class of the vendor.
    pub class: Uuid,
    /// The component to be written.
    pub component: &'a [u8],
}

/// The highest sequence number admitted to a component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Highest {
    /// The sequence number.
    pub sequence: u64,
    /// SHA-256 of the file admitted with it.
    pub sha256: [u8; 32],
}

/// 2026-01-01 in seconds since 1970. This program is younger, so an earlier clock was never set.
pub const YOUNGER: u64 = 1_767_225_600;

/// Returns `clock`, in seconds since 1970, or a time after every expiry if the clock was never set.
/// A device whose clock starts in 1970 must not accept what expired long ago.
pub const fn if_set(clock: u64) -> u64 {
    if clock < YOUNGER { u64::MAX } else { clock }
}

/// Why a manifest does not admit a file, independently of its signer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotAdmitted {
    /// The manifest describes another file.
    #[error("the manifest describes another file")]
    OtherFile,
    /// The manifest is for another vendor, class or component.
    #[error("the manifest is for another vendor, class or component")]
    OtherDevice,
    /// A higher sequence number was admitted before, or the same one with another file.
    #[error("a higher sequence number was accepted before, or the same one with another file")]
    Rollback,
    /// The manifest has expired.
    #[error("the manifest has expired")]
    Expired,
}

impl From<NotAdmitted> for RefuseReason {
    /// The reason that a node sends to the sender.
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
    /// Checks whether `file` may be written to `device` at `now`, in seconds since 1970, after
    /// `highest`. A device without a clock passes [`u64::MAX`] and accepts no manifest that
    /// expires; see also [`if_set`].
    ///
    /// Lower sequence numbers are refused (section 8.4.2 of the draft). The last admitted number
    /// admits its own file again, so that an interrupted delivery can be repeated.
    ///
    /// # Errors
    /// The first check that fails.
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
    /// Parses an envelope and checks the manifest against the signed digest.
    ///
    /// # Errors
    /// The envelope is malformed or outside the profile.
    pub fn read(octets: &'a [u8]) -> Result<Self, BadEnvelope> {
        read::envelope(octets)
    }

    /// The manifest. Check [`Envelope::is_signed_by`] before trusting it.
    pub const fn manifest(&self) -> &Manifest<'a> {
        &self.manifest
    }

    /// True if the owner of this key made one of the signatures. Signatures of other algorithms do
    /// not count.
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

    /// A condition and the parameter that it checks have the same number.
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
    /// EdDSA, whose curve the key determines (RFC 9053), and Ed25519 (RFC 9864).
    pub(super) const EDDSA: i64 = -8;
    pub(super) const ED25519: i64 = -19;
}

#[cfg(test)]
mod tests;
