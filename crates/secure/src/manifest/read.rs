//! Parses envelopes and manifests.

use sha2::{Digest, Sha256};

use super::{BadEnvelope, Envelope, MAX_COMPONENT, MAX_ENVELOPE, Manifest, Uuid, label};
use crate::signature::FileDigest;

type Read<T> = Result<T, BadEnvelope>;

/// Types of CBOR items: the high three bits of their heads.
mod major {
    pub(super) const UINT: u8 = 0;
    pub(super) const NEGATIVE: u8 = 1;
    pub(super) const BYTES: u8 = 2;
    pub(super) const TEXT: u8 = 3;
    pub(super) const ARRAY: u8 = 4;
    pub(super) const MAP: u8 = 5;
    pub(super) const TAG: u8 = 6;
}

/// The encoding of null.
const NULL: u8 = 0xf6;

/// A cursor over a sequence of CBOR items in a named part of the envelope.
///
/// `minicbor`'s decoder is not used: it accepts heads that are longer than necessary, and needs
/// twice the code size on a small node.
struct Items<'a> {
    octets: &'a [u8],
    at: usize,
    part: &'static str,
}

impl<'a> Items<'a> {
    const fn of(octets: &'a [u8], part: &'static str) -> Self {
        Self { octets, at: 0, part }
    }

    const fn malformed(&self) -> BadEnvelope {
        BadEnvelope::Malformed(self.part)
    }

    /// Type of the next item, if there is one.
    fn next_major(&self) -> Option<u8> {
        self.octets.get(self.at).map(|head| head >> 5)
    }

    /// Type and argument of the next item. The head must have the shortest encoding.
    #[inline(never)]
    fn head(&mut self) -> Option<(u8, u64)> {
        let (first, rest) = self.octets.get(self.at..)?.split_first()?;
        let short = first & 31;
        // Other values are reserved, or mean an indefinite length.
        let (n, least) = match short {
            0..=23 => (0, 0),
            24 => (1, 24),
            25 => (2, 1 << 8),
            26 => (4, 1 << 16),
            27 => (8, 1 << 32),
            _ => return None,
        };
        let argument = match n {
            0 => short.into(),
            n => rest.get(..n)?.iter().fold(0, |value: u64, octet| value << 8 | u64::from(*octet)),
        };
        self.at += 1 + n;
        // A head that is longer than necessary is not deterministic.
        (argument >= least).then_some((first >> 5, argument))
    }

    /// Argument of the next item, which must have this type.
    fn argument(&mut self, of: u8) -> Read<u64> {
        match self.head() {
            Some((major, argument)) if major == of => Ok(argument),
            _ => Err(self.malformed()),
        }
    }

    fn uint(&mut self) -> Read<u64> {
        self.argument(major::UINT)
    }

    fn int(&mut self) -> Read<i64> {
        match self.head().and_then(|(major, argument)| Some((major, i64::try_from(argument).ok()?))) {
            Some((major::UINT, value)) => Ok(value),
            Some((major::NEGATIVE, value)) => Ok(-1 - value),
            _ => Err(self.malformed()),
        }
    }

