//! What clients of a proxy say: SOCKS version 5 (RFC 1928) and the method CONNECT of HTTP (RFC 9110
//! section 9.3.6), as pure functions over the bytes that have arrived.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Destination of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// An address.
    Address(SocketAddr),
    /// A host name, which is still to be resolved, and a port.
    Name(String, u16),
}

impl Target {
    /// Reads `HOST:PORT`, in which an IPv6 address has brackets. The port is not 0.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        // `u16` would accept a sign.
        let digits = (1..=5).contains(&port.len()) && port.bytes().all(|octet| octet.is_ascii_digit());
        let port = port.parse().ok().filter(|port| digits && *port != 0)?;
        match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(v6) => Some(Self::Address(SocketAddr::new(IpAddr::V6(v6.parse().ok()?), port))),
            None => Self::of_host(host, port),
        }
    }

    /// A host name, or an IPv4 address as text.
    fn of_host(host: &str, port: u16) -> Option<Self> {
        if let Ok(address) = host.parse() {
            return Some(Self::Address(SocketAddr::new(IpAddr::V4(address), port)));
        }
        let plain = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_');
        let fits = (1..=LONGEST_NAME).contains(&host.len()) && host.bytes().all(plain);
        fits.then(|| Self::Name(host.to_owned(), port))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

/// A part of a dialogue: complete with its length in bytes, or more bytes are needed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parsed<T> {
    /// The part, and its length in bytes.
    Done(T, usize),
    /// More bytes are needed.
    More,
}

/// Why a client of SOCKS is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SocksError {
    /// The first byte is not 5.
    #[error("the client does not speak SOCKS version 5")]
    Version,
    /// The client does not offer the method "no authentication".
    #[error("the client requires authentication")]
    Method,
    /// The command is not CONNECT.
    #[error("the command is not CONNECT")]
    Command,
    /// The type of the address is unknown.
    #[error("unknown type of address")]
    AddressType,
    /// The name is no host name, or the port is 0.
    #[error("the destination is no host and port")]
    Destination,
}

impl SocksError {
    /// The answer to the client; empty if there is none.
    pub fn answer(self) -> Vec<u8> {
        match self {
            Self::Version => Vec::new(),
            Self::Method => vec![SOCKS_VERSION, NO_METHOD],
            Self::Command => Reply::CommandNotSupported.encode().to_vec(),
            Self::AddressType => Reply::AddressTypeNotSupported.encode().to_vec(),
            Self::Destination => Reply::Failure.encode().to_vec(),
        }
    }
}

/// Reads the first message of a client (RFC 1928 section 3). [`SOCKS_METHOD`] answers it.
///
/// # Errors
/// Another version, or no method without authentication.
pub fn socks_greeting(octets: &[u8]) -> Result<Parsed<()>, SocksError> {
    match octets {
        [version, ..] if *version != SOCKS_VERSION => Err(SocksError::Version),
        [_, number, rest @ ..] => match rest.get(..usize::from(*number)) {
            Some(methods) if methods.contains(&0) => Ok(Parsed::Done((), 2 + methods.len())),
            Some(_) => Err(SocksError::Method),
            None => Ok(Parsed::More),
        },
        _ => Ok(Parsed::More),
    }
}

/// Reads a request (RFC 1928 section 4).
///
/// # Errors
/// The request is not CONNECT to a host.
pub fn socks_request(octets: &[u8]) -> Result<Parsed<Target>, SocksError> {
    if octets.first().is_some_and(|version| *version != SOCKS_VERSION) {
        return Err(SocksError::Version);
    }
    let [_, command, _, kind, rest @ ..] = octets else { return Ok(Parsed::More) };
    if *command != 1 {
        return Err(SocksError::Command);
    }
    let len = match *kind {
        1 => 4,
        3 => match rest.first() {
            Some(len) => 1 + usize::from(*len),
            None => return Ok(Parsed::More),
        },
        4 => 16,
        _ => return Err(SocksError::AddressType),
    };
    let (Some(address), Some(port)) = (rest.get(..len), rest.get(len..len + 2)) else {
        return Ok(Parsed::More);
    };
    let port = u16::from_be_bytes([port[0], port[1]]);
    let ip = match *kind {
        1 => address.first_chunk::<4>().map(|octets| IpAddr::V4(Ipv4Addr::from(*octets))),
        4 => address.first_chunk::<16>().map(|octets| IpAddr::V6(Ipv6Addr::from(*octets))),
        _ => None,
    };
    let target = match ip {
        Some(ip) => Some(Target::Address(SocketAddr::new(ip.to_canonical(), port))),
        None => std::str::from_utf8(&address[1..]).ok().and_then(|name| name_or_address(name, port)),
    };
    match target {
        Some(target) if port != 0 => Ok(Parsed::Done(target, 4 + len + 2)),
        _ => Err(SocksError::Destination),
    }
}

