"""Records of sensors.toml: `wait`, `send`, `serve` and `report`. Times are milliseconds since 1970."""

import datetime
import functools
import json
import os
import random
import selectors
import socket
import sys
import time

# Bytes of a record, and seconds between two records.
RECORD = int(os.environ.get("RECORD", "273"))
INTERVAL = float(os.environ.get("INTERVAL", "0.075"))
PORT = 47400


def wait(seconds):
    """Waits for `seconds` seconds and a random part of an interval."""
    time.sleep(float(seconds) + random.random() * INTERVAL)


def send(over, host, before, seconds, after):
    """Writes a record each `INTERVAL` to standard output, or to a TCP or UDP socket.

    Writing begins `before` seconds after the start and lasts `seconds` seconds.
    """
    if over == "tcp":
        end = socket.socket()
        # 12 bytes of each segment are the option of time stamps.
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, RECORD + 12)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if congestion := os.environ.get("CONGESTION"):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        end.connect((host, PORT))
        write = end.sendall
    elif over == "udp":
        end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        end.connect((host, PORT))
        write = end.send
    else:
        write = functools.partial(os.write, 1)
    # A line without its line feed is the record of `sense`.
    length = RECORD - 1 if over in ("tcp", "udp") else RECORD
    begin = time.time() + float(before)
    for number in range(round(float(seconds) / INTERVAL)):
        at = begin + number * INTERVAL
        time.sleep(max(0, at - time.time()))
        write(f"{number} {at * 1000:.3f}".ljust(length).encode() + b"\n")
    time.sleep(float(after))


def serve(over, host, out):
    """Writes a line for each record that arrives, as `sink` does."""
    with open(out, "w", buffering=1) as lines, selectors.DefaultSelector() as selector:

        def note(peer, record):
            line = {"sender": f"{peer[0]}:{peer[1]}", "received": time.time() * 1000, "payload": record.decode()}
            lines.write(json.dumps(line) + "\n")

        def accept(listener):
            end, peer = listener.accept()
            rest = bytearray()

            def read(end):
                octets = end.recv(65536)
                if not octets:
                    selector.unregister(end)
                    end.close()
                rest.extend(octets)
                while len(rest) >= RECORD:
                    note(peer, rest[:RECORD])
                    del rest[:RECORD]

            selector.register(end, selectors.EVENT_READ, read)

        def receive(end):
            record, peer = end.recvfrom(65536)
            note(peer, record)

        kind = socket.SOCK_STREAM if over == "tcp" else socket.SOCK_DGRAM
        end = socket.socket(socket.AF_INET, kind)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        end.bind((host, PORT))
        if over == "tcp":
            end.listen()
        selector.register(end, selectors.EVENT_READ, accept if over == "tcp" else receive)
        while True:
            for key, _ in selector.select():
                key.data(key.fileobj)


def millis(received):
    if isinstance(received, str):
        return datetime.datetime.fromisoformat(received.replace("Z", "+00:00")).timestamp() * 1000
    return received


def report(path, seconds, after, senders):
    """Prints what has arrived of the records of `senders` senders.

    Records that come more than `after` seconds late do not count.
    """
    delays, numbers, made = [], {}, int(senders) * round(float(seconds) / INTERVAL)
    begin = None
    for line in map(json.loads, open(path)):
        if "payload" not in line:
            continue
        number, created = line["payload"].split()
        created, received = float(created), millis(line["received"])
        begin = created if begin is None else min(begin, created)
        numbers.setdefault(line["sender"], []).append(int(number))
        if received <= begin + (float(seconds) + float(after)) * 1000:
            delays.append((received - created) / 1000)
    delays.sort()
    at = lambda share: delays[min(int(share * len(delays)), len(delays) - 1)] if delays else None  # noqa: E731
    print(json.dumps({
        "records": made,
        "delivered": len(delays),
        "delivery_ratio": len(delays) / made,
        "in_order": all(list == sorted(set(list)) for list in numbers.values()),
        "throughput_bit_per_s": len(delays) * RECORD * 8 / float(seconds),
        "delay_mean_s": sum(delays) / len(delays) if delays else None,
        "delay_p50_s": at(0.5),
        "delay_p95_s": at(0.95),
    }))


if __name__ == "__main__":
    {"wait": wait, "send": send, "serve": serve, "report": report}[sys.argv[1]](*sys.argv[2:])
