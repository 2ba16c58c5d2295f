"""Bulk TCP flows of the kernel: `sink PORT` reads; `send HOST PORT CONTROLLER FLOWS SECONDS` prints a JSON object."""
import json
import os
import signal
import socket
import struct
import sys
import threading
import time


def sink(port):
    def drain(connection):
        try:
            while connection.recv(1 << 18):
                pass
        except OSError:
            pass

    listener = socket.create_server(("::", int(port)), family=socket.AF_INET6, backlog=64)
    print("ready", flush=True)
    while True:
        threading.Thread(target=drain, args=[listener.accept()[0]], daemon=True).start()


def info(flow):
    # struct tcp_info of linux/tcp.h, to which newer kernels only append.
    raw = flow.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
    (mss,), (srtt,), (again,) = (struct.unpack_from("=I", raw, at) for at in (16, 68, 100))
    (acked,) = struct.unpack_from("=Q", raw, 120)
    # Time in which the receiver's window or the send buffer was the limit.
    limited = sum(struct.unpack_from("=2Q", raw, 176)) / 1e6
    return {"mss": mss, "srtt": srtt / 1e6, "again": again, "acked": acked, "limited": limited}


def timeouts():
    lines = [line.split() for line in open("/proc/net/netstat") if line.startswith("TcpExt:")]
    return int(dict(zip(*lines))["TCPTimeouts"])


def uptime():
    return float(open("/proc/uptime").read().split()[0])


def send(host, port, controller, flows, seconds):
    began, begin, before, open_flows = uptime(), time.monotonic(), timeouts(), []

    def fill(number):
        time.sleep(max(0, begin + 0.01 * number - time.monotonic()))
        flow = socket.socket(socket.AF_INET6)
        flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
        flow.connect((host, int(port)))
        open_flows.append(flow)
        data = bytes(1 << 16)
        while True:
            flow.sendall(data)

    for number in range(int(flows)):
        threading.Thread(target=fill, args=[number], daemon=True).start()
    sums, samples = 0, 0
    for tick in range(1, 10 * int(seconds) + 1):
        time.sleep(max(0, begin + 0.1 * tick - time.monotonic()))
        for flow in list(open_flows):
            sums, samples = sums + info(flow)["srtt"], samples + 1
    elapsed = time.monotonic() - begin
    result = {
        "flows": [info(flow) for flow in open_flows],
        "srtt": sums / max(samples, 1),
        "timeouts": timeouts() - before,
        "elapsed": elapsed,
        "began": began,
    }
    print(json.dumps(result), flush=True)
    os._exit(0)


# A process whose peer is gone ends too.
signal.alarm(3600)
{"sink": sink, "send": send}[sys.argv[1]](*sys.argv[2:])
