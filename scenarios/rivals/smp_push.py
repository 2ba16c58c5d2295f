"""Uploads a file by SMP over UDP with smpclient, as `mcumgr image upload` does.

    python3 smp_push.py fd00::2 image.bin

smpclient sends each request once. Without `--again` a lost datagram therefore ends the upload.
With it, the upload continues from the offset that the server reports for the file's SHA-256.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from pathlib import Path

from smpclient import SMPClient
from smpclient.exceptions import SMPBadSequence, SMPUploadError
from smpclient.transport.udp import SMPUDPTransport


async def upload(address: str, image: bytes, mtu: int, timeout: float, first: float) -> None:
    """One upload on a socket of its own, so that no late answer of an earlier one is read."""
    async with SMPClient(SMPUDPTransport(mtu=mtu), address, timeout_s=timeout) as client:
        async for _ in client.upload(image, first_timeout_s=first):
            pass


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description="Uploads a file by SMP over UDP.")
    options.add_argument("address", help="address of the SMP server (port 1337)")
    options.add_argument("file", type=Path, help="the image")
    options.add_argument("--mtu", type=int, default=1500, help="smpclient's MTU in bytes (default: 1500)")
    options.add_argument("--timeout", type=float, default=2.5, help="seconds to wait for an answer (default: 2.5)")
    options.add_argument("--first-timeout", type=float, default=40.0, help="the same for the first request (default: 40)")
    options.add_argument("--again", type=int, default=0, help="number of times to continue a failed upload (default: 0)")
    chosen = options.parse_args(arguments)
    try:
        image = chosen.file.read_bytes()
    except OSError as why:
        print(f"cannot read {chosen.file}: {why.strerror}", file=sys.stderr)
        return 1
    # It prints whole requests when one is not answered.
    logging.getLogger("smpclient").setLevel(logging.CRITICAL)
    began = time.monotonic()
    for attempt in range(chosen.again + 1):
        try:
            asyncio.run(upload(chosen.address, image, chosen.mtu, chosen.timeout, chosen.first_timeout))
        except (TimeoutError, SMPBadSequence) as why:
            print(f"attempt {attempt + 1}: no answer in time ({type(why).__name__})", file=sys.stderr)
        except (SMPUploadError, OSError) as why:
            print(f"the upload failed: {why}", file=sys.stderr)
            return 1
        else:
            print(f"{len(image)} bytes in {time.monotonic() - began:.1f} s, {attempt + 1} attempts")
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
