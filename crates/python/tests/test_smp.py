"""The SMP server of `scenarios/rivals` against the protocol's pages, and against smpclient.

The bytes of frames and the numbers of errors are written out from Zephyr's pages "SMP Protocol
Specification" and "Application/software image management group".
"""

from __future__ import annotations

import hashlib
import importlib.util
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cbor2
import pytest

from conftest import ROOT

RIVALS = ROOT / "scenarios/rivals"
IMAGE = bytes(range(256)) * 20
SHA = hashlib.sha256(IMAGE).digest()


def load() -> Any:
    spec = importlib.util.spec_from_file_location("smp_server", RIVALS / "smp_server.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["smp_server"] = module
    spec.loader.exec_module(module)
    return module


smp_server = load()


def frame(operation: int, group: int, command: int, body: Any = None, *, version: int = 1, sequence: int = 7) -> bytes:
    data = b"" if body is None else body if isinstance(body, bytes) else cbor2.dumps(body)
    return struct.pack("!BBHHBB", version << 3 | operation, 0, len(data), group, sequence, command) + data


def ask(server: Any, operation: int, group: int, command: int, body: Any = None, **more: int) -> Any:
    """The body of the answer, whose header must fit the request."""
    request = frame(operation, group, command, body, **more)
    answer = server.answer(request)
    assert answer is not None
    first, flags, length, got_group, sequence, got_command = struct.unpack_from("!BBHHBB", answer)
    assert first == (min(more.get("version", 1), 1) << 3 | operation + 1)
    assert (flags, length) == (0, len(answer) - 8)
    assert (got_group, sequence, got_command) == (group, more.get("sequence", 7), command)
    return cbor2.loads(answer[8:])


def upload(server: Any, **fields: Any) -> Any:
    return ask(server, 2, 1, 1, fields)


def err(code: int) -> dict[str, Any]:
    return {"err": {"group": 1, "rc": code}}


@pytest.fixture
def server() -> Any:
    return smp_server.Server(slot_size=10_000)


def test_the_bytes_of_an_echo(server: Any) -> None:
    # {"d": "hi"} is a1 61 64 62 68 69; the answer has r (72) in place of d (64).
    request = bytes.fromhex("0a 00 0006 0000 2a 00 a1 61 64 62 68 69")
    assert server.answer(request) == bytes.fromhex("0b 00 0006 0000 2a 00 a1 61 72 62 68 69")


def test_the_buffers_are_those_of_zephyr(server: Any) -> None:
    assert ask(server, 0, 0, 6) == {"buf_size": 2048, "buf_count": 2}
    assert ask(server, 0, 0, 6, {}) == {"buf_size": 2048, "buf_count": 2}


def test_an_upload_in_order(server: Any) -> None:
    assert upload(server, off=0, data=IMAGE[:1000], len=len(IMAGE), sha=SHA, image=0, upgrade=False) == {"off": 1000}
    for at in range(1000, 5000, 1000):
        assert upload(server, off=at, data=IMAGE[at : at + 1000]) == {"off": at + 1000}
        assert not server.finished
    assert upload(server, off=5000, data=IMAGE[5000:]) == {"off": len(IMAGE), "match": True}
    assert server.finished
    state = {"slot": 1, "version": "0.0.0", "hash": SHA, "bootable": True}
    assert ask(server, 0, 1, 0) == {"images": [state]}
    assert ask(server, 2, 1, 0, {"hash": SHA, "confirm": False}) == {"images": [state | {"pending": True}]}


def test_a_repeated_or_early_chunk_is_answered_with_the_expected_offset(server: Any) -> None:
    upload(server, off=0, data=IMAGE[:1000], len=len(IMAGE), sha=SHA)
    assert upload(server, off=3000, data=b"x" * 10) == {"off": 1000}
    assert upload(server, off=1000, data=IMAGE[1000:2000]) == {"off": 2000}
    assert upload(server, off=1000, data=b"y" * 1000) == {"off": 2000}
    for at in range(2000, len(IMAGE), 1000):
        last = upload(server, off=at, data=IMAGE[at : at + 1000])
    assert last == {"off": len(IMAGE), "match": True}


def test_offset_0_with_the_same_hash_continues(server: Any) -> None:
    upload(server, off=0, data=IMAGE[:1000], len=len(IMAGE), sha=SHA)
    upload(server, off=1000, data=IMAGE[1000:1500])
    # Whatever it carries: the data is not written again.
    assert upload(server, off=0, data=b"z" * 900, len=len(IMAGE), sha=SHA) == {"off": 1500}
    for at in range(1500, len(IMAGE), 1000):
        upload(server, off=at, data=IMAGE[at : at + 1000])
    # The last answer was lost.
    assert upload(server, off=0, data=IMAGE[:10], len=len(IMAGE), sha=SHA) == {"off": len(IMAGE), "match": True}


def test_offset_0_without_or_with_another_hash_begins_again(server: Any) -> None:
    upload(server, off=0, data=IMAGE[:1000], len=len(IMAGE), sha=SHA)
    assert upload(server, off=0, data=IMAGE[:10], len=len(IMAGE)) == {"off": 10}
    assert upload(server, off=0, data=IMAGE[:20], len=len(IMAGE), sha=bytes(32)) == {"off": 20}


def test_a_chunk_before_any_upload_asks_for_the_beginning(server: Any) -> None:
    assert upload(server, off=500, data=b"x") == {"off": 0}


def test_a_wrong_hash_is_reported_and_the_image_given_up(server: Any) -> None:
    assert upload(server, off=0, data=b"abc", len=3, sha=bytes(32)) == {"off": 3, "match": False}
    assert not server.finished
    assert ask(server, 0, 1, 0) == {"images": []}
    assert upload(server, off=0, data=b"abc", len=3, sha=hashlib.sha256(b"abc").digest()) == {"off": 3, "match": True}


def test_without_a_hash_nothing_is_compared(server: Any) -> None:
    assert upload(server, off=0, data=b"abc", len=3) == {"off": 3}
    assert server.finished


def test_the_operator_s_hash_decides_too() -> None:
    server = smp_server.Server(sha=SHA)
    assert upload(server, off=0, data=b"abc", len=3, sha=hashlib.sha256(b"abc").digest()) == {"off": 3, "match": False}
    assert not server.finished


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"data": b"x", "len": 1}, err(20)),  # no offset
        ({"off": 0, "data": b"x"}, err(21)),  # no length
        ({"off": 0, "data": b"x", "len": 0}, err(21)),
        ({"off": 0, "data": b"x", "len": 10_001}, err(30)),  # too large for the slot
        ({"off": 0, "data": b"xy", "len": 1}, err(31)),  # more data than the image has
        ({"off": 0, "data": b"x", "len": 1, "sha": b"short"}, err(24)),
        ({"off": 0, "data": b"x", "len": 1, "image": 1}, err(14)),  # one image
        ({"off": 0, "len": 1}, {"rc": 3}),
        ({"off": 0, "len": 1, "data": b""}, {"rc": 3}),
        ({"off": 0, "len": 1, "data": "x"}, {"rc": 3}),
        ({"off": -1, "len": 1, "data": b"x"}, {"rc": 3}),
        ({"off": False, "len": 1, "data": b"x"}, {"rc": 3}),
        ({"off": 0, "len": 1.0, "data": b"x"}, {"rc": 3}),
        ({"off": 5, "data": b"x", "sha": SHA}, {"rc": 3}),  # belongs to offset 0
    ],
)
def test_bad_uploads(server: Any, fields: dict[str, Any], answer: dict[str, Any]) -> None:
    assert upload(server, **fields) == answer
    assert not server.finished


