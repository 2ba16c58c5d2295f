//! Identity of the node's device, and admission of files by signature or manifest.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use anabranch_core::set::RefuseReason;
use anabranch_net::set::{Offer, Refusal, unix_time};
use anabranch_secure::manifest::{Device, Envelope, Highest, Uuid, YOUNGER, if_set};
use anabranch_secure::{FileDigest, Signature, VerifyingKey};
use bytes::Bytes;

use super::sequence::Stored;
use crate::calendar::rfc3339;
use crate::error::Error;
use crate::manifest::identifier::{Component, class, text, vendor};

/// Options of `node` that identify its device.
#[derive(Debug, clap::Args)]
pub(super) struct OfDevice {
    /// Take only files with a manifest for a device of this vendor, signed by one of --signers.
    ///
    /// The vendor is a UUID, or a domain name from which the UUID is derived. A signature without a
    /// manifest is then refused.
    #[arg(long, value_name = "UUID|DOMAIN", requires_all = ["class", "signers"])]
    vendor: Option<String>,
    /// Class of this device, as in its manifests: a UUID, or a name from which the UUID is derived
    #[arg(long, value_name = "UUID|NAME", requires = "vendor")]
    class: Option<String>,
    /// Component of the device that this node updates.
    ///
    /// Each component has its own sequence numbers in the folder of --state.
    #[arg(long, value_name = "NAME", default_value = "firmware")]
    component: Component,
    /// Take only complete images for the boot loader MCUboot.
    ///
    /// An image of a lower version than the one in --out is refused.
    #[arg(long)]
    pub(super) mcuboot: bool,
}

impl OfDevice {
    /// The device that the options describe; `None` without `--vendor`.
    pub(super) fn device(&self) -> Result<Option<OwnDevice>, Error> {
        let (Some(maker), Some(kind)) = (&self.vendor, &self.class) else { return Ok(None) };
        let vendor = vendor(maker)?;
        Ok(Some(OwnDevice { vendor, class: class(vendor, kind)?, component: self.component.clone() }))
    }
}

/// A device with a known identity.
#[derive(Clone, Debug)]
pub(super) struct OwnDevice {
    vendor: Uuid,
    class: Uuid,
    component: Component,
}

/// Text that is a valid file name and differs for each device.
impl fmt::Display for OwnDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", text(self.vendor), text(self.class), self.component.name())
    }
}

#[cfg(test)]
impl OwnDevice {
    pub(super) fn of(maker: &str, kind: &str) -> Self {
        let vendor = vendor(maker).expect("a domain");
        Self {
            vendor,
            class: class(vendor, kind).expect("a name"),
            component: "firmware".parse().expect("a name"),
        }
    }

    pub(super) const fn identifiers(&self) -> (Uuid, Uuid) {
        (self.vendor, self.class)
    }
}

/// Signers that a node trusts. The set can change while the node runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Signers {
    /// Set when the node started with signers. It then keeps requiring signatures even if every
    /// signer is revoked.
    wanted: bool,
    trusted: Arc<RwLock<Vec<VerifyingKey>>>,
}

/// Whose files a node takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Trust {
    Anybody,
    Some,
    Nobody,
}

impl Signers {
    /// Requires a signature of one of `signers`, unless there are none.
    pub(super) fn new(signers: Vec<VerifyingKey>) -> Self {
        Self { wanted: !signers.is_empty(), trusted: Arc::new(RwLock::new(signers)) }
    }

    /// Replaces the trusted signers. The change also applies to a transfer in progress.
    pub(super) fn set(&self, signers: Vec<VerifyingKey>) -> Trust {
        let trust = match (self.wanted, signers.is_empty()) {
            (false, _) => Trust::Anybody,
            (true, false) => Trust::Some,
            (true, true) => Trust::Nobody,
        };
        *self.trusted.write().unwrap_or_else(PoisonError::into_inner) = signers;
        trust
    }

