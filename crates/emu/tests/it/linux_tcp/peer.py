"""The kernel's end of a connection: sends a file, compares what comes with another, and says how it went.

It runs in a network namespace of its own, and sets options of TCP there. The last line that it prints is JSON.
"""

import json
import os
import socket
import struct
import sys
import threading
import time

cell = json.loads(sys.argv[1])
outgoing = open(cell["send"], "rb").read()
expected = open(cell["expect"], "rb").read()
PATIENCE = 40

for option in ("sack", "timestamps", "window_scaling"):
    with open("/proc/sys/net/ipv4/tcp_" + option, "w") as file:
        file.write("1" if cell[option] else "0")
for option, value in cell["sysctls"].items():
    with open("/proc/sys/net/ipv4/" + option, "w") as file:
        file.write(str(value))


def counters():
    """What this namespace's TCP has counted."""
    figures = {}
    for path, group in (("/proc/net/snmp", "Tcp"), ("/proc/net/netstat", "TcpExt"), ("/proc/net/netstat", "IpExt")):
        rows = [line.split() for line in open(path) if line.startswith(group + ":")]
        figures.update(zip(rows[0][1:], map(int, rows[1][1:])))
    if ":" in cell["address"]:
        for name, value in map(str.split, open("/proc/net/snmp6")):
            figures[name.removeprefix("Ip6")] = int(value)
    return figures


def info(connection):
    """Fields of TCP_INFO, when everything that was sent has been acknowledged."""
    places = {
        "options": ("B", 5),
        "unacked": ("I", 24),
        "ssthresh": ("I", 76),
        "total_retrans": ("I", 100),
        "delivered_ce": ("I", 196),
        "dsack_dups": ("I", 216),
    }
    deadline = time.monotonic() + PATIENCE
    while True:
        octets = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 224)
        fields = {name: struct.unpack_from("=" + kind, octets, at)[0] for name, (kind, at) in places.items()}
        if fields["unacked"] == 0 or time.monotonic() > deadline:
            return fields
        time.sleep(0.005)


def dropped():
    """Packets that the kernel's devices have dropped, in either direction."""
    rows = [line.split(":")[1].split() for line in open("/proc/net/dev").readlines()[2:]]
    return sum(int(row[3]) + int(row[11]) for row in rows)


def states():
    """The states of all connections in this namespace, without those in TIME-WAIT and listeners."""
    rows = []
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(path):
            rows += [line.split()[3] for line in open(path).readlines()[1:]]
    return [state for state in rows if state not in ("06", "0A")]


def opened():
    family = socket.AF_INET6 if ":" in cell["address"] else socket.AF_INET
    first = socket.socket(family, socket.SOCK_STREAM)
    first.settimeout(PATIENCE)
    if cell["congestion"]:
        first.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cell["congestion"].encode())
    if cell["receive_buffer"]:
        first.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, cell["receive_buffer"])
    if cell["opens"]:
        print("ready", flush=True)
        first.connect((cell["address"], cell["port"]))
        return first
    first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    first.bind((cell["address"], cell["port"]))
    first.listen()
    print("ready", flush=True)
    connection, _ = first.accept()
    first.close()
    connection.settimeout(PATIENCE)
    return connection


def send(connection):
    connection.sendall(outgoing)
    connection.shutdown(socket.SHUT_WR)


def receive(connection):
    """Reads to the end; the place of the first octet that differs, or nothing."""
    # The peer meets a window that closes: nothing is read until something has come, and then nothing more for a while.
    before, waiting = 0, cell["stall"] > 0
    while waiting:
        time.sleep(cell["stall"])
        readable = len(connection.recv(1 << 20, socket.MSG_PEEK))
        before, waiting = readable, readable > before
    at, wrong = 0, None
    while octets := connection.recv(1 << 16):
        if wrong is None and octets != expected[at : at + len(octets)]:
            wrong = at
        at += len(octets)
    return at, wrong


result = {"error": None}
try:
    connection = opened()
    if cell["order"] == "kernel-first":
        send(connection)
        result["received"], result["wrong"] = receive(connection)
    elif cell["order"] == "ours-first":
        result["received"], result["wrong"] = receive(connection)
        send(connection)
    else:
        sender = threading.Thread(target=send, args=(connection,), daemon=True)
        sender.start()
        result["received"], result["wrong"] = receive(connection)
        sender.join(PATIENCE)
    result["info"] = info(connection)
    connection.close()
    deadline = time.monotonic() + PATIENCE
    while states() and time.monotonic() < deadline:
        time.sleep(0.005)
except OSError as error:
    result["error"] = repr(error)
result["states"] = states()
result["dropped"] = dropped()
result["counters"] = counters()
print(json.dumps(result), flush=True)
