//! What a node is, and which files it admits: by a signature, or by a manifest.

use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use anabranch_core::set::RefuseReason;
use anabranch_net::set::{Offer, unix_time};
use anabranch_secure::manifest::{Device, Envelope, Highest, NotAdmitted, Uuid};
use anabranch_secure::{FileDigest, Signature, VerifyingKey};

use super::sequence::{Stored, highest, raise};
use crate::error::Error;
use crate::manifest::identifier::{Component, class, vendor};

/// Options of `node` about the device that it is.
#[derive(Debug, clap::Args)]
pub(super) struct OfDevice {
    /// Take only files with a manifest that one of --signers has signed for devices of this vendor: a UUID, or a domain
    /// name that stands for one. A signature alone is no longer enough
    #[arg(long, value_name = "UUID|DOMAIN", requires_all = ["class", "signers"])]
    vendor: Option<String>,
    /// The class of this device among those of its vendor: a UUID, or a name that stands for one
    #[arg(long, value_name = "UUID|NAME", requires = "vendor")]
    class: Option<String>,
    /// Which part of the device is received here. Each has sequence numbers of its own, in the folder of --state
    #[arg(long, value_name = "NAME", default_value = "firmware")]
    component: Component,
    /// Take only images for the boot loader MCUboot that are whole, and not of a lower version than the one in --out
    #[arg(long)]
    pub(super) mcuboot: bool,
}

impl OfDevice {
    /// Which device it is, if it has been said.
    pub(super) fn device(&self) -> Result<Option<OwnDevice>, Error> {
        let (Some(maker), Some(kind)) = (&self.vendor, &self.class) else { return Ok(None) };
        let vendor = vendor(maker)?;
        Ok(Some(OwnDevice { vendor, class: class(vendor, kind), component: self.component.clone() }))
    }
}

/// A device that knows what it is.
#[derive(Clone, Debug)]
pub(super) struct OwnDevice {
    vendor: Uuid,
    class: Uuid,
    component: Component,
}

#[cfg(test)]
impl OwnDevice {
    pub(super) fn of(maker: &str, kind: &str) -> Self {
        let vendor = vendor(maker).expect("a domain");
        Self { vendor, class: class(vendor, kind), component: "firmware".parse().expect("a name") }
    }

    pub(super) const fn identifiers(&self) -> (Uuid, Uuid) {
        (self.vendor, self.class)
    }
}

/// Whose signatures a node wants, which may change while it runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Signers(Arc<RwLock<Vec<VerifyingKey>>>);

impl Signers {
    pub(super) fn new(signers: Vec<VerifyingKey>) -> Self {
        Self(Arc::new(RwLock::new(signers)))
    }

    /// From the next file on. A node that wants signatures does not stop doing so.
    pub(super) fn set(&self, signers: Vec<VerifyingKey>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = signers;
    }

    /// Whether there are none, or `has_signed` is true of one.
    fn any(&self, has_signed: impl Fn(&VerifyingKey) -> bool) -> bool {
        let signers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        signers.is_empty() || signers.iter().any(has_signed)
    }
}

/// Decides which files are admitted.
#[derive(Debug, Default)]
pub(super) struct Admission {
    pub(super) signers: Signers,
    own: Option<(OwnDevice, Stored)>,
    /// What becomes the highest number when the present file is there.
    next: Option<Highest>,
}

impl Admission {
    /// Wants manifests for this device. The numbers of those before are in `state`.
    ///
    /// # Errors
    /// Nothing can be stored there.
    pub(super) fn for_device(&mut self, device: OwnDevice, state: Option<&Path>) -> Result<(), Error> {
        let stored = Stored::open(state, &device.component)?;
        self.own = Some((device, stored));
        Ok(())
    }

    /// Whether a file may come; why not.
    pub(super) fn of(&mut self, offer: &Offer) -> io::Result<Result<(), RefuseReason>> {
        self.next = None;
        let digest = offer.file.map(|file| FileDigest { length: offer.length, sha256: file.digest });
        match (digest, &offer.manifest) {
            (Some(digest), Some(manifest)) => self.by_manifest(&digest, manifest),
            _ => {
                let signature = offer.file.and_then(|file| file.signature).map(Signature);
                let signed = digest.zip(signature);
                let holds = |key: &VerifyingKey| signed.is_some_and(|(file, by)| key.has_signed(&file, &by));
                let wanted = self.own.is_none() && self.signers.any(holds);
                Ok(if wanted { Ok(()) } else { Err(RefuseReason::Signature) })
            }
        }
    }

    fn by_manifest(&mut self, file: &FileDigest, octets: &[u8]) -> io::Result<Result<(), RefuseReason>> {
        let signed = Envelope::read(octets).ok().filter(|it| self.signers.any(|key| it.is_signed_by(key)));
        let Some(envelope) = signed else { return Ok(Err(RefuseReason::Signature)) };
        let manifest = envelope.manifest();
        let (device, before) = match &mut self.own {
            Some((own, stored)) => {
                let OwnDevice { vendor, class, component } = own;
                let device = Device { vendor: *vendor, class: *class, component: component.octets() };
                (Some(device), highest(stored)?)
            }
            None => (None, None),
        };
        let admitted = manifest.admits(file, device.as_ref(), before.as_ref(), unix_time().as_secs());
        self.next = Some(Highest { sequence: manifest.sequence, sha256: file.sha256 });
        Ok(admitted.map_err(|why| match why {
            NotAdmitted::OtherFile => RefuseReason::Signature,
            NotAdmitted::OtherDevice => RefuseReason::WrongDevice,
            NotAdmitted::Rollback => RefuseReason::Rollback,
            NotAdmitted::Expired => RefuseReason::Expired,
        }))
    }

    /// The present file is whole, and goes where it shall go next.
    pub(super) fn raise(&mut self) -> io::Result<()> {
        match (&mut self.own, &self.next) {
            (Some((_, stored)), Some(next)) => raise(stored, next),
            _ => Ok(()),
        }
    }
}