    /// Bytes of the next item, a string of this type.
    #[inline(never)]
    fn string(&mut self, of: u8) -> Read<&'a [u8]> {
        let length = self.argument(of)?;
        let rest = &self.octets[self.at..];
        let octets =
            usize::try_from(length).ok().and_then(|length| rest.get(..length)).ok_or(self.malformed())?;
        self.at += octets.len();
        Ok(octets)
    }

    fn bytes(&mut self) -> Read<&'a [u8]> {
        self.string(major::BYTES)
    }

    fn octets<const N: usize>(&mut self) -> Read<[u8; N]> {
        self.bytes()?.try_into().map_err(|_| self.malformed())
    }

    /// Skips a text, which must be valid UTF-8.
    fn text(&mut self) -> Read<()> {
        core::str::from_utf8(self.string(major::TEXT)?).map(drop).map_err(|_| self.malformed())
    }

    /// Skips suit-text, or its digest if the text was severed (section 8.6 of the draft).
    fn text_or_its_digest(&mut self) -> Read<()> {
        if self.next_major() == Some(major::BYTES) {
            return self.bytes().map(drop);
        }
        self.pair()?;
        self.int()?;
        self.bytes().map(drop)
    }

    fn array(&mut self) -> Read<u64> {
        self.argument(major::ARRAY)
    }

    fn pair(&mut self) -> Read<()> {
        if self.array()? == 2 { Ok(()) } else { Err(self.malformed()) }
    }

    fn tag(&mut self, tag: u64) -> Read<()> {
        let is = self.argument(major::TAG)?;
        if is == tag { Ok(()) } else { Err(BadEnvelope::Unsupported("tag", number(is))) }
    }

    fn null(&mut self) -> Read<()> {
        let is_null = self.octets.get(self.at) == Some(&NULL);
        self.at += 1;
        if is_null { Ok(()) } else { Err(self.malformed()) }
    }

    /// Visits each key of a map, in deterministic order.
    fn keys(&mut self, value: &mut dyn FnMut(&mut Self, u64) -> Read<()>) -> Read<()> {
        let entries = self.argument(major::MAP)?;
        let mut last = None;
        for _ in 0..entries {
            let key = self.uint()?;
            // Keys must rise: that is the deterministic order, and no key occurs twice.
            if last.is_some_and(|last| key <= last) {
                return Err(self.malformed());
            }
            last = Some(key);
            value(self, key)?;
        }
        Ok(())
    }

    fn has_more(&self) -> bool {
        self.at < self.octets.len()
    }

    fn end(&self) -> Read<()> {
        if self.has_more() { Err(self.malformed()) } else { Ok(()) }
    }
}

/// Converts a number for an error message.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Reads a SUIT_Digest with SHA-256.
fn digest(octets: &[u8]) -> Read<[u8; 32]> {
    let mut items = Items::of(octets, "a digest");
    items.pair()?;
    let algorithm = items.int()?;
    if algorithm != label::SHA256 {
        return Err(BadEnvelope::Unsupported("digest algorithm", algorithm));
    }
    let sha256 = items.octets()?;
    items.end()?;
    Ok(sha256)
}

/// Stores a value that may occur only once.
fn set<T>(place: &mut Option<T>, value: T, name: &'static str) -> Read<()> {
    if place.replace(value).is_some() { Err(BadEnvelope::Twice(name)) } else { Ok(()) }
}

pub(super) fn envelope(octets: &[u8]) -> Read<Envelope<'_>> {
    if octets.len() > MAX_ENVELOPE {
        return Err(BadEnvelope::TooLong);
    }
    let mut items = Items::of(octets, "the envelope");
    items.tag(label::ENVELOPE)?;
    let (mut authentication, mut manifest) = (None, None);
    items.keys(&mut |items, key| {
        match key {
            label::AUTHENTICATION => authentication = Some(items.bytes()?),
            label::MANIFEST => {
                let begin = items.at;
                let content = items.bytes()?;
                // The digest covers the byte string with its head.
                manifest = Some((&octets[begin..items.at], content));
            }
            // The text is not needed and may be severed; its presence is not signed.
            label::TEXT => drop(items.bytes()?),
            other => return Err(BadEnvelope::Unsupported("member of the envelope", number(other))),
        }
        Ok(())
    })?;
    items.end()?;
    let authentication = authentication.ok_or(BadEnvelope::Missing("authentication wrapper"))?;
    let (whole, content) = manifest.ok_or(BadEnvelope::Missing("manifest"))?;
    let mut items = Items::of(authentication, "the authentication wrapper");
    // The digest and at least one block.
    let blocks = match items.array()? {
        0 | 1 => return Err(BadEnvelope::Missing("signature")),
        n => n - 1,
    };
    let signed = items.bytes()?;
    let rest = &authentication[items.at..];
    let mut reader = Blocks::new(rest);
    // Checked here, so that a later iteration over the blocks cannot fail.
    for _ in 0..blocks {
        reader.next()?.ok_or(items.malformed())?;
    }
    reader.items.end()?;
    if digest(signed)? != *Sha256::digest(whole) {
        return Err(BadEnvelope::Digest);
    }
    Ok(Envelope { manifest: self::manifest(content)?, digest: signed, blocks: rest })
}