def test_data_beyond_the_end(server: Any) -> None:
    upload(server, off=0, data=b"ab", len=4)
    assert upload(server, off=2, data=b"cde") == err(31)
    assert upload(server, off=2, data=b"cd") == {"off": 4}


def test_a_complete_image_is_not_overwritten(server: Any) -> None:
    upload(server, off=0, data=b"abc", len=3, sha=hashlib.sha256(b"abc").digest())
    assert upload(server, off=0, data=b"x", len=5) == err(28)


def test_version_1_has_no_errors_of_groups(server: Any) -> None:
    assert ask(server, 2, 1, 1, {"off": 0, "data": b"x"}, version=0) == {"rc": 3}
    assert ask(server, 2, 1, 0, {"hash": bytes(32)}, version=0) == {"rc": 5}


def test_states_that_cannot_be_set(server: Any) -> None:
    assert ask(server, 2, 1, 0, {"hash": bytes(32), "confirm": False}) == err(8)
    assert ask(server, 2, 1, 0, {"confirm": True}) == err(3)
    assert ask(server, 2, 1, 0, {"confirm": False}) == err(24)


@pytest.mark.parametrize("what", [(2, 1, 5), (0, 1, 1), (0, 9, 0), (2, 0, 6), (0, 64, 0)])
def test_other_commands_are_not_supported(server: Any, what: tuple[int, int, int]) -> None:
    assert ask(server, *what, {}) == {"rc": 8}


