"""SUIT envelopes as pycose and cbor2 read and write them.

read ENVELOPE KEY        verify with a public key in hexadecimal, and print what the manifest says as JSON
write SECRET FILE DIR    write envelopes of FILE into DIR, signed with a secret key in hexadecimal
draft EXAMPLES           verify the examples of draft-ietf-suit-manifest with the key of its appendix
"""

import base64
import hashlib
import json
import sys
import uuid
from pathlib import Path

import cbor2
from cryptography.hazmat.primitives.serialization import load_der_public_key
from pycose.algorithms import EdDSA, Es256
from pycose.headers import KID, Algorithm
from pycose.keys import EC2Key, OKPKey
from pycose.keys.curves import P256, Ed25519
from pycose.messages import Sign1Message

ENVELOPE, SIGN1, SHA256 = 107, 18, -16
# The appendix of draft-ietf-suit-manifest: SubjectPublicKeyInfo of the key that signs its examples.
DRAFT_KEY = (
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEhJaBGq4LqqvSYVcYnuzaJr6qi/Eb"
    "bz/m4rVlnIXbwK07HypLbAmBMcCjbazR14vTgdzfsJwFLbM5kdtzOLSolg=="
)


def exactly(octets):
    """The item, which must be encoded deterministically and be alone."""
    item = cbor2.loads(octets)
    assert cbor2.dumps(item, canonical=True) == octets, octets.hex()
    return item


def blocks_of(envelope, deterministic=True):
    """The digest that is signed and the authentication blocks, after the digest was compared with the manifest."""
    load = exactly if deterministic else cbor2.loads
    tagged = load(envelope)
    assert tagged.tag == ENVELOPE
    digest, *blocks = load(tagged.value[2])
    algorithm, value = load(digest)
    assert algorithm == SHA256
    # Over the byte string with its head.
    assert value == hashlib.sha256(cbor2.dumps(tagged.value[3])).digest()
    return tagged.value, digest, blocks


def verify(block, digest, key):
    message = Sign1Message.decode(block)
    assert message.payload is None, "the payload is detached"
    message.key = key
    return message.verify_signature(detached_payload=digest)


def read(path, key):
    members, digest, blocks = blocks_of(Path(path).read_bytes())
    key = OKPKey(crv=Ed25519, x=bytes.fromhex(key))
    assert verify(blocks[0], digest, key)
    assert not verify(blocks[0], digest + b"\0", key)
    manifest = exactly(members[3])
    assert set(manifest) == {1, 2, 3, 7} and manifest[1] == 1
    common = exactly(manifest[3])
    sequence = exactly(common[4])
    assert sequence[0] == 20, "override-parameters first"
    parameters = sequence[1]
    conditions = dict(zip(sequence[2::2], sequence[3::2]))
    assert set(conditions) >= {1, 2}, "vendor and class are compared"
    assert exactly(manifest[7]) == [3, 15], "and the image"
    algorithm, sha256 = exactly(parameters[3])
    assert algorithm == SHA256
    said = {
        "sequence": manifest[2],
        "vendor": str(uuid.UUID(bytes=parameters[1])),
        "class": str(uuid.UUID(bytes=parameters[2])),
        "component": common[2][0][0].decode(),
        "bytes": parameters[14],
        "sha256": sha256.hex(),
        "use_before": parameters.get(4),
    }
    print(json.dumps(said))


