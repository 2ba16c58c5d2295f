//! Bytes as text (RFC 4648, section 4).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 with padding.
pub(super) fn base64(octets: &[u8]) -> String {
    let mut text = String::with_capacity(octets.len().div_ceil(3) * 4);
    for group in octets.chunks(3) {
        let word =
            group.iter().fold(0_u32, |word, octet| word << 8 | u32::from(*octet)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = ALPHABET[(word >> (18 - 6 * place) & 0x3f) as usize];
            text.push(if place > group.len() { '=' } else { digit.into() });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn rfc_4648_section_10() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded, "{plain}");
        }
    }
}