def test_versions_of_the_future(server: Any) -> None:
    assert ask(server, 0, 0, 6, {}, version=2) == {"rc": 13}


@pytest.mark.parametrize("body", [b"\xff", b"\xa1", b"\x80", b"\x01", b"\xa0\xa0", b"\xbf", b"\xa1\x80\x01", b"\xdb" + b"\xff" * 8])
def test_what_is_not_one_map(server: Any, body: bytes) -> None:
    assert ask(server, 2, 0, 0, body) == {"rc": 3}


def test_headers(server: Any) -> None:
    good = frame(2, 0, 0, {"d": "x"})
    assert cbor2.loads(server.answer(good)[8:]) == {"r": "x"}
    for bad in (
        bytes([good[0] | 0x20]) + good[1:],  # a reserved bit
        good[:1] + b"\x01" + good[2:],  # a flag
        good + b"\x00",  # longer than its length
        good[:-1],  # shorter
    ):
        assert cbor2.loads(server.answer(bad)[8:]) == {"rc": 3}


@pytest.mark.parametrize("datagram", [b"", b"\x0a", frame(2, 0, 0, {"d": "x"})[:7], frame(1, 0, 0, {}), frame(3, 1, 1, {}), frame(5, 0, 0, {}), frame(2, 1, 1, {"d": bytes(1500)})])
def test_what_gets_no_answer(server: Any, datagram: bytes) -> None:
    assert server.answer(datagram) is None
    assert server.dropped


def test_no_datagram_stops_the_server(server: Any) -> None:
    import random

    draw = random.Random(1)
    seeds = [frame(2, 1, 1, {"off": 0, "data": b"x" * 40, "len": 100, "sha": SHA}), frame(0, 1, 0), frame(2, 0, 0, {"d": "x"})]
    for _ in range(20_000):
        datagram = bytearray(draw.choice(seeds))
        for _ in range(draw.randint(1, 4)):
            datagram[draw.randrange(len(datagram))] = draw.randrange(256)
        answer = server.answer(bytes(datagram[: draw.randint(0, len(datagram))] if draw.random() < 0.2 else datagram))
        assert answer is None or isinstance(cbor2.loads(answer[8:]), dict)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[int, subprocess.Popen[str], Path]]:
    out = tmp_path / "got"
    command = [sys.executable, str(RIVALS / "smp_server.py"), "--bind", "::1", "--port", "0", "--out", str(out), "--linger", "0.2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        yield int(program.stdout.readline().split()[-1]), program, out
        program.kill()


@pytest.mark.parametrize("mtu", [1500, 1280, 200])
def test_smpclient_uploads(started: tuple[int, subprocess.Popen[str], Path], mtu: int) -> None:
    import asyncio

    from smpclient import SMPClient
    from smpclient.generics import success
    from smpclient.requests.image_management import ImageStatesRead
    from smpclient.requests.os_management import EchoWrite, MCUMgrParametersRead
    from smpclient.transport.udp import SMPUDPTransport

    port, program, out = started

    async def run() -> None:
        transport = SMPUDPTransport(mtu=mtu)
        await transport.connect("::1", 5.0, port)
        client = SMPClient(transport, "::1")
        echo = await client.request(EchoWrite(d="hello"))
        assert success(echo) and echo.r == "hello"
        parameters = await client.request(MCUMgrParametersRead())
        assert success(parameters) and parameters.buf_size == 2048
        offsets = [offset async for offset in client.upload(IMAGE)]
        assert offsets == sorted(set(offsets)) and offsets[-1] == len(IMAGE)
        states = await client.request(ImageStatesRead())
        assert success(states) and [image.hash for image in states.images] == [SHA]
        await transport.disconnect()

    asyncio.run(run())
    assert program.wait(10) == 0
    assert out.read_bytes() == IMAGE
