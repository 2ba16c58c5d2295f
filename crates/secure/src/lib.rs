//! Who may, and what nobody else can read: keys, Noise handshakes, records and signatures for SET over networks that nobody
//! has to trust.
//!
//! Sans-IO: octets in, octets out. There is no clock, no socket and no file here; entropy is the host's. A [`Guard`] stands
//! between the socket of one stream and the machine that it belongs to. The machine speaks plaintext and knows nothing of it.
//!
//! What is on the wire, octet by octet: `docs/set-security.md`.

mod frames;
mod gateway;
mod greeting;
mod guard;
mod keys;
mod node;
mod octets;
mod record;
mod roster;
mod sender;
mod signature;

pub use self::gateway::Doorkeeper;
pub use self::guard::{Guard, Refused};
pub use self::keys::{BadKey, KeyText, PublicKey, SecretKey, SharedKey};
pub use self::node::{NodeKeys, WhoMay};
pub use self::octets::NoEntropy;
pub use self::record::{MAX_PLAIN, OVERHEAD, TransferKeys};
pub use self::roster::{Ledger, Peer};
pub use self::sender::{Acquaintance, SenderKeys};
pub use self::signature::{BadSignature, FileDigest, Signature, SigningKey, VerifyingKey};