/// Iterator over the authentication blocks of an envelope.
pub(super) struct Blocks<'a> {
    items: Items<'a>,
}

/// One authentication block.
pub(super) struct Block<'a> {
    /// The protected header and the signature, if the algorithm is Ed25519.
    pub(super) ed25519: Option<(&'a [u8], [u8; 64])>,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(octets: &'a [u8]) -> Self {
        Self { items: Items::of(octets, "the authentication wrapper") }
    }

    /// The next block; `None` after the last.
    pub(super) fn next(&mut self) -> Read<Option<Block<'a>>> {
        if !self.items.has_more() {
            return Ok(None);
        }
        let mut items = Items::of(self.items.bytes()?, "a COSE_Sign1");
        items.tag(label::SIGN1)?;
        if items.array()? != 4 {
            return Err(items.malformed());
        }
        let protected = items.bytes()?;
        let mut header = Items::of(protected, "a protected header");
        let algorithm = parameters(&mut header)?.ok_or(BadEnvelope::Missing("signature algorithm"))?;
        header.end()?;
        // An algorithm in the unprotected header is not signed, so it is refused.
        if parameters(&mut items)?.is_some() {
            return Err(BadEnvelope::Unsupported("unprotected header", number(label::ALGORITHM)));
        }
        // The payload is detached.
        items.null()?;
        let signature = items.bytes()?;
        items.end()?;
        let ed25519 = match algorithm {
            label::EDDSA | label::ED25519 => {
                Some((protected, signature.try_into().map_err(|_| items.malformed())?))
            }
            _ => None,
        };
        Ok(Some(Block { ed25519 }))
    }
}

/// Reads the algorithm of a COSE header, which may also contain a key identifier.
fn parameters(items: &mut Items<'_>) -> Read<Option<i64>> {
    let mut algorithm = None;
    items.keys(&mut |items, key| match key {
        label::ALGORITHM => items.int().map(|it| algorithm = Some(it)),
        label::KEY_ID => items.bytes().map(drop),
        other => Err(BadEnvelope::Unsupported("header", number(other))),
    })?;
    Ok(algorithm)
}

/// Parameters set by commands.
#[derive(Default)]
struct Parameters {
    vendor: Option<Uuid>,
    class: Option<Uuid>,
    image: Option<[u8; 32]>,
    size: Option<u64>,
    use_before: Option<u64>,
}

fn manifest(octets: &[u8]) -> Read<Manifest<'_>> {
    let mut items = Items::of(octets, "the manifest");
    let (mut version, mut sequence, mut component) = (None, None, None);
    let mut set = Parameters::default();
    items.keys(&mut |items, key| {
        match key {
            label::VERSION => version = Some(items.uint()?),
            label::SEQUENCE => sequence = Some(items.uint()?),
            label::COMMON => component = common(items.bytes()?, &mut set)?,
            label::REFERENCE_URI => items.text()?,
            label::VALIDATE => sequence_of(items.bytes()?, "validate", &[label::IMAGE], &mut set)?,
            // A push replaces the fetch command.
            label::INSTALL => {
                let commands = [label::OVERRIDE, label::FETCH, label::IMAGE];
                sequence_of(items.bytes()?, "install", &commands, &mut set)?;
            }
            label::TEXT => items.text_or_its_digest()?,
            other => return Err(BadEnvelope::Unsupported("member of the manifest", number(other))),
        }
        if version.is_some_and(|version| version != 1) {
            return Err(BadEnvelope::Unsupported("manifest version", version.map_or(0, number)));
        }
        Ok(())
    })?;
    items.end()?;
    version.ok_or(BadEnvelope::Missing("manifest version"))?;
    Ok(Manifest {
        sequence: sequence.ok_or(BadEnvelope::Missing("sequence number"))?,
        vendor: set.vendor.ok_or(BadEnvelope::Missing("vendor identifier"))?,
        class: set.class.ok_or(BadEnvelope::Missing("class identifier"))?,
        component: component.ok_or(BadEnvelope::Missing("component"))?,
        file: FileDigest {
            length: set.size.ok_or(BadEnvelope::Missing("image size"))?,
            sha256: set.image.ok_or(BadEnvelope::Missing("image digest"))?,
        },
        use_before: set.use_before,
    })
}

