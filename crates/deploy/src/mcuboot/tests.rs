use std::io::Cursor;

use super::*;

/// An image as `imgtool sign` makes it without a key.
pub(crate) fn image([major, minor, revision]: [u8; 3], code: &[u8], protected: &[u8]) -> Vec<u8> {
    let mut image = MAGIC.to_le_bytes().to_vec();
    image.extend([0; 4]);
    image.extend(64_u16.to_le_bytes());
    let protected_size = if protected.is_empty() { 0 } else { (HEAD + protected.len()) as u16 };
    image.extend(protected_size.to_le_bytes());
    image.extend((code.len() as u32).to_le_bytes());
    image.extend([0; 4]);
    image.extend([major, minor, revision, 0, 0, 0, 0, 0]);
    image.resize(64, 0);
    image.extend_from_slice(code);
    if !protected.is_empty() {
        image.extend(PROTECTED.to_le_bytes());
        image.extend(protected_size.to_le_bytes());
        image.extend_from_slice(protected);
    }
    let hash = Sha256::digest(&image);
    for short in [UNPROTECTED, (HEAD + HEAD + 32) as u16, SHA256, 32] {
        image.extend(short.to_le_bytes());
    }
    image.extend_from_slice(&hash);
    image
}

fn checked(image: &[u8]) -> Result<Version, String> {
    check(&mut Cursor::new(image), image.len() as u64)
        .map(|image| image.version)
        .map_err(|error| error.to_string())
}

#[test]
fn no_octet_of_an_image_may_be_changed_left_out_or_added() {
    for protected in [&[][..], &[0x50, 0, 2, 0, 7, 7]] {
        let image = image([1, 2, 3], &[9; 200], protected);
        assert!(is_image(&mut Cursor::new(&image)).unwrap());
        let version = checked(&image).unwrap();
        assert_eq!((version.to_string().as_str(), version.number()), ("1.2.3+0", 0x0102_0003_0000_0000));
        for at in 0..image.len() {
            let mut changed = image.clone();
            changed[at] ^= 0x11;
            assert!(checked(&changed).is_err(), "octet {at}");
            assert!(checked(&image[..at]).is_err(), "{at} octets");
        }
        assert!(
            checked(&[&image[..], &[0xff]].concat()).unwrap_err().contains("longer than its header says")
        );
    }
    assert!(!is_image(&mut Cursor::new(b"abc")).unwrap());
}

#[test]
fn versions_follow_each_other_as_their_numbers_do() {
    let of = |major, minor, revision, build| Version { major, minor, revision, build };
    let versions = [
        of(0, 0, 0, 0),
        of(0, 0, 0, u32::MAX),
        of(0, 0, 1, 0),
        of(0, 1, 0, 0),
        of(0, 255, 0, 0),
        of(1, 0, 0, 0),
    ];
    assert!(versions.is_sorted() && versions.is_sorted_by_key(|version| version.number()));
}

#[test]
fn an_encrypted_image_is_refused_by_name() {
    let mut image = image([1, 0, 0], &[9; 20], &[]);
    image[16] = 4;
    assert!(checked(&image).unwrap_err().contains("encrypted"));
}

#[test]
fn a_short_file_that_is_no_image_is_named_by_its_beginning() {
    for octets in [&b""[..], b"text\n", &[0; 40]] {
        let said = checked(octets).unwrap_err();
        assert!(said.contains("no magic number"), "{said}");
    }
    let whole = image([1, 0, 0], &[9; 20], &[]);
    assert!(checked(&whole[..20]).unwrap_err().contains("shorter than its header says"));
}