class Writer:
    def __init__(self, secret, file):
        content = Path(file).read_bytes()
        self.key = OKPKey(crv=Ed25519, d=bytes.fromhex(secret))
        self.image = cbor2.dumps([SHA256, hashlib.sha256(content).digest()])
        self.size = len(content)
        self.vendor = uuid.uuid5(uuid.NAMESPACE_DNS, "example.com")
        self.model = uuid.uuid5(self.vendor, "sensor")

    def manifest(self, parameters=(), members=()):
        said = {1: self.vendor.bytes, 2: self.model.bytes, 3: self.image, 14: self.size, **dict(parameters)}
        common = {2: [[b"firmware"]], 4: cbor2.dumps([20, said, 1, 15, 2, 15], canonical=True)}
        validate = cbor2.dumps([3, 15])
        return {1: 1, 2: 4, 3: cbor2.dumps(common, canonical=True), 7: validate, **dict(members)}

    def sign(self, digest, key=None, algorithm=EdDSA, protected=(), unprotected=()):
        message = Sign1Message(phdr={Algorithm: algorithm, **dict(protected)}, uhdr=dict(unprotected), key=key or self.key)
        return message.encode(detached_payload=digest)

    def envelope(self, manifest=None, blocks=None, text=None):
        octets = manifest if isinstance(manifest, bytes) else cbor2.dumps(manifest or self.manifest(), canonical=True)
        digest = cbor2.dumps([SHA256, hashlib.sha256(cbor2.dumps(octets)).digest()])
        signed = blocks(digest) if blocks else [self.sign(digest)]
        members = {2: cbor2.dumps([digest, *signed]), 3: octets}
        if text:
            members[23] = text
        return cbor2.dumps(cbor2.CBORTag(ENVELOPE, members), canonical=True)

    def good(self):
        other, elliptic = OKPKey.generate_key(crv=Ed25519), EC2Key.generate_key(crv=P256)
        install = cbor2.dumps([20, {21: "http://example.com/firmware"}, 21, 15, 3, 15])
        yield "plain", self.envelope()
        yield "key-id", self.envelope(blocks=lambda d: [self.sign(d, protected={KID: b"release"})])
        yield "key-id-outside", self.envelope(blocks=lambda d: [self.sign(d, unprotected={KID: b"release"})])
        yield "second-signer", self.envelope(
            blocks=lambda d: [self.sign(d, elliptic, Es256), self.sign(d, other), self.sign(d)]
        )
        yield "use-before", self.envelope(self.manifest({4: 1 << 40}))
        yield "install", self.envelope(self.manifest(members={20: install}))
        yield "reference", self.envelope(self.manifest(members={4: "https://example.com/4.suit"}))
        yield "text", self.envelope(text=cbor2.dumps({"en": {}}))

    def bad(self):
        other = OKPKey.generate_key(crv=Ed25519)
        manifest = cbor2.dumps(self.manifest(), canonical=True)
        whole = self.envelope()
        yield "another-signer", self.envelope(blocks=lambda d: [self.sign(d, other)])
        yield "another-digest", self.envelope(blocks=lambda d: [self.sign(d + b"\0")])
        yield "algorithm-outside", self.envelope(
            blocks=lambda d: [
                cbor2.dumps(cbor2.CBORTag(SIGN1, [b"", {1: -8}, None, self.signature(d)]))
            ]
        )
        # Header 2 names what a reader must understand (RFC 9052, section 3.1).
        yield "critical", self.envelope(blocks=lambda d: [self.protected(d, {1: -8, 2: [99], 99: 1})])
        yield "attached", self.envelope(blocks=lambda d: [self.sign_attached(d)])
        yield "no-signature", self.envelope(blocks=lambda d: [])
        yield "sequence-twice", self.envelope(b"\xa5" + manifest[1:5] + b"\x02\x09" + manifest[5:])
        yield "endless", self.envelope(b"\xbf" + manifest[1:] + b"\xff")
        yield "long-number", self.envelope(manifest.replace(b"\x02\x04", b"\x02\x18\x04", 1))
        yield "trailing", self.envelope(manifest + b"\0")
        yield "trailing-outside", whole + b"\0"
        yield "untagged", whole[2:]
        yield "no-vendor", self.envelope(self.manifest({1: b""}))
        yield "dependencies", self.envelope(self.manifest(members={15: cbor2.dumps([11, 15])}))

    def signature(self, digest):
        return cbor2.loads(self.sign(digest)).value[3]

    def protected(self, digest, header):
        header = cbor2.dumps(header, canonical=True)
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        key = Ed25519PrivateKey.from_private_bytes(self.key.d)
        signed = key.sign(cbor2.dumps(["Signature1", header, b"", digest]))
        return cbor2.dumps(cbor2.CBORTag(SIGN1, [header, {}, None, signed]))

    def sign_attached(self, digest):
        message = Sign1Message(phdr={Algorithm: EdDSA}, uhdr={}, payload=digest, key=self.key)
        return message.encode()


def write(secret, file, folder):
    writer = Writer(secret, file)
    for kind in ("good", "bad"):
        for name, octets in getattr(writer, kind)():
            (Path(folder) / f"{kind}-{name}").write_bytes(octets)


def draft(path):
    numbers = load_der_public_key(base64.b64decode(DRAFT_KEY)).public_numbers()
    key = EC2Key(crv=P256, x=numbers.x.to_bytes(32, "big"), y=numbers.y.to_bytes(32, "big"))
    lines = [line for line in Path(path).read_text().splitlines() if not line.startswith("#")]
    for number, line in enumerate(lines):
        # Some are not in the order that is deterministic.
        _, digest, blocks = blocks_of(bytes.fromhex(line), deterministic=False)
        assert verify(blocks[0], digest, key), number
    print(len(lines))


if __name__ == "__main__":
    {"read": read, "write": write, "draft": draft}[sys.argv[1]](*sys.argv[2:])
