//! Addresses on the command line: `HOST[:PORT]`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use crate::error::Error;

/// A host name or address, with an optional port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    text: String,
    host: String,
    port: Option<u16>,
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected HOST[:PORT], as in node1, 10.0.0.1:47200 or [fd00::1]:47200";
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or(expected)?;
                (host, if after.is_empty() { None } else { Some(after.strip_prefix(':').ok_or(expected)?) })
            }
            // More than one colon: an IPv6 address without brackets, which cannot have a port.
            None if text.matches(':').count() > 1 => (text, None),
            None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        };
        if host.is_empty() {
            return Err(expected.to_owned());
        }
        // The C library takes a number for an IPv4 address: 1080 would be 0.0.4.56.
        if host.bytes().all(|octet| octet.is_ascii_digit()) {
            return Err(format!("`{host}` is a number and no host; {expected}"));
        }
        let port = port.map(|port| port.parse().map_err(|_| format!("`{port}` is not a port; {expected}")));
        Ok(Self { text: text.to_owned(), host: host.to_owned(), port: port.transpose()? })
    }
}

impl Endpoint {
    /// Resolves the host and returns its first address, with `port` as the default port.
    ///
    /// # Errors
    /// The name does not resolve.
    pub fn resolve(&self, port: u16) -> Result<SocketAddr, Error> {
        let Self { text, host, port: said } = self;
        let found = (host.as_str(), said.unwrap_or(port)).to_socket_addrs();
        found.ok().and_then(|mut all| all.next()).ok_or_else(|| {
            Error::input(format!("`{text}`: no such host"))
                .with_hint("give an address, or a name that this host can resolve")
        })
    }

    /// Resolves the host again, for a socket that sends to `present`. Returns `present` if the name
    /// has this address still, has none of its family, or does not resolve.
    pub async fn resolve_again(&self, port: u16, present: SocketAddr) -> SocketAddr {
        let Ok(found) = tokio::net::lookup_host((self.host.as_str(), self.port.unwrap_or(port))).await else {
            return present;
        };
        let all: Vec<_> = found.filter(|address| address.is_ipv4() == present.is_ipv4()).collect();
        if all.contains(&present) { present } else { all.first().copied().unwrap_or(present) }
    }

    /// The text from which it was parsed.
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_told_apart() {
        let address = |text: &str| text.parse::<Endpoint>().ok()?.resolve(7).ok().map(|a| a.to_string());
        for (text, expected) in [
            ("127.0.0.1", "127.0.0.1:7"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("::1", "[::1]:7"),
            ("[::1]", "[::1]:7"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(address(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", ":80", "[::1", "[::1]80", "host:port", "host:70000", "[]:1", "1080", "80:80"] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }
}
