//! Headers of images for the boot loader MCUboot, and a check that an image is complete: its
//! lengths and its SHA-256.
//!
//! An image consists of a header, the code, optional protected type-length-value entries (covered
//! by the hash), and unprotected entries: the hash itself and signatures, which the boot loader
//! checks. All numbers are little-endian (MCUboot, `bootutil/image.h`).

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};

use sha2::{Digest, Sha256};

/// First four bytes of an image (MCUboot, `IMAGE_MAGIC`).
const MAGIC: u32 = 0x96f3_b83d;
/// Length of the header's defined fields, in bytes.
const HEADER: usize = 32;
/// Magic number in front of protected entries, and of unprotected ones.
const PROTECTED: u16 = 0x6908;
const UNPROTECTED: u16 = 0x6907;
/// Length of the magic number and total length in front of entries, and of the type and length in
/// front of each value, in bytes.
const HEAD: usize = 4;
/// Type of the entry with the SHA-256 of the image.
const SHA256: u16 = 0x10;
/// Flags of encrypted images, whose hash is that of the plaintext.
const ENCRYPTED: u32 = 0x4 | 0x8;
/// Limit on the length of all entries of one kind, in bytes: the length has 16 bits.
const MOST: usize = 1 << 16;

/// Version of an image. Ordered: a later version is greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Version {
    major: u8,
    minor: u8,
    revision: u16,
    build: u32,
}

impl Version {
    /// The version as one number; a later version has a higher number.
    pub(crate) fn number(self) -> u64 {
        u64::from(self.major) << 56
            | u64::from(self.minor) << 48
            | u64::from(self.revision) << 32
            | u64::from(self.build)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}+{}", self.major, self.minor, self.revision, self.build)
    }
}

/// A complete image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Image {
    pub(crate) version: Version,
    /// Number of bytes that the hash covers, and the length of the protected entries among them.
    hashed: u64,
    protected: u64,
}

/// Why a file is not a complete image.
#[derive(Debug)]
pub(crate) enum BadImage {
    /// The file cannot be read.
    Read(io::Error),
    /// The file is invalid for this reason.
    Not(&'static str),
}

impl From<io::Error> for BadImage {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Not("shorter than its header says"),
            _ => Self::Read(error),
        }
    }
}

impl fmt::Display for BadImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "cannot be read: {error}"),
            Self::Not(what) => write!(f, "not a complete MCUboot image: {what}"),
        }
    }
}

/// Whether a file begins like an image. Afterwards the file is positioned at its start.
pub(crate) fn is_image(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    file.rewind()?;
    let mut magic = Vec::new();
    file.take(4).read_to_end(&mut magic)?;
    file.rewind()?;
    Ok(magic == MAGIC.to_le_bytes())
}

/// Checks that a file of `length` bytes is a complete image: the lengths of its header, and the
/// SHA-256 among its entries.
pub(crate) fn check(file: &mut (impl Read + Seek), length: u64) -> Result<Image, BadImage> {
    let image = header(file)?;
    // The protected entries, which the hash covers, must end where the header says.
    if image.protected > 0 {
        file.seek(SeekFrom::Start(image.hashed - image.protected))?;
        if entries(file, PROTECTED)?.len() as u64 + HEAD as u64 != image.protected {
            return Err(BadImage::Not("the length of the protected entries differs from the header"));
        }
    }
    file.seek(SeekFrom::Start(image.hashed))?;
    let unprotected = entries(file, UNPROTECTED)?;
    if image.hashed + (HEAD + unprotected.len()) as u64 != length {
        return Err(BadImage::Not("longer than its header says"));
    }
    let said = value(&unprotected, SHA256)?;
    file.rewind()?;
    let mut sha256 = Sha256::new();
    let mut left = file.take(image.hashed);
    let mut piece = vec![0; 64 << 10];
    loop {
        match left.read(&mut piece)? {
            0 => break,
            n => sha256.update(&piece[..n]),
        }
    }
    if sha256.finalize()[..] != *said {
        return Err(BadImage::Not("SHA-256 does not match the content"));
    }
    Ok(image)
}

/// Reads the header only.
pub(crate) fn header(file: &mut (impl Read + Seek)) -> Result<Image, BadImage> {
    if !is_image(file)? {
        return Err(BadImage::Not("no magic number 0x96f3b83d at the start"));
    }
    let mut octets = [0; HEADER];
    file.read_exact(&mut octets)?;
    let short = |at: usize| u16::from_le_bytes([octets[at], octets[at + 1]]);
    let long = |at: usize| u32::from_le_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]);
    let (header, protected, size) = (short(8), short(10), long(12));
    if usize::from(header) < HEADER {
        return Err(BadImage::Not("the header is too short"));
    }
    if long(16) & ENCRYPTED != 0 {
        return Err(BadImage::Not("encrypted: only the boot loader can check it"));
    }
    let version = Version { major: octets[20], minor: octets[21], revision: short(22), build: long(24) };
    let protected = u64::from(protected);
    Ok(Image { version, hashed: u64::from(header) + u64::from(size) + protected, protected })
}

/// Reads the entries at the current position, which must begin with `magic`.
fn entries(file: &mut impl Read, magic: u16) -> Result<Vec<u8>, BadImage> {
    let mut head = [0; HEAD];
    file.read_exact(&mut head)?;
    let total = usize::from(u16::from_le_bytes([head[2], head[3]]));
    if u16::from_le_bytes([head[0], head[1]]) != magic || !(HEAD..MOST).contains(&total) {
        return Err(BadImage::Not("no entries at the position in the header"));
    }
    let mut entries = vec![0; total - HEAD];
    file.read_exact(&mut entries)?;
    Ok(entries)
}

/// The value of the entry of this kind, which must occur exactly once.
fn value(mut entries: &[u8], kind: u16) -> Result<&[u8], BadImage> {
    let mut found = None;
    while let Some((head, rest)) = entries.split_first_chunk::<HEAD>() {
        let length = usize::from(u16::from_le_bytes([head[2], head[3]]));
        let (value, rest) = rest.split_at_checked(length).ok_or(BadImage::Not("an entry is too long"))?;
        if u16::from_le_bytes([head[0], head[1]]) == kind && found.replace(value).is_some() {
            return Err(BadImage::Not("two SHA-256 entries"));
        }
        entries = rest;
    }
    match found {
        Some(value) if entries.is_empty() => Ok(value),
        Some(_) => Err(BadImage::Not("an entry is too short")),
        None => Err(BadImage::Not("no SHA-256 entry")),
    }
}

#[cfg(test)]
pub(crate) mod tests;