/// Reads the single component, whose name has one part.
fn common<'a>(octets: &'a [u8], set: &mut Parameters) -> Read<Option<&'a [u8]>> {
    let mut items = Items::of(octets, "the common section");
    let mut component = None;
    items.keys(&mut |items, key| {
        match key {
            label::COMPONENTS => {
                for (number_of, most) in [("number of components", 1), ("parts of a component's name", 1)] {
                    let n = items.array()?;
                    if n != most {
                        return Err(BadEnvelope::Unsupported(number_of, number(n)));
                    }
                }
                let name = items.bytes()?;
                if !(1..=MAX_COMPONENT).contains(&name.len()) {
                    return Err(BadEnvelope::Unsupported("length of a component's name", name.len() as i64));
                }
                component = Some(name);
            }
            label::SHARED => {
                let commands =
                    [label::OVERRIDE, label::VENDOR, label::CLASS, label::IMAGE, label::USE_BEFORE];
                sequence_of(items.bytes()?, "the shared sequence", &commands, set)?;
            }
            other => return Err(BadEnvelope::Unsupported("member of the common section", number(other))),
        }
        Ok(())
    })?;
    items.end()?;
    Ok(component)
}

/// Reads a command sequence that may contain `commands`.
fn sequence_of(octets: &[u8], part: &'static str, commands: &[u64], set: &mut Parameters) -> Read<()> {
    let mut items = Items::of(octets, part);
    let n = items.array()?;
    if n == 0 || n % 2 != 0 {
        return Err(items.malformed());
    }
    for _ in 0..n / 2 {
        let command = items.int()?;
        match u64::try_from(command).ok().filter(|command| commands.contains(command)) {
            Some(label::OVERRIDE) => overrides(&mut items, set)?,
            Some(condition) => {
                // The reporting policy, which has four bits.
                if items.uint()? > 15 {
                    return Err(items.malformed());
                }
                // A condition on a parameter that is not set fails (section 8.4.9 of the draft).
                let (name, is_set) = match condition {
                    label::VENDOR => ("vendor identifier", set.vendor.is_some()),
                    label::CLASS => ("class identifier", set.class.is_some()),
                    label::IMAGE => ("image digest", set.image.is_some()),
                    label::USE_BEFORE => ("moment to use it before", set.use_before.is_some()),
                    _ => ("", true),
                };
                if !is_set {
                    return Err(BadEnvelope::Missing(name));
                }
            }
            None => return Err(BadEnvelope::Unsupported("command", command)),
        }
    }
    items.end()
}

fn overrides(items: &mut Items<'_>, into: &mut Parameters) -> Read<()> {
    items.keys(&mut |items, key| match key {
        label::VENDOR if items.next_major() == Some(major::TAG) => {
            Err(BadEnvelope::Unsupported("vendor identifier by tag", 112))
        }
        label::VENDOR => set(&mut into.vendor, items.octets()?, "vendor identifier"),
        label::CLASS => set(&mut into.class, items.octets()?, "class identifier"),
        label::IMAGE => set(&mut into.image, digest(items.bytes()?)?, "image digest"),
        label::USE_BEFORE => set(&mut into.use_before, items.uint()?, "moment to use it before"),
        label::SIZE => set(&mut into.size, items.uint()?, "image size"),
        label::URI => items.text(),
        other => Err(BadEnvelope::Unsupported("parameter", number(other))),
    })
}
