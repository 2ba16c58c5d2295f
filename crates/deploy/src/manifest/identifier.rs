//! Identifiers of devices: UUIDs, and the names from which they are derived.

use std::str::FromStr;

use anabranch_secure::manifest::{MAX_COMPONENT, Uuid};
use sha1::{Digest, Sha1};

use crate::error::Error;
use crate::output::hex;

/// Namespace of domain names (RFC 9562, section 6.6).
const DNS: Uuid =
    [0x6b, 0xa7, 0xb8, 0x10, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8];

/// Parses a vendor: a UUID, or a domain name from which it is derived (draft-ietf-suit-manifest,
/// section 8.4.8.2).
///
/// # Errors
/// The text is neither.
pub(crate) fn vendor(text: &str) -> Result<Uuid, Error> {
    let is_domain =
        || text.contains('.') && text.bytes().all(|c| c.is_ascii_alphanumeric() || b".-".contains(&c));
    let named = || is_domain().then(|| of_name(DNS, text.to_ascii_lowercase().as_bytes()));
    uuid(text).or_else(named).ok_or_else(|| {
        Error::input(format!("--vendor {text}: neither a UUID nor a domain name"))
            .with_hint("for instance `example.com`")
    })
}

/// Parses a class of devices of `vendor`: a UUID, or a name from which it is derived.
///
/// # Errors
/// The text is empty, as an unset shell variable would be.
pub(crate) fn class(vendor: Uuid, text: &str) -> Result<Uuid, Error> {
    if text.trim().is_empty() {
        return Err(Error::input("--class is empty").with_hint("give a UUID or a name, such as `sensor`"));
    }
    Ok(uuid(text).unwrap_or_else(|| of_name(vendor, text.as_bytes())))
}

/// Formats a UUID (RFC 9562, section 4).
pub(crate) fn text(uuid: Uuid) -> String {
    let digits = hex(&uuid);
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

fn uuid(said: &str) -> Option<Uuid> {
    let digits: String = said.chars().filter(|c| *c != '-').collect();
    let uuid = u128::from_str_radix(&digits, 16).ok()?.to_be_bytes();
    (text(uuid) == said.to_ascii_lowercase()).then_some(uuid)
}

/// A UUID of version 5 (RFC 9562, section 5.5).
fn of_name(namespace: Uuid, name: &[u8]) -> Uuid {
    let hash = Sha1::new().chain_update(namespace).chain_update(name).finalize();
    let mut uuid: Uuid = *hash.first_chunk().expect("SHA-1 has 20 octets");
    uuid[6] = uuid[6] & 0x0f | 0x50;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// Name of a component. It is part of a file name of the node, so its characters are restricted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Component(String);

impl Component {
    pub(crate) fn octets(&self) -> &[u8] {
        self.0.as_bytes()
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }
}

impl FromStr for Component {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let may = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
        if (1..=MAX_COMPONENT).contains(&text.len()) && text.bytes().all(may) {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("a name has 1 to {MAX_COMPONENT} letters, digits, dots, hyphens and underscores"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Python's `uuid` derives the same values. The first name is the vendor of the draft's
    /// examples.
    #[test]
    fn names_stand_for_the_uuids_of_other_programs() {
        let example = vendor("arm.com").unwrap();
        assert_eq!(text(example), "fa6b4a53-d5ad-5fdf-be9d-e663e4d41ffe");
        assert_eq!(text(class(example, "sensor").unwrap()), "8feebd11-8cca-5378-a716-603b294e91d8");
        assert_eq!(vendor("Example.COM").unwrap(), vendor("example.com").unwrap());
        assert_eq!(vendor(&text(example)).unwrap(), example);
        assert_eq!(class(example, &text(example).to_uppercase()).unwrap(), example);
        assert!(class(example, " ").is_err());
        for wrong in [
            "",
            "example",
            "ex ample.com",
            "fa6b4a53d5ad5fdfbe9de663e4d41ffe",
            "+a6b4a53-d5ad-5fdf-be9d-e663e4d41ffe",
        ] {
            assert!(vendor(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_component_is_a_name_of_a_file() {
        for right in ["firmware", "radio-2", "a.b_c"] {
            assert_eq!(right.parse(), Ok(Component(right.to_owned())));
        }
        for wrong in ["", "a/b", "a b", "é", &"c".repeat(MAX_COMPONENT + 1)] {
            assert!(wrong.parse::<Component>().is_err(), "{wrong}");
        }
    }
}
