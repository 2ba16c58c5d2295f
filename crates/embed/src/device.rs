//! Manifests: decides which files a node accepts for its device.

#[cfg(feature = "manifest")]
use alloc::boxed::Box;
#[cfg(feature = "manifest")]
use anabranch_core::set::FileIdentity;
use anabranch_core::set::{RefuseReason, Request};
#[cfg(feature = "manifest")]
use anabranch_secure::manifest::{self, Envelope, Highest, Uuid};
#[cfg(feature = "manifest")]
use anabranch_secure::{FileDigest, VerifyingKey};
use bytes::Bytes;

/// Heap sizes for manifests.
#[cfg(feature = "manifest")]
pub(crate) mod octets {
    use super::Admission;

    /// Permanent heap use, apart from the offered manifest.
    pub(crate) const ADMISSION: usize = size_of::<Admission>().next_multiple_of(16);

    /// Size of the signed statement for an envelope of at most `longest` bytes.
    pub(crate) const fn statement(longest: usize) -> usize {
        longest + anabranch_secure::manifest::STATEMENT_OVERHEAD
    }
}

/// Without manifests no heap is needed.
#[cfg(not(feature = "manifest"))]
pub(crate) mod octets {
    pub(crate) const ADMISSION: usize = 0;

    pub(crate) const fn statement(_: usize) -> usize {
        0
    }
}

/// Identity of a device, and the signers that it trusts.
#[derive(Clone, Copy, Debug)]
#[cfg(feature = "manifest")]
pub struct Device {
    /// Identifier of the vendor.
    pub vendor: &'static Uuid,
    /// Identifier of the device class, unique per vendor.
    pub class: &'static Uuid,
    /// The component that files are for.
    pub component: &'static [u8],
    /// Ed25519 public keys of trusted signers.
    pub signers: &'static [[u8; 32]],
    /// Returns seconds since 1970, or `u64::MAX` while the time is unknown. A time before 2026
    /// counts as unknown. Without the time, a manifest that expires is refused.
    pub unix_time: Option<extern "C" fn() -> u64>,
}

/// Decides by manifests which files a node accepts.
#[derive(Debug)]
#[cfg(feature = "manifest")]
pub struct Admission {
    device: Device,
    highest: Option<Highest>,
    /// Envelope of the offered file.
    offered: Bytes,
    /// Sequence number of the offered or incoming file.
    sequence: u64,
    /// Expiry time of that file in seconds since 1970; `u64::MAX` if it never expires.
    use_before: u64,
}

/// Decides by manifests which files a node accepts. Uninhabited without the feature `manifest`.
#[derive(Debug)]
#[cfg(not(feature = "manifest"))]
pub enum Admission {}

#[cfg(feature = "manifest")]
impl Admission {
    /// Creates the admission of a device. `highest` is the last file that the device accepted, from
    /// storage that survives restarts.
    pub fn new(device: Device, highest: Option<Highest>) -> Box<Self> {
        Box::new(Self { device, highest, offered: Bytes::new(), sequence: 0, use_before: u64::MAX })
    }

    /// Checks whether the requested file is admitted. Returns the reason if not.
    pub(crate) fn admit(&mut self, request: &Request, envelope: Option<Bytes>) -> Result<(), RefuseReason> {
        let (Some(FileIdentity { digest, .. }), Some(octets)) = (request.file, envelope) else {
            return Err(RefuseReason::Signature);
        };
        let file = FileDigest { length: request.length, sha256: digest };
        (self.sequence, self.use_before) = self.judge(&file, &octets)?;
        self.offered = octets;
        Ok(())
    }

    /// Seconds since 1970, or a time after every expiry while the time is unknown.
    fn now(&self) -> u64 {
        self.device.unix_time.map_or(u64::MAX, |unix_time| manifest::if_set(unix_time()))
    }

    /// Returns the sequence number and the expiry time that the envelope gives to the file.
    #[inline(never)]
    fn judge(&self, file: &FileDigest, octets: &[u8]) -> Result<(u64, u64), RefuseReason> {
        let Device { vendor, class, component, signers, .. } = self.device;
        let envelope = Envelope::read(octets).map_err(|_| RefuseReason::Signature)?;
        let signed =
            |key: &[u8; 32]| VerifyingKey::from_octets(key).is_some_and(|key| envelope.is_signed_by(&key));
        if !signers.iter().any(signed) {
            return Err(RefuseReason::Signature);
        }
        let device = manifest::Device { vendor: *vendor, class: *class, component };
        let manifest = envelope.manifest();
        manifest.admits(file, Some(&device), self.highest.as_ref(), self.now())?;
        Ok((manifest.sequence, manifest.use_before.unwrap_or(u64::MAX)))
    }

    /// Forgets the offer, which was answered or withdrawn.
    pub(crate) fn forget_offered(&mut self) {
        self.offered = Bytes::new();
    }

    /// True if the admitted file has expired during its transfer.
    pub(crate) fn has_expired(&self) -> bool {
        self.use_before != u64::MAX && self.now() >= self.use_before
    }

    /// Records that the admitted file is complete.
    pub(crate) fn raise(&mut self, sha256: [u8; 32]) {
        self.highest = Some(Highest { sequence: self.sequence, sha256 });
    }

    /// The envelope of the offered file and its sequence number.
    pub(crate) fn offered(&self) -> (&[u8], u64) {
        (&self.offered, self.sequence)
    }

    /// The sequence number below which every file is refused, and the SHA-256 of its file.
    pub(crate) fn highest(&self) -> Option<(u64, [u8; 32])> {
        self.highest.map(|highest| (highest.sequence, highest.sha256))
    }
}

#[cfg(not(feature = "manifest"))]
#[expect(clippy::needless_pass_by_ref_mut, reason = "as with the feature")]
impl Admission {
    pub(crate) fn admit(&mut self, _: &Request, _: Option<Bytes>) -> Result<(), RefuseReason> {
        match *self {}
    }

    pub(crate) fn forget_offered(&mut self) {
        match *self {}
    }

    pub(crate) fn has_expired(&self) -> bool {
        match *self {}
    }

    pub(crate) fn raise(&mut self, _: [u8; 32]) {
        match *self {}
    }

    pub(crate) fn offered(&self) -> (&[u8], u64) {
        match *self {}
    }

    pub(crate) fn highest(&self) -> Option<(u64, [u8; 32])> {
        match *self {}
    }
}
