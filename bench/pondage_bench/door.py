"""What clients of a gateway must bring to come in, where that is more than a name."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from . import scram
from .processes import Supervisor

CERTIFICATE_SECONDS = 30.0


@dataclass(frozen=True)
class Certificate:
    path: Path
    key: Path


@dataclass(frozen=True)
class Door:
    """Passwords are proven by SCRAM-SHA-256, from a secret that is kept as PostgreSQL keeps it.
    TLS is offered where there is a certificate.
    """

    password: str | None = None
    certificate: Certificate | None = None

    def conninfo(self, database: str) -> str:
        """In place of a database's name, for libpq's programs."""
        password = f" password={self.password}" if self.password else ""
        mode = "require" if self.certificate else "disable"
        return f"dbname={database}{password} sslmode={mode}"

    def secret(self) -> str | None:
        return scram.secret(self.password) if self.password else None


OPEN = Door()


def lacks_openssl() -> str | None:
    return None if shutil.which("openssl") else "openssl, which makes the certificate, is missing"


def certificate(supervisor: Supervisor) -> Certificate:
    """A self-signed one with an ECDSA key of P-256, made once for all sides."""
    made = Certificate(supervisor.directory / "door.crt", supervisor.directory / "door.key")
    if not made.path.exists():
        supervisor.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
             "-days", "2", "-keyout", made.key, "-out", made.path],
            timeout=CERTIFICATE_SECONDS,
        )  # fmt: skip
    return made
