"""A small SMP server over UDP: the device side of `mcumgr image upload`.

It implements the parts of the Simple Management Protocol that an image upload needs, as Zephyr's
pages "SMP Protocol Specification", "Group 0" and "Group 1" describe them: echo and the buffer
parameters of the OS group, state and upload of the image group. It accepts any file as an image
and does not read MCUboot's header. It ends when an image has arrived whose SHA-256 is right.

    python3 smp_server.py --out image.bin
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import io
import socket
import struct
import sys
import time
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

import cbor2

HEADER = struct.Struct("!BBHHBB")
"""Reserved bits, version and operation; flags; data length; group; sequence number; command."""

LARGEST_FRAME = 1500
"""Zephyr's MCUMGR_TRANSPORT_UDP_MTU: a longer frame does not fit a device's buffer."""

BUFFER_SIZE, BUFFER_COUNT = 2048, 2
"""Zephyr's MCUMGR_TRANSPORT_NETBUF_SIZE and _COUNT for UDP."""

READ, WRITE = 0, 2
OS, IMAGE = 0, 1
ECHO, PARAMETERS = 0, 6
STATE, UPLOAD = 0, 1
SLOT = 1
"""The secondary slot, to which uploads go."""


class Error(IntEnum):
    """Errors of SMP itself (mcumgr_err_t)."""

    ENOMEM = 2
    EINVAL = 3
    ENOENT = 5
    EBADSTATE = 6
    ENOTSUP = 8
    TOO_NEW = 13


class ImageError(IntEnum):
    """Errors of the image group."""

    NO_IMAGE = 3
    HASH_NOT_FOUND = 8
    INVALID_SLOT = 14
    INVALID_OFFSET = 20
    INVALID_LENGTH = 21
    INVALID_HASH = 24
    ALREADY_PENDING = 28
    TOO_LARGE = 30
    DATA_OVERRUN = 31


# The errors of SMP version 1, which has none of the group's own.
LEGACY = {
    ImageError.NO_IMAGE: Error.ENOENT,
    ImageError.HASH_NOT_FOUND: Error.ENOENT,
    ImageError.ALREADY_PENDING: Error.EBADSTATE,
}


class Refused(Exception):
    """A request gets an error as its answer."""

    def __init__(self, code: Error | ImageError, why: str) -> None:
        super().__init__(why)
        self.code = code


@dataclass
class Image:
    """An upload in progress, or the complete image."""

    length: int
    sha: bytes | None
    data: bytearray = field(default_factory=bytearray)
    match: bool | None = None
    pending: bool = False
    permanent: bool = False

    @property
    def complete(self) -> bool:
        return len(self.data) == self.length

    def digest(self) -> bytes:
        return hashlib.sha256(self.data).digest()


