"""Starts Debian's atftpd on IPv6, whose daemon mode binds IPv4 only: as inetd does, with the socket
as its standard input. Options and the folder are atftpd's own.

    python3 tftp_server.py --no-fork /srv/tftp
"""

import os
import socket
import sys

PORT = 69

with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as at:
    at.bind(("::", PORT))
    os.dup2(at.fileno(), 0)
    try:
        os.execvp("atftpd", ["atftpd", *sys.argv[1:]])
    except FileNotFoundError:
        sys.exit("atftpd is missing: as root, `apt-get install atftpd`")
