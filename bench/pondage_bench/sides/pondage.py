"""Pondage itself, and variants of it that differ by a few options."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..postgres import Upstream
from ..processes import BenchError, Supervisor, environment
from .base import MAX_CLIENTS, POOL_SIZE, VERSION_SECONDS, Gateway, Ready, Transport
from .constant import Constant

CONFIGURATION = "pondage.toml"


@dataclass(frozen=True)
class Variant:
    """Options of `[pool]` that differ from the defaults, as TOML values, and for which loads."""

    suffix: str
    pool: Mapping[str, str]
    made_for: frozenset[str] = field(default_factory=frozenset)


class Pondage(Gateway):
    """Reaches a server on its own machine through the Unix socket, as it does by default."""

    kind = "pondage"
    default_transport = Transport.UNIX

    def __init__(
        self,
        name: str,
        binary: Path,
        transport: Transport = Transport.UNIX,
        variant: Variant | None = None,
    ) -> None:
        super().__init__(name, binary, transport)
        self._pool: Mapping[str, str] = {}
        if variant is not None:
            self.name += f"-{variant.suffix}"
            self.made_for = variant.made_for
            self._pool = variant.pool

    @property
    def description(self) -> str:
        options = ", ".join(f"{name} = {value}" for name, value in self._pool.items())
        return super().description + (f", {options}" if options else "")

    def unavailable(self) -> str | None:
        """An older build does not know the options of newer variants."""
        if not self._pool:
            return None
        with tempfile.TemporaryDirectory() as directory:
            upstream = Upstream("127.0.0.1", 5432, Path(directory), "postgres", "postgres")
            path = Path(directory)
            self.prepare(path, 6432, upstream)
            try:
                told = subprocess.run(
                    [self.binary, "check", "-c", path / CONFIGURATION],
                    capture_output=True,
                    text=True,
                    timeout=VERSION_SECONDS,
                    check=False,
                    env=environment(),
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise BenchError(f"{self.binary} check: {error}") from error
        if told.returncode == 0:
            return None
        lines = told.stderr.strip().splitlines()
        return f"this build of it refuses the configuration: {lines[0] if lines else 'silently'}"

    def prepare(self, directory: Path, port: int, upstream: Upstream) -> Ready:
        options = "".join(f"{name} = {value}\n" for name, value in self._pool.items())
        pool = f"[pool]\n{options}\n" if options else ""
        text = f"""\
[listen]
postgres = ["127.0.0.1:{port}"]
http = "off"

[runtime]
max_clients = {MAX_CLIENTS}

[auth]
method = "trust"

{pool}[databases.{upstream.database}]
host = "{self.upstream_host(upstream)}"
port = {upstream.port}
dbname = "{upstream.database}"
user = "{upstream.user}"
pool_size = {POOL_SIZE}
mode = "transaction"
"""
        path = directory / CONFIGURATION
        path.write_text(text)
        return Ready([self.program, "serve", "-c", path], text)


class PondageOnConstant(Pondage):
    """What the gateway alone can do, with a server behind it that costs next to nothing."""

    kind = "constant"
    stores = False

    def __init__(self, name: str, binary: Path) -> None:
        super().__init__(name, binary)
        self.name += "-constant"
        self._constant = Constant(f"{self.name}-behind")

    @property
    def description(self) -> str:
        return "pondage, in front of a server that answers a constant: the limit of the gateway"

    def start(self, supervisor: Supervisor, upstream: Upstream) -> None:
        self._constant.start(supervisor, upstream)
        try:
            super().start(supervisor, self._constant.as_upstream())
        except BaseException:
            self._constant.stop()
            raise

    def stop(self) -> None:
        super().stop()
        self._constant.stop()

    @property
    def database_pid(self) -> int | None:
        return self._constant.pid
