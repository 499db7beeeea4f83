"""Whom a suite is run against: an address that was given, or a demo of Pondage's own."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parent.parent.parent.resolve()

# A demo makes a PostgreSQL first.
START_SECONDS = 60
END_SECONDS = 20


@contextlib.contextmanager
def subject(address: str | None) -> Iterator[str]:
    """HOST:PORT of a server that lets clients in without AUTH, which no suite sends."""
    if address:
        yield address
        return
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    binary = os.environ.get("PONDAGE", target / "release/pondage")
    port = free_port()
    # What Pondage does not know of those that begin so, it refuses.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PONDAGE", "PG"))}
    environment.update({
        "PONDAGE_LISTEN__POSTGRES": f"127.0.0.1:{free_port()}",
        "PONDAGE_LISTEN__HTTP": "off",
        "PONDAGE_LISTEN__REDIS": f"127.0.0.1:{port}",
        "PONDAGE_AUTH__METHOD": "trust",
        "PONDAGE_REDIS__DATABASE": "demo",
        "PONDAGE_REDIS__DEFAULT_USER": "demo",
    })
    with tempfile.TemporaryFile() as log:
        demo = subprocess.Popen(
            [binary, "demo"], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )
        try:
            wait_for(demo, port, log)
            yield f"127.0.0.1:{port}"
        finally:
            demo.send_signal(signal.SIGTERM)
            try:
                demo.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                demo.kill()
                demo.wait()


def wait_for(demo: subprocess.Popen, port: int, log) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and demo.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as door:
            door.sendall(b"PING\r\n")
            if door.recv(100) == b"+PONG\r\n":
                return
        time.sleep(0.1)
    log.seek(0)
    said = log.read().decode(errors="replace")
    raise SystemExit(f"the demo does not answer PING (status {demo.poll()}):\n{said}")


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]