class Server:
    """Answers datagrams. It knows no socket and no clock."""

    def __init__(self, slot_size: int = 1_000_000, sha: bytes | None = None) -> None:
        """`slot_size` is the largest image in bytes; `sha` is the only SHA-256 to accept, if any."""
        self.slot_size = slot_size
        self.sha = sha
        self.image: Image | None = None
        self.requests = 0
        # Why datagrams got no answer, for the reader of the standard error.
        self.dropped: list[str] = []

    @property
    def finished(self) -> bool:
        """Whether a complete image with the right SHA-256 is here."""
        return self.image is not None and self.image.match is True

    def answer(self, datagram: bytes) -> bytes | None:
        """The response to a datagram. None: it is not a request that a device could read."""
        if len(datagram) < HEADER.size:
            self.dropped.append("shorter than a header")
            return None
        if len(datagram) > LARGEST_FRAME:
            self.dropped.append(f"{len(datagram)} bytes, more than {LARGEST_FRAME}")
            return None
        first, flags, length, group, sequence, command = HEADER.unpack_from(datagram)
        reserved, version, operation = first >> 5, first >> 3 & 3, first & 7
        # The answer to a response could be answered in turn, without end.
        if operation not in (READ, WRITE):
            self.dropped.append(f"operation {operation} is not a request")
            return None
        self.requests += 1
        data = datagram[HEADER.size :]
        try:
            if version > 1:
                raise Refused(Error.TOO_NEW, f"version {version} is reserved")
            if reserved or flags:
                raise Refused(Error.EINVAL, "reserved bits or flags are set")
            if length != len(data):
                raise Refused(Error.EINVAL, f"data length {length}, but {len(data)} bytes follow")
            body = self._command(operation, group, command, fields(data))
        except Refused as refused:
            body = error(refused.code, version)
        encoded = cbor2.dumps(body)
        # A device answers a request of an unknown version in the newest version that it speaks.
        head = HEADER.pack(min(version, 1) << 3 | operation + 1, 0, len(encoded), group, sequence, command)
        return head + encoded

    def _command(self, operation: int, group: int, command: int, given: dict[Any, Any]) -> dict[str, Any]:
        match (group, command, operation):
            case (0, 0, 0 | 2):
                return {"r": text(given, "d")}
            case (0, 6, 0):
                return {"buf_size": BUFFER_SIZE, "buf_count": BUFFER_COUNT}
            case (1, 0, 0):
                return self._states()
            case (1, 0, 2):
                return self._select(given)
            case (1, 1, 2):
                return self._upload(given)
        raise Refused(Error.ENOTSUP, f"group {group} command {command} operation {operation}")

    def _states(self) -> dict[str, Any]:
        image = self.image
        if image is None or not image.complete or image.match is False:
            return {"images": []}
        state: dict[str, Any] = {"slot": SLOT, "version": "0.0.0", "hash": image.digest(), "bootable": True}
        for flag in ("pending", "permanent"):
            if getattr(image, flag):
                state[flag] = True
        return {"images": [state]}

    def _select(self, given: dict[Any, Any]) -> dict[str, Any]:
        confirm = optional(given, "confirm", bool) or False
        sha = optional(given, "hash", bytes)
        if sha is None:
            # Without a hash the running image is meant. Here none runs.
            raise Refused(ImageError.NO_IMAGE if confirm else ImageError.INVALID_HASH, "no hash")
        image = self.image
        if image is None or not image.complete or image.match is False or image.digest() != sha:
            raise Refused(ImageError.HASH_NOT_FOUND, "no image with this hash")
        image.pending, image.permanent = True, confirm
        return self._states()

    def _upload(self, given: dict[Any, Any]) -> dict[str, Any]:
        if "off" not in given:
            raise Refused(ImageError.INVALID_OFFSET, "no offset")
        offset = unsigned(given, "off")
        data = given.get("data")
        if not isinstance(data, bytes) or not data:
            raise Refused(Error.EINVAL, "no data")
        if offset == 0:
            self._begin(given, len(data))
        else:
            early = [key for key in ("image", "sha", "upgrade") if key in given]
            if early:
                raise Refused(Error.EINVAL, f"{early[0]} belongs to offset 0")
        image = self.image
        if image is None:
            # The client must begin again, as after a restart of the device.
            return {"off": 0}
        # A repeated or an early chunk is not written. The answer is the offset to go on from.
        if offset != len(image.data) or image.complete:
            return self._progress(image)
        if offset + len(data) > image.length:
            raise Refused(ImageError.DATA_OVERRUN, f"{offset + len(data)} bytes of {image.length}")
        image.data += data
        if image.complete:
            digest = image.digest()
            wanted = [sha for sha in (image.sha, self.sha) if sha is not None]
            image.match = all(hmac.compare_digest(digest, sha) for sha in wanted)
        answer = self._progress(image)
        if image.match is False:
            # The next request begins a new upload.
            self.image = None
        return answer

    def _begin(self, given: dict[Any, Any], size: int) -> None:
        """Starts an upload at offset 0, unless the request continues the present one."""
        if optional(given, "image", int, least=0):
            raise Refused(ImageError.INVALID_SLOT, "this device has one image")
        optional(given, "upgrade", bool)
        if "len" not in given:
            raise Refused(ImageError.INVALID_LENGTH, "no length")
        length = unsigned(given, "len")
        sha = optional(given, "sha", bytes)
        if length == 0:
            raise Refused(ImageError.INVALID_LENGTH, "length 0")
        if length > self.slot_size:
            raise Refused(ImageError.TOO_LARGE, f"{length} bytes, the slot has {self.slot_size}")
        if size > length:
            raise Refused(ImageError.DATA_OVERRUN, f"{size} bytes of {length}")
        if sha is not None and len(sha) != hashlib.sha256().digest_size:
            raise Refused(ImageError.INVALID_HASH, f"a hash of {len(sha)} bytes")
        present = self.image
        if present is not None and sha is not None and (present.sha, present.length) == (sha, length):
            return
        if self.finished:
            raise Refused(ImageError.ALREADY_PENDING, "an image is complete")
        self.image = Image(length, sha)

    @staticmethod
    def _progress(image: Image) -> dict[str, Any]:
        answer: dict[str, Any] = {"off": len(image.data)}
        if image.complete and image.sha is not None:
            answer["match"] = image.match
        return answer


