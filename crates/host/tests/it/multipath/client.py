"""A client of the kernel's MPTCP: fetches / and writes the body to standard output."""

import socket
import sys

with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP) as connection:
    connection.settimeout(30)
    connection.connect((sys.argv[1], int(sys.argv[2])))
    connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
    said = b""
    while octets := connection.recv(1 << 18):
        said += octets
sys.stdout.buffer.write(said.partition(b"\r\n\r\n")[2])