/// Some clients send an address of either family as a name.
fn name_or_address(name: &str, port: u16) -> Option<Target> {
    match name.parse::<Ipv6Addr>() {
        Ok(v6) => Some(Target::Address(SocketAddr::new(IpAddr::V6(v6), port))),
        Err(_) => Target::of_host(name, port),
    }
}

/// Replies of SOCKS (RFC 1928 section 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The connection is open.
    Succeeded = 0,
    /// General failure.
    Failure = 1,
    /// The client may not go there.
    NotAllowed = 2,
    /// No path leads there.
    NetworkUnreachable = 3,
    /// The name does not resolve, or the host does not answer.
    HostUnreachable = 4,
    /// The host refuses the connection.
    Refused = 5,
    /// The command is not CONNECT.
    CommandNotSupported = 7,
    /// The type of the address is unknown.
    AddressTypeNotSupported = 8,
}

impl Reply {
    /// The message. Its address is 0.0.0.0:0: a connection may have several.
    pub fn encode(self) -> [u8; 10] {
        [SOCKS_VERSION, self as u8, 0, 1, 0, 0, 0, 0, 0, 0]
    }

    /// The response of an HTTP proxy with the same meaning.
    pub fn http(self) -> &'static str {
        match self {
            Self::Succeeded => "HTTP/1.1 200 Connection established\r\n\r\n",
            Self::NetworkUnreachable | Self::HostUnreachable => {
                "HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            }
            Self::NotAllowed => "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            _ => "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        }
    }
}

/// Why a client of HTTP is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HttpError {
    /// The head is no request of HTTP/1.
    #[error("not an HTTP/1.1 request")]
    Malformed,
    /// The method is not CONNECT.
    #[error("the method is not CONNECT")]
    Method,
    /// The head is longer than [`LONGEST_HEAD`].
    #[error("the head of the request is too long")]
    TooLong,
}

impl HttpError {
    /// The response.
    pub fn answer(self) -> &'static str {
        match self {
            Self::Malformed => "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            Self::Method => {
                "HTTP/1.1 405 Method Not Allowed\r\nAllow: CONNECT\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            }
            Self::TooLong => {
                "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            }
        }
    }
}

/// Reads the head of a CONNECT request (RFC 9110 section 9.3.6, RFC 9112 section 3.2.3). Its fields
/// do not matter.
///
/// # Errors
/// The request is malformed, has another method, or is too long.
pub fn connect_request(octets: &[u8]) -> Result<Parsed<Target>, HttpError> {
    let head = &octets[..octets.len().min(LONGEST_HEAD)];
    let Some(end) = head.windows(4).position(|end| end == b"\r\n\r\n") else {
        return if head.len() == LONGEST_HEAD { Err(HttpError::TooLong) } else { Ok(Parsed::More) };
    };
    let line = head[..end].split(|octet| *octet == b'\r').next().unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| HttpError::Malformed)?;
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(HttpError::Malformed);
    };
    if !version.starts_with("HTTP/1.") || method.is_empty() {
        return Err(HttpError::Malformed);
    }
    if method != "CONNECT" {
        return Err(HttpError::Method);
    }
    let target = Target::parse(target).ok_or(HttpError::Malformed)?;
    Ok(Parsed::Done(target, end + 4))
}

