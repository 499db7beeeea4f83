"""SCRAM-SHA-256 without channel binding: the secret a server keeps, and the client's part.

Source: RFC 5802, RFC 7677; PostgreSQL documentation, "SASL Authentication" and "pg_authid".
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os

MECHANISM = "SCRAM-SHA-256"
ITERATIONS = 4096
SALT_BYTES = 16
NONCE_BYTES = 18
# No channel binding, no authorization identity: `n,,` and its base64.
HEADER, HEADER_BASE64 = "n,,", "biws"


class ScramError(Exception):
    """What a server said is not SCRAM, or proves that it does not know the password."""


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _salted(password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)


def secret(password: str, salt: bytes | None = None) -> str:
    """As in `pg_authid.rolpassword`."""
    salt = salt or os.urandom(SALT_BYTES)
    salted = _salted(password, salt, ITERATIONS)
    stored = hashlib.sha256(_mac(salted, b"Client Key")).digest()
    server = _mac(salted, b"Server Key")
    told = [base64.b64encode(part).decode() for part in (salt, stored, server)]
    return f"{MECHANISM}${ITERATIONS}:{told[0]}${told[1]}:{told[2]}"


class Exchange:
    """One log-in: `first`, then `final` with the server's first message, then `check`."""

    def __init__(self, password: str, user: str = "", nonce: str | None = None) -> None:
        """PostgreSQL goes by the name in the StartupMessage, and needs none here."""
        self._password = password
        self._nonce = nonce or base64.b64encode(os.urandom(NONCE_BYTES)).decode()
        self._bare = f"n={user},r={self._nonce}"
        self._signature = b""

    def first(self) -> bytes:
        return (HEADER + self._bare).encode()

    def final(self, server_first: bytes) -> bytes:
        fields = _fields(server_first)
        try:
            nonce, salt, iterations = fields["r"], base64.b64decode(fields["s"]), int(fields["i"])
        except (KeyError, ValueError) as error:
            raise ScramError(f"not a server's first message: {server_first!r}") from error
        if not nonce.startswith(self._nonce):
            raise ScramError("the server's nonce does not begin with ours")
        salted = _salted(self._password, salt, iterations)
        client = _mac(salted, b"Client Key")
        without_proof = f"c={HEADER_BASE64},r={nonce}"
        told = ",".join((self._bare, server_first.decode(), without_proof)).encode()
        masked = _mac(hashlib.sha256(client).digest(), told)
        proof = bytes(one ^ other for one, other in zip(client, masked, strict=True))
        self._signature = _mac(_mac(salted, b"Server Key"), told)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def check(self, server_final: bytes) -> None:
        if _fields(server_final).get("v") != base64.b64encode(self._signature).decode():
            raise ScramError("the server does not know the password")


def _fields(message: bytes) -> dict[str, str]:
    return dict(part.split("=", 1) for part in message.decode().split(",") if "=" in part)