def fields(data: bytes) -> dict[Any, Any]:
    """The CBOR map of a request; no data is an empty map."""
    if not data:
        return {}
    stream = io.BytesIO(data)
    try:
        decoded = cbor2.CBORDecoder(stream, read_size=1).decode()
    except Exception as why:  # The decoder's own exceptions, and those of odd tags and numbers.
        raise Refused(Error.EINVAL, f"not CBOR: {why}") from why
    if not isinstance(decoded, dict):
        raise Refused(Error.EINVAL, "not a map")
    if stream.read(1):
        raise Refused(Error.EINVAL, "more than one item")
    return decoded


def unsigned(given: dict[Any, Any], key: str) -> int:
    value = optional(given, key, int, least=0)
    if value is None:
        raise Refused(Error.EINVAL, f"no {key}")
    return int(value)


def text(given: dict[Any, Any], key: str) -> str:
    value = optional(given, key, str)
    if value is None:
        raise Refused(Error.EINVAL, f"no {key}")
    return str(value)


def optional(given: dict[Any, Any], key: str, kind: type, least: int | None = None) -> Any:
    """A field of the given type, or None without it. A bool is not a number here."""
    if key not in given:
        return None
    value = given[key]
    right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    if not right or least is not None and value < least:
        raise Refused(Error.EINVAL, f"{key} is {value!r}")
    return value


def error(code: Error | ImageError, version: int) -> dict[str, Any]:
    """The body of an error. Only version 2 (the number 1) has errors of a group."""
    if isinstance(code, Error):
        return {"rc": int(code)}
    if version == 0:
        return {"rc": int(LEGACY.get(code, Error.EINVAL))}
    return {"err": {"group": IMAGE, "rc": int(code)}}


def serve(server: Server, at: socket.socket) -> None:
    """Answers until the image is complete."""
    while not server.finished:
        datagram, peer = at.recvfrom(65_536)
        respond(server, at, datagram, peer)


def linger(server: Server, at: socket.socket, seconds: float) -> None:
    """Answers repeated requests after the end, as the last answer may be lost."""
    last = time.monotonic() + seconds
    while (left := last - time.monotonic()) > 0:
        at.settimeout(left)
        try:
            datagram, peer = at.recvfrom(65_536)
        except TimeoutError:
            return
        respond(server, at, datagram, peer)


def respond(server: Server, at: socket.socket, datagram: bytes, peer: Any) -> None:
    dropped = len(server.dropped)
    response = server.answer(datagram)
    for why in server.dropped[dropped:]:
        print(f"dropped a datagram: {why}", file=sys.stderr, flush=True)
    if response is not None:
        at.sendto(response, peer)


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description="An SMP server over UDP that receives one image.")
    options.add_argument("--bind", default="::", help="address to bind (default: all, IPv6 and IPv4)")
    options.add_argument("--port", type=int, default=1337, help="UDP port (default: 1337)")
    options.add_argument("--out", type=Path, required=True, help="file for the image")
    options.add_argument("--sha256", type=bytes.fromhex, help="the only SHA-256 to accept, in hexadecimal")
    options.add_argument("--slot-size", type=int, default=1_000_000, help="largest image in bytes (default: 1000000)")
    options.add_argument("--linger", type=float, default=5.0, help="seconds to answer repeated requests at the end (default: 5)")
    chosen = options.parse_args(arguments)
    family = socket.AF_INET6 if ":" in chosen.bind else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as at:
        if family == socket.AF_INET6:
            at.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            at.bind((chosen.bind, chosen.port))
        except OSError as why:
            print(f"cannot bind [{chosen.bind}]:{chosen.port}: {why.strerror}", file=sys.stderr)
            return 1
        print(f"ready on port {at.getsockname()[1]}", flush=True)
        server = Server(chosen.slot_size, chosen.sha256)
        serve(server, at)
        assert server.image is not None
        try:
            chosen.out.write_bytes(server.image.data)
        except OSError as why:
            print(f"cannot write {chosen.out}: {why.strerror}", file=sys.stderr)
            return 1
        size, digest = server.image.length, server.image.digest().hex()
        print(f"{digest}  {chosen.out} ({size} bytes, {server.requests} requests)", flush=True)
        linger(server, at, chosen.linger)
    return 0


if __name__ == "__main__":
    sys.exit(main())