    /// Whether no signature is required, or `has_signed` holds for a trusted signer.
    fn any(&self, has_signed: impl Fn(&VerifyingKey) -> bool) -> bool {
        let trusted = self.trusted.read().unwrap_or_else(PoisonError::into_inner);
        !self.wanted || trusted.iter().any(has_signed)
    }
}

/// What the sender presented for a file.
#[derive(Clone, Debug, Default)]
struct Evidence {
    file: Option<FileDigest>,
    signature: Option<Signature>,
    manifest: Option<Bytes>,
}

/// Decides which files are admitted.
#[derive(Debug, Default)]
pub(super) struct Admission {
    pub(super) signers: Signers,
    own: Option<(OwnDevice, Stored)>,
    /// Evidence for the current file.
    evidence: Evidence,
}

/// Why a file is not admitted, or the sequence number to store for it.
type Judgement = Result<Option<Highest>, RefuseReason>;

impl Admission {
    /// Requires manifests for this device. The highest sequence number is stored in `state`.
    ///
    /// # Errors
    /// The number cannot be stored.
    pub(super) fn for_device(&mut self, device: OwnDevice, state: Option<&Path>) -> Result<(), Error> {
        let stored = Stored::open(state, &device.to_string())?;
        self.own = Some((device, stored));
        Ok(())
    }

    /// Decides whether an offered file is admitted, and why not.
    ///
    /// # Errors
    /// The stored number cannot be read.
    pub(super) fn of(&mut self, offer: &Offer) -> io::Result<Result<(), RefuseReason>> {
        self.evidence = Evidence {
            file: offer.file.map(|file| FileDigest { length: offer.length, sha256: file.digest }),
            signature: offer.file.and_then(|file| file.signature).map(Signature),
            manifest: offer.manifest.clone(),
        };
        Ok(self.judge(unix_time().as_secs())?.map(drop))
    }

    /// Judges the complete file again and stores its sequence number, before the file is handed on.
    ///
    /// The transfer may have taken long: meanwhile its signer may have been revoked, or its
    /// manifest may have expired.
    ///
    /// # Errors
    /// A [`Refusal`], or the number cannot be stored; the file must not be handed on.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        let judgement = self.judge(unix_time().as_secs())?;
        let next = judgement.map_err(|reason| Refusal {
            reason,
            message: format!("refused after it was received: {}", self.why_not(reason)),
        })?;
        match (&mut self.own, &next) {
            (Some((_, stored)), Some(next)) => stored.raise(next),
            _ => Ok(()),
        }
    }

    /// Why the current file is not admitted, as text for the node's operator.
    pub(super) fn why_not(&self, reason: RefuseReason) -> String {
        let has_manifest = self.evidence.manifest.is_some();
        match reason {
            RefuseReason::Signature if self.own.is_some() && !has_manifest => {
                "no manifest, which --vendor requires".to_owned()
            }
            RefuseReason::Signature if has_manifest => {
                "no manifest of this file is signed by a key of --signers".to_owned()
            }
            RefuseReason::Signature if self.evidence.signature.is_none() => {
                "no signature, which --signers requires".to_owned()
            }
            RefuseReason::Signature => "not signed by a key of --signers".to_owned(),
            RefuseReason::Rollback => "a higher sequence number was accepted before".to_owned(),
            RefuseReason::WrongDevice => {
                format!("it is for another {}", self.difference().unwrap_or("device"))
            }
            RefuseReason::Expired => {
                let clock = unix_time().as_secs();
                let doubt = if clock < YOUNGER { ", which was never set" } else { "" };
                format!("its manifest has expired; the clock says {}Z{doubt}", rfc3339(clock))
            }
            _ => "refused".to_owned(),
        }
    }

    /// The first identity option that the manifest does not match. `--vendor` comes first, since a
    /// class belongs to a vendor.
    fn difference(&self) -> Option<&'static str> {
        let (own, _) = self.own.as_ref()?;
        let envelope = Envelope::read(self.evidence.manifest.as_ref()?).ok()?;
        let manifest = envelope.manifest();
        let differs = [
            ("--vendor", manifest.vendor != own.vendor),
            ("--class", manifest.class != own.class),
            ("--component", manifest.component != own.component.octets()),
        ];
        differs.into_iter().find(|(_, differs)| *differs).map(|(option, _)| option)
    }

    fn judge(&mut self, clock: u64) -> io::Result<Judgement> {
        let Evidence { file, signature, manifest } = &self.evidence;
        match (file, manifest) {
            (Some(file), Some(octets)) => {
                let before = match &mut self.own {
                    Some((_, stored)) => stored.highest()?,
                    None => None,
                };
                let own = self.own.as_ref().map(|(own, _)| own);
                Ok(by_manifest(file, octets, &self.signers, own, before.as_ref(), clock))
            }
            _ => {
                let signed = file.zip(*signature);
                let holds = |key: &VerifyingKey| signed.is_some_and(|(file, by)| key.has_signed(&file, &by));
                let admitted = self.own.is_none() && self.signers.any(holds);
                Ok(if admitted { Ok(None) } else { Err(RefuseReason::Signature) })
            }
        }
    }
}

