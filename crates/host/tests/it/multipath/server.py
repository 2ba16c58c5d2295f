"""An HTTP server of MPTCP or TCP: GET answers with a file, PUT says whether the body equals it."""

import socket
import sys
import threading

protocol = socket.IPPROTO_MPTCP if sys.argv[1] == "mptcp" else socket.IPPROTO_TCP
contents = open(sys.argv[3], "rb").read()
listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, protocol)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
listener.bind(("::", int(sys.argv[2])))
listener.listen(1024)
print("ready", flush=True)


def read(connection):
    said = b""
    while b"\r\n\r\n" not in said:
        octets = connection.recv(1 << 16)
        if not octets:
            return b"", b""
        said += octets
    head, _, body = said.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    if b"expect" in fields:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    while len(body) < int(fields.get(b"content-length", 0)):
        octets = connection.recv(1 << 18)
        if not octets:
            break
        body += octets
    return head, body


def answer(connection):
    with connection:
        head, body = read(connection)
        said = contents if head.startswith(b"GET") else b"same" if body == contents else b"different"
        connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(said) + said)


while True:
    threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
