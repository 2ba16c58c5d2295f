"""The kernel's end of an MPTCP connection: sends a file, compares what comes with another, and says how it went.

It runs in a network namespace of its own. The last line that it prints is JSON.
"""

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time

cell = json.loads(sys.argv[1])
outgoing = open(cell["send"], "rb").read()
expected = open(cell["expect"], "rb").read()
PATIENCE = cell["patience"]
SOL_MPTCP, MPTCP_INFO = 284, 1

for name, value in cell["sysctls"].items():
    with open("/proc/sys/net/" + name, "w") as file:
        file.write(str(value))


def counters():
    """What this namespace has counted."""
    figures = {}
    for path, group in (("/proc/net/snmp", "Tcp"), ("/proc/net/netstat", "TcpExt"), ("/proc/net/netstat", "MPTcpExt")):
        rows = [line.split() for line in open(path) if line.startswith(group + ":")]
        figures.update(zip(rows[0][1:], map(int, rows[1][1:])))
    return figures


def info(connection):
    """Whether the connection has fallen back, and the number of its subflows beside the first."""
    try:
        octets = connection.getsockopt(SOL_MPTCP, MPTCP_INFO, 96)
    except OSError:
        return {"fallback": True, "subflows": 0}
    flags = struct.unpack_from("=I", octets, 8)[0]
    return {"fallback": bool(flags & 1), "subflows": octets[0]}


def states():
    """The states of all connections in this namespace, without those in TIME-WAIT and listeners."""
    rows = []
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(path):
            rows += [line.split()[3] for line in open(path).readlines()[1:]]
    return [state for state in rows if state not in ("06", "0A")]


def opened():
    family = socket.AF_INET6 if ":" in cell["address"] else socket.AF_INET
    first = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
    first.settimeout(PATIENCE)
    if cell["opens"]:
        print("ready", flush=True)
        first.connect((cell["address"], cell["port"]))
        return first
    first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    first.bind((cell["address"], cell["port"]))
    first.listen()
    print("ready", flush=True)
    connection, _ = first.accept()
    # A listener for further subflows stays.
    opened.listener = first
    connection.settimeout(PATIENCE)
    return connection


def command(arguments):
    subprocess.run(arguments, check=True)


def act(connection, moment):
    """Runs the commands of a moment: `open`, or `half` when half of the bytes have come."""
    for arguments in cell[moment]:
        if arguments == ["reset"]:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
            raise EOFError
        command(arguments)


def send(connection):
    try:
        # The second half waits for the peer's half: what happens there happens under way.
        connection.sendall(outgoing[: len(outgoing) // 2])
        half.wait(PATIENCE)
        connection.sendall(outgoing[len(outgoing) // 2 :])
        if cell["closes_last"]:
            ended.wait(PATIENCE)
        connection.shutdown(socket.SHUT_WR)
    except OSError as error:
        result["send_error"] = repr(error)


def receive(connection):
    """Reads to the end; the place of the first byte that differs, or nothing."""
    at, wrong = 0, None
    while octets := connection.recv(1 << 16):
        if wrong is None and octets != expected[at : at + len(octets)]:
            wrong = at
        at += len(octets)
        result["received"], result["wrong"] = at, wrong
        if at >= len(expected) // 2 and not half.is_set():
            half.set()
            act(connection, "at_half")
        if at >= len(expected):
            ended.set()
    half.set()
    ended.set()


half, ended = threading.Event(), threading.Event()
connection, result = None, {"error": None, "received": 0, "wrong": None}
try:
    connection = opened()
    act(connection, "at_open")
    sender = threading.Thread(target=send, args=(connection,), daemon=True)
    sender.start()
    receive(connection)
    sender.join(PATIENCE)
    result["info"] = info(connection)
    connection.close()
except EOFError:
    result["info"] = {"fallback": False, "subflows": 0}
except OSError as error:
    result["error"] = repr(error)
    if connection:
        result["info"] = info(connection)
        connection.close()
if hasattr(opened, "listener"):
    opened.listener.close()
deadline = time.monotonic() + PATIENCE
while states() and time.monotonic() < deadline:
    time.sleep(0.005)
result["states"] = states()
result["counters"] = counters()
print(json.dumps(result), flush=True)
