//! Manifests: which files a node takes that knows what device it is.

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

/// Heap for manifests.
#[cfg(feature = "manifest")]
pub(crate) mod octets {
    use super::Admission;

    /// What lasts, beside the offered manifest.
    pub(crate) const ADMISSION: usize = size_of::<Admission>().next_multiple_of(16);

    /// What a signature is over, for an envelope of at most `longest` bytes.
    pub(crate) const fn statement(longest: usize) -> usize {
        longest + anabranch_secure::manifest::STATEMENT_OVERHEAD
    }
}

/// Without manifests nothing is needed.
#[cfg(not(feature = "manifest"))]
pub(crate) mod octets {
    pub(crate) const ADMISSION: usize = 0;

    pub(crate) const fn statement(_: usize) -> usize {
        0
    }
}

/// What a device is, and whose manifests it believes.
#[derive(Clone, Copy, Debug)]
#[cfg(feature = "manifest")]
pub struct Device {
    /// Identifier of the device's maker.
    pub vendor: &'static Uuid,
    /// Identifier of the kind of device among those of its maker.
    pub class: &'static Uuid,
    /// The component that files are for.
    pub component: &'static [u8],
    /// Ed25519 public keys of signers.
    pub signers: &'static [[u8; 32]],
    /// Seconds since 1970, or `u64::MAX` while the time is not known. A time before 2026 counts as
    /// not known. Without the time no manifest that expires is taken.
    pub unix_time: Option<extern "C" fn() -> u64>,
}

/// Decides by manifests which files a node takes.
#[derive(Debug)]
#[cfg(feature = "manifest")]
pub struct Admission {
    device: Device,
    highest: Option<Highest>,
    /// The envelope of the file that is offered.
    offered: Bytes,
    /// The sequence number of the file that is offered or coming.
    sequence: u64,
    /// From then on that file is not to be taken, in seconds since 1970; `u64::MAX` if it never
    /// expires.
    use_before: u64,
}

/// Decides by manifests which files a node takes: none, without the feature `manifest`.
#[derive(Debug)]
#[cfg(not(feature = "manifest"))]
pub enum Admission {}

#[cfg(feature = "manifest")]
impl Admission {
    /// For this device. `highest` is the number of the last file that the device has taken, from
    /// storage that outlives restarts.
    pub fn new(device: Device, highest: Option<Highest>) -> Box<Self> {
        Box::new(Self { device, highest, offered: Bytes::new(), sequence: 0, use_before: u64::MAX })
    }

    /// Whether the requested file may come; why not.
    pub(crate) fn admit(&mut self, request: &Request, envelope: Option<Bytes>) -> Result<(), RefuseReason> {
        let (Some(FileIdentity { digest, .. }), Some(octets)) = (request.file, envelope) else {
            return Err(RefuseReason::Signature);
        };
        let file = FileDigest { length: request.length, sha256: digest };
        (self.sequence, self.use_before) = self.judge(&file, &octets)?;
        self.offered = octets;
        Ok(())
    }

    /// Seconds since 1970, or after every expiry while the time is not known.
    fn now(&self) -> u64 {
        self.device.unix_time.map_or(u64::MAX, |unix_time| manifest::if_set(unix_time()))
    }

    /// The sequence number that an envelope gives to the file, and when it expires.
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

    /// The offer was answered or withdrawn.
    pub(crate) fn forget_offered(&mut self) {
        self.offered = Bytes::new();
    }

    /// The file that was admitted has expired on its way.
    pub(crate) fn has_expired(&self) -> bool {
        self.use_before != u64::MAX && self.now() >= self.use_before
    }

    /// The file that was admitted is complete.
    pub(crate) fn raise(&mut self, sha256: [u8; 32]) {
        self.highest = Some(Highest { sequence: self.sequence, sha256 });
    }

    /// The envelope of the offered file, and its sequence number.
    pub(crate) fn offered(&self) -> (&[u8], u64) {
        (&self.offered, self.sequence)
    }

    /// The number below which no file is taken.
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