fn by_manifest(
    file: &FileDigest,
    octets: &[u8],
    signers: &Signers,
    own: Option<&OwnDevice>,
    before: Option<&Highest>,
    clock: u64,
) -> Judgement {
    let signed = Envelope::read(octets).ok().filter(|it| signers.any(|key| it.is_signed_by(key)));
    let envelope = signed.ok_or(RefuseReason::Signature)?;
    let manifest = envelope.manifest();
    let device = own.map(|OwnDevice { vendor, class, component }| Device {
        vendor: *vendor,
        class: *class,
        component: component.octets(),
    });
    manifest.admits(file, device.as_ref(), before, if_set(clock))?;
    Ok(Some(Highest { sequence: manifest.sequence, sha256: file.sha256 }))
}

#[cfg(test)]
mod tests {
    use anabranch_secure::SigningKey;
    use anabranch_secure::manifest::Manifest;

    use super::*;

    const FILE: FileDigest = FileDigest { length: 3, sha256: [7; 32] };

    fn signed(own: &OwnDevice, use_before: Option<u64>) -> Bytes {
        let OwnDevice { vendor, class, component } = own;
        let component = component.octets();
        let (vendor, class) = (*vendor, *class);
        let manifest = Manifest { sequence: 1, vendor, class, component, file: FILE, use_before };
        manifest.sign(&SigningKey::from_octets([7; 32])).into()
    }

    /// The clock of a device without a battery starts in 1970.
    #[test]
    fn a_clock_that_was_never_set_admits_no_manifest_that_expires() {
        let own = OwnDevice::of("example.com", "sensor");
        let signers = Signers::new(vec![SigningKey::from_octets([7; 32]).verifying()]);
        let admits = |use_before, clock| {
            let octets = signed(&own, use_before);
            by_manifest(&FILE, &octets, &signers, Some(&own), None, clock).map(drop)
        };
        for clock in [0, 1, 86_400, YOUNGER - 1] {
            for end in [1_000_000_000, u64::MAX] {
                assert_eq!(admits(Some(end), clock), Err(RefuseReason::Expired), "{clock}");
            }
            assert_eq!(admits(None, clock), Ok(()), "what never expires needs no clock");
        }
        assert_eq!(admits(Some(YOUNGER + 1), YOUNGER), Ok(()));
        assert_eq!(admits(Some(YOUNGER), YOUNGER), Err(RefuseReason::Expired));
    }

    #[test]
    fn nobody_who_is_left_is_not_everybody() {
        let own = OwnDevice::of("example.com", "sensor");
        let signers = Signers::new(vec![SigningKey::from_octets([7; 32]).verifying()]);
        let octets = signed(&own, None);
        let admits = || by_manifest(&FILE, &octets, &signers, Some(&own), None, YOUNGER).map(drop);
        assert_eq!(admits(), Ok(()));
        assert_eq!(signers.set(Vec::new()), Trust::Nobody);
        assert_eq!(admits(), Err(RefuseReason::Signature));
    }
}
