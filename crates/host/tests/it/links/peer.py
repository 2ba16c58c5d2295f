"""The ends of connections of the tests `links`: a server and a client, over the kernel's sockets.

`peer.py serve PORT` serves Multipath TCP and TCP. `peer.py pages PORT` serves HTTP over these.
`peer.py ask JSON` does one job, and prints a JSON object.
Times are milliseconds of the monotonic clock, which all namespaces share.
"""

import http.server
import json
import resource
import socket
import struct
import subprocess
import sys
import threading
import time

PIECE = 1 << 18
PATIENCE = 30
REQUEST = 2048


def now():
    return time.monotonic() * 1e3


def received(connection):
    """Bytes that arrive in each millisecond, until the peer closes."""
    buffer, bins = bytearray(PIECE), {}
    while octets := connection.recv_into(buffer):
        at = int(now())
        bins[at] = bins.get(at, 0) + octets
    return bins


def send_for(connection, seconds):
    piece, until = bytes(PIECE), now() + 1e3 * seconds
    while now() < until:
        connection.sendall(piece)
    connection.shutdown(socket.SHUT_WR)


def line(connection):
    text = b""
    while not text.endswith(b"\n"):
        octet = connection.recv(1)
        if not octet:
            raise EOFError
        text += octet
    return text.decode().split()


def exactly(connection, number):
    left = number
    while left:
        octets = connection.recv(left)
        if not octets:
            raise EOFError
        left -= len(octets)


def answer(connection):
    connection.settimeout(PATIENCE)
    with connection:
        try:
            words = line(connection)
            if words[0] == "put":
                connection.sendall(json.dumps(received(connection)).encode())
            elif words[0] == "get":
                send_for(connection, float(words[1]))
                connection.recv(1)
            elif words[0] == "echo":
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while True:
                    exactly(connection, REQUEST)
                    connection.sendall(bytes(REQUEST))
        except (EOFError, OSError):
            pass


def listening(port):
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("0.0.0.0", port))
    listener.listen(4096)
    print(f"listening on {port}", file=sys.stderr, flush=True)
    return listener


def serve(port):
    listener = listening(port)
    threading.stack_size(1 << 17)
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


PARTS, SIZE = 40, 50_000
# Loads its parts, each over a connection of its own, and says how many octets came and their sum.
PAGE = f"""<!doctype html><meta charset=utf-8><title>Parts</title><script>
const part = async n => {{
    const octets = new Uint8Array(await (await fetch(`/${{n}}`, {{cache: "no-store"}})).arrayBuffer());
    return [octets.length, octets.reduce((sum, octet, i) => (sum + octet * (1 + i % 251)) % 65521, 0)];
}};
const all = Promise.all([...Array({PARTS}).keys()].map(part));
all.then(parts => console.log("answer " + JSON.stringify(parts)), why => console.log("answer null " + why));
</script>"""


class Pages(http.server.BaseHTTPRequestHandler):
    """A page, and its parts `/N`: octets that count from N on. HTTP/1.0: each has a connection."""

    def do_GET(self):
        begin = self.path[1:]
        body = bytes((int(begin) + i) % 256 for i in range(SIZE)) if begin.isdigit() else PAGE.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream" if begin.isdigit() else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def pages(port):
    server = http.server.ThreadingHTTPServer(("", port), Pages, bind_and_activate=False)
    server.socket.close()
    server.socket = listening(port)
    server.serve_forever()


def opened(job):
    """A connection to the server: by Multipath TCP of the kernel, by TCP from an address, or by a proxy."""
    host, port = job["to"]
    if "socks" in job:
        connection = socket.create_connection(("127.0.0.1", job["socks"]), PATIENCE)
        connection.sendall(b"\5\1\0")
        exactly(connection, 2)
        connection.sendall(b"\5\1\0\1" + socket.inet_aton(host) + struct.pack("!H", port))
        reply = connection.recv(10, socket.MSG_WAITALL)
        if reply[1:2] != b"\0":
            raise SystemExit(f"the proxy says {reply}")
        return connection
    protocol = socket.IPPROTO_TCP if "from" in job else socket.IPPROTO_MPTCP
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    if "congestion" in job:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, job["congestion"].encode())
    if "from" in job:
        connection.bind((job["from"], 0))
    connection.settimeout(PATIENCE)
    connection.connect((host, port))
    return connection


def put(job):
    with opened(job) as connection:
        connection.sendall(b"put\n")
        events = threading.Thread(target=happen, args=(job,))
        events.start()
        send_for(connection, job["seconds"])
        text = b""
        while octets := connection.recv(PIECE):
            text += octets
        events.join()
        return {"bins": json.loads(text), "events": job["events"]}


def get(job):
    with opened(job) as connection:
        connection.sendall(f"get {job['seconds']}\n".encode())
        events = threading.Thread(target=happen, args=(job,))
        events.start()
        bins = received(connection)
        events.join()
        return {"bins": bins, "events": job["events"]}


def happen(job):
    """Runs commands at their times, and notes when they begin and are done."""
    begin = now()
    for event in job["events"]:
        time.sleep(max(0, event["at"] - (now() - begin)) / 1e3)
        event["begun"] = now()
        subprocess.run(event["run"], shell=True, check=True)
        event["done"] = now()


def echo(job):
    """The times of requests and their responses, one after the other with a pause."""
    times, until = [], now() + 1e3 * job["seconds"]
    with opened(job) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(b"echo\n")
        while now() < until:
            begin = now()
            connection.sendall(bytes(REQUEST))
            exactly(connection, REQUEST)
            times.append(now() - begin)
            time.sleep(job["pause"] / 1e3)
    return {"times": times}


def many(job):
    """Connections at once, each with one request; then connections one after the other."""
    socks = []
    for _ in range(job["at_once"]):
        socks.append(opened(job))
        socks[-1].sendall(b"echo\n" + bytes(REQUEST))
    for connection in socks:
        exactly(connection, REQUEST)
    for connection in socks:
        connection.sendall(bytes(REQUEST))
        exactly(connection, REQUEST)
    print("open", flush=True)
    sys.stdin.readline()
    for connection in socks:
        connection.close()
    for number in range(job["in_turn"]):
        try:
            with opened(job) as connection:
                connection.sendall(b"echo\n" + bytes(REQUEST))
                exactly(connection, REQUEST)
        except OSError as error:
            return {"failed": f"connection {number} in turn: {error}"}
    return {}


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
elif sys.argv[1] == "pages":
    pages(int(sys.argv[2]))
else:
    job = json.loads(sys.argv[2])
    job.setdefault("events", [])
    try:
        outcome = {"put": put, "get": get, "echo": echo, "many": many}[job["kind"]](job)
    except TimeoutError as stopped:
        print(f"{job}: {stopped}", file=sys.stderr)
        outcome = {"bins": {}, "events": job["events"]}
    used = resource.getrusage(resource.RUSAGE_SELF)
    outcome["processor"] = used.ru_utime + used.ru_stime
    print(json.dumps(outcome))
