//! The node's side: whom it takes files from, and the keys of the transfers that they have asked for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_wire::set::TransferId;

use crate::keys::{PublicKey, SecretKey, SharedKey};
use crate::record::TransferKeys;

/// Transfers whose keys are kept, those last asked for: one that runs and a few that wait.
const KEPT: usize = 32;

/// Whom a node takes files from.
#[derive(Clone, Debug, Default)]
pub struct WhoMay {
    /// Who we are; without it nobody can come by a public key.
    pub own: Option<SecretKey>,
    /// Senders that are known.
    pub senders: Vec<PublicKey>,
    /// A key that a sender may have instead.
    pub shared: Option<SharedKey>,
}

/// What all streams of a node share.
#[derive(Debug)]
pub struct NodeKeys {
    pub(crate) who: WhoMay,
    transfers: Mutex<VecDeque<(TransferId, Arc<TransferKeys>)>>,
}

impl NodeKeys {
    /// For those who may.
    pub fn new(who: WhoMay) -> Arc<Self> {
        Arc::new(Self { who, transfers: Mutex::default() })
    }

    /// The keys of a transfer that has been asked for.
    pub fn of(&self, transfer: TransferId) -> Option<Arc<TransferKeys>> {
        let transfers = self.transfers.lock().unwrap_or_else(PoisonError::into_inner);
        transfers.iter().find(|(id, _)| *id == transfer).map(|(_, keys)| Arc::clone(keys))
    }

    /// Somebody asks for a transfer. Its sessions use these keys from now on; false if the transfer is somebody else's.
    pub(crate) fn bind(&self, transfer: TransferId, keys: &Arc<TransferKeys>) -> bool {
        let mut transfers = self.transfers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = transfers.iter().position(|(id, _)| *id == transfer) {
            if transfers[index].1.peer() != keys.peer() {
                return false;
            }
            transfers.remove(index);
        }
        transfers.push_back((transfer, Arc::clone(keys)));
        if transfers.len() > KEPT {
            transfers.pop_front();
        }
        true
    }
}
