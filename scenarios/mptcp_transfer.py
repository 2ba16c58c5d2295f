"""Both ends of the transfers of mptcp-emulated.toml.

`serve` accepts connections with Multipath TCP and plain TCP. `send` transfers the same bytes over
each interface alone, by the kernel's Multipath TCP, and by `anabranch multipath`, and prints one
JSON object for each transfer: goodput from the call of `connect` to the receiver's answer, and the
share of each interface in the bytes that were sent, from the counters of the devices. A share of 1
in a transfer over both means that the second subflow was not opened or not used; `fallbacks` counts
connections of `anabranch multipath` that the peer took as plain TCP.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PORT = 5001
LENGTH = struct.Struct("!Q")
"""Before the bytes, their number; after them, the receiver answers with their SHA-256."""
IPPROTO_MPTCP = 262
INTERFACES = ("cellular", "radio")


def exactly(connection: socket.socket, count: int) -> bytes:
    """Reads this number of bytes."""
    parts = []
    while count > 0:
        part = connection.recv(min(count, 65536))
        if not part:
            raise ConnectionError(f"the peer closed the connection {count} bytes early")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def answer(connection: socket.socket) -> None:
    """Receives the bytes of a connection and answers."""
    with connection:
        try:
            (length,) = LENGTH.unpack(exactly(connection, LENGTH.size))
            connection.sendall(hashlib.sha256(exactly(connection, length)).digest())
            connection.recv(1)
        except OSError as error:
            print(f"serve: {error}", flush=True)


def serve() -> None:
    """Answers connections, each in a thread: the peer of an earlier one may have gone silently."""
    subprocess.run("ip mptcp limits set subflows 8 add_addr_accepted 8".split(), check=True)
    listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, IPPROTO_MPTCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("::", PORT))
    listener.listen()
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=[connection], daemon=True).start()


def transfer(connection: socket.socket, to: tuple[str, int], data: bytes) -> float:
    """Sends the data and returns the time to the receiver's answer, in seconds."""
    begin = time.monotonic()
    with connection:
        connection.connect(to)
        connection.sendall(LENGTH.pack(len(data)) + data)
        answer = exactly(connection, hashlib.sha256().digest_size)
        took = time.monotonic() - begin
    if answer != hashlib.sha256(data).digest():
        raise ValueError("the data has changed on its way")
    return took


def sent() -> dict[str, int]:
    """Bytes that each device has taken from the kernel."""
    counter = "/sys/class/net/{}/statistics/tx_bytes"
    return {name: int(Path(counter.format(name)).read_text()) for name in INTERFACES}


def quiet(pause: float) -> None:
    """Waits until nothing is sent for this time in seconds, so that the queues are empty."""
    before = {}
    while before != (now := sent()):
        before = now
        time.sleep(pause)


@contextmanager
def kernel_subflows(addresses: dict[str, str]) -> Iterator[None]:
    """Lets the kernel open a subflow from each address."""
    ip = ["ip", "mptcp"]
    subprocess.run([*ip, "limits", "set", "subflows", "8", "add_addr_accepted", "8"], check=True)
    for name, address in addresses.items():
        subprocess.run([*ip, "endpoint", "add", address, "dev", name, "subflow"], check=True)
    try:
        yield
    finally:
        subprocess.run([*ip, "endpoint", "flush"], check=True)


@contextmanager
def multipath(scheduler: str, server: str, report: Path) -> Iterator[tuple[str, int]]:
    """Runs `anabranch multipath` and gives the local address that it forwards to the server.

    Its reports, one a second, are in the file.
    """
    listen = ("127.0.0.1", 5002)
    command = ["anabranch", "multipath", "--scheduler", scheduler, "--congestion", "newreno"]
    command += ["--forward", f"{listen[0]}:{listen[1]}=[{server}]:{PORT}", "--log-level", "warning"]
    command += ["--json"]
    command += [word for name in INTERFACES for word in ("--interface", name)]
    with report.open("w") as out:
        process = subprocess.Popen(command, stdout=out)
    try:
        while process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(listen) == 0:
                    break
            time.sleep(0.1)
        # The probe's connection to the server ends, too.
        time.sleep(3)
        yield listen
    finally:
        process.terminate()
        process.wait()


def send(
    server: str, addresses: dict[str, str], size: int, modes: list[str], pause: float
) -> None:
    """Runs the transfers one after the other."""
    data = random.Random(size).randbytes(size)
    for mode in modes:
        quiet(pause)
        to, extra = (server, PORT), {}
        if mode in addresses:
            connection = socket.socket(socket.AF_INET6)
            connection.bind((addresses[mode], 0))
            before, took = sent(), transfer(connection, to, data)
        elif mode == "kernel":
            with kernel_subflows(addresses):
                connection = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, IPPROTO_MPTCP)
                before, took = sent(), transfer(connection, to, data)
        else:
            with tempfile.TemporaryDirectory() as folder:
                report = Path(folder) / "report"
                with multipath(mode, server, report) as local:
                    before, took = sent(), transfer(socket.socket(), local, data)
                extra["fallbacks"] = json.loads(report.read_text().splitlines()[-1])["fallbacks"]
        total = {name: count - before[name] for name, count in sent().items()}
        share = {name: round(count / sum(total.values()), 3) for name, count in total.items()}
        goodput = round(size * 8 / took / 1000, 2)
        result = {"mode": mode, "bytes": size, "seconds": round(took, 3), "goodput_kbit_s": goodput}
        print(json.dumps({**result, "share": share, **extra}), flush=True)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve")
    client = commands.add_parser("send")
    client.add_argument("server", help="address of the server")
    for name in INTERFACES:
        client.add_argument(f"--{name}", required=True, help="address of this interface")
    client.add_argument("--bytes", type=int, default=200_000)
    client.add_argument("--runs", type=int, default=1)
    client.add_argument("--pause", type=float, default=3, help="seconds of silence before each")
    modes = [*INTERFACES, "kernel", "fastest", "predictive"]
    client.add_argument("--modes", nargs="+", choices=modes, default=modes)
    arguments = parser.parse_args()
    if arguments.command == "serve":
        serve()
    else:
        addresses = {name: getattr(arguments, name) for name in INTERFACES}
        for _ in range(arguments.runs):
            send(arguments.server, addresses, arguments.bytes, arguments.modes, arguments.pause)


if __name__ == "__main__":
    main()
