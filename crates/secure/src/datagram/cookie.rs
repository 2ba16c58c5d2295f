//! Cookies: they prove that a sender receives at its address, without state at the sink.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use super::{COOKIE, is_equal};
use crate::noise::hmac;
use crate::octets::{KEY, NoEntropy};
use crate::small::Entropy;

/// Lifetime of a key. The previous key remains valid.
const LIFETIME: Duration = Duration::from_secs(120);

/// The keys of cookies.
#[derive(Debug)]
pub(super) struct Cookies {
    keys: [[u8; KEY]; 2],
    since: Duration,
}

impl Cookies {
    pub(super) fn new(now: Duration, entropy: Entropy) -> Result<Self, NoEntropy> {
        let mut keys = [[0; KEY]; 2];
        entropy(&mut keys[0])?;
        entropy(&mut keys[1])?;
        Ok(Self { keys, since: now })
    }

    /// Replaces keys that are too old. Without entropy the old ones stay, since no cookies are
    /// worse than old ones.
    pub(super) fn renew(&mut self, now: Duration, entropy: Entropy) {
        let mut key = [0; KEY];
        let age = now.saturating_sub(self.since);
        if age >= LIFETIME && entropy(&mut key).is_ok() {
            // After a pause the last key is too old to be the previous one.
            let previous = if age < 2 * LIFETIME { self.keys[0] } else { key };
            (self.keys, self.since) = ([key, previous], now);
        }
    }

    pub(super) fn cookie(&self, from: SocketAddr, number: u32) -> [u8; COOKIE] {
        made(&self.keys[0], from, number)
    }

    pub(super) fn is_valid(&self, cookie: &[u8], from: SocketAddr, number: u32) -> bool {
        self.keys.iter().any(|key| is_equal(&made(key, from, number), cookie))
    }
}

fn made(key: &[u8; KEY], from: SocketAddr, number: u32) -> [u8; COOKIE] {
    let ip = match from.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut place = [0; 6];
    place[..2].copy_from_slice(&from.port().to_be_bytes());
    place[2..].copy_from_slice(&number.to_be_bytes());
    let mut cookie = [0; COOKIE];
    cookie.copy_from_slice(&hmac(key, [&ip.octets(), &place])[..COOKIE]);
    cookie
}