const SOCKS_VERSION: u8 = 5;
const NO_METHOD: u8 = 0xff;
/// The answer to a greeting: no authentication.
pub const SOCKS_METHOD: [u8; 2] = [SOCKS_VERSION, 0];
/// Largest head of a CONNECT request in bytes.
pub const LONGEST_HEAD: usize = 8 << 10;
/// Largest host name in bytes (RFC 1035 section 2.3.4).
const LONGEST_NAME: usize = 253;

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Target {
        Target::parse(text).unwrap()
    }

    /// Each prefix of a message needs more bytes, and each longer input gives the same.
    fn whole<E: std::fmt::Debug + PartialEq>(
        octets: &[u8],
        parse: impl Fn(&[u8]) -> Result<Parsed<Target>, E>,
        target: &Target,
    ) {
        for len in 0..octets.len() {
            assert_eq!(parse(&octets[..len]), Ok(Parsed::More), "{len}");
        }
        let done = Ok(Parsed::Done(target.clone(), octets.len()));
        assert_eq!(parse(octets), done);
        assert_eq!(parse(&[octets, b"rest"].concat()), done);
    }

    #[test]
    fn socks_requests_of_all_types_of_address() {
        let v6: Ipv6Addr = "2001:db8::1".parse().unwrap();
        let mapped = Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped();
        for (kind, address, target) in [
            (1, vec![192, 0, 2, 1], "192.0.2.1:443"),
            (3, b"\x0bexample.org".to_vec(), "example.org:443"),
            (3, b"\x09192.0.2.1".to_vec(), "192.0.2.1:443"),
            (3, b"\x0b2001:db8::1".to_vec(), "[2001:db8::1]:443"),
            (4, v6.octets().to_vec(), "[2001:db8::1]:443"),
            (4, mapped.octets().to_vec(), "192.0.2.1:443"),
        ] {
            let request = [&[5, 1, 0, kind][..], &address, &443_u16.to_be_bytes()].concat();
            whole(&request, socks_request, &name(target));
        }
    }

    #[test]
    fn what_socks_refuses_has_its_reply() {
        use SocksError::{AddressType, Command, Destination, Method, Version};
        assert_eq!(socks_greeting(&[5, 2, 2, 0]), Ok(Parsed::Done((), 4)));
        assert_eq!(socks_greeting(&[5, 2, 2]), Ok(Parsed::More));
        assert_eq!(socks_greeting(&[5, 1, 2]), Err(Method));
        assert_eq!(socks_greeting(&[4, 1]), Err(Version));
        for (request, error, reply) in [
            (&[5, 2, 0, 1, 1, 2, 3, 4, 0, 80][..], Command, Some(7)),
            (&[5, 1, 0, 2], AddressType, Some(8)),
            (&[5, 1, 0, 1, 1, 2, 3, 4, 0, 0], Destination, Some(1)),
            (&[5, 1, 0, 3, 0, 0, 80], Destination, Some(1)),
            (&[5, 1, 0, 3, 3, b'a', b'/', b'b', 0, 80], Destination, Some(1)),
            (&[4, 1], Version, None),
        ] {
            assert_eq!(socks_request(request), Err(error));
            assert_eq!(error.answer().get(1).copied(), reply);
        }
    }

    #[test]
    fn connect_takes_authorities_and_nothing_else() {
        for target in ["example.org:443", "192.0.2.1:80", "[2001:db8::1]:443"] {
            let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
            whole(request.as_bytes(), connect_request, &name(target));
        }
        for (request, error) in [
            ("GET http://example.org/ HTTP/1.1\r\n\r\n", HttpError::Method),
            ("CONNECT example.org HTTP/1.1\r\n\r\n", HttpError::Malformed),
            ("CONNECT example.org:0 HTTP/1.1\r\n\r\n", HttpError::Malformed),
            ("CONNECT example.org:+80 HTTP/1.1\r\n\r\n", HttpError::Malformed),
            ("CONNECT exa/mple:80 HTTP/1.1\r\n\r\n", HttpError::Malformed),
            ("CONNECT  example.org:80 HTTP/1.1\r\n\r\n", HttpError::Malformed),
            ("CONNECT example.org:80 HTTP/2\r\n\r\n", HttpError::Malformed),
            ("\u{0}\r\n\r\n", HttpError::Malformed),
        ] {
            assert_eq!(connect_request(request.as_bytes()), Err(error), "{request:?}");
        }
        let long = [b"CONNECT a:1 HTTP/1.1\r\nX: ".to_vec(), vec![b'x'; LONGEST_HEAD]].concat();
        assert_eq!(connect_request(&long), Err(HttpError::TooLong));
    }
}
