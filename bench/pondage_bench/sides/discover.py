"""Finding the sides of this machine, and choosing among them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..processes import BenchError
from .base import Direct, Gateway, Side
from .constant import Constant
from .odyssey import Odyssey
from .pgbouncer import PgBouncer
from .pgcat import PgCat
from .pgdog import PgDog
from .pondage import Pondage

RIVALS: Mapping[str, type[Gateway]] = {
    rival.kind: rival for rival in (PgBouncer, Odyssey, PgCat, PgDog)
}
# Debian keeps servers there, and it is not on the PATH of ordinary users.
EXTRA_PATH = "/usr/sbin:/usr/local/sbin"


@dataclass(frozen=True)
class Peer:
    """A rival's binary: given in BENCH_PEERS, or found on the PATH under its own name."""

    name: str
    binary: Path
    kind: type[Gateway]


def kind_of(name: str, binary: Path) -> type[Gateway]:
    """By the beginning of the given name (`pgbouncer125`), else by that of the file's name."""
    for text in (name, binary.name):
        for kind, gateway in RIVALS.items():
            if text.startswith(kind):
                return gateway
    raise BenchError(
        f"BENCH_PEERS: which program is {name}={binary}? Begin its name with one of "
        + ", ".join(RIVALS)
    )


def parse_peers(text: str) -> list[Peer]:
    """`name=path,name=path` of BENCH_PEERS. Raises BenchError naming the part that is wrong."""
    peers: list[Peer] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, path = part.partition("=")
        if not equals or not name or not path:
            raise BenchError(f"BENCH_PEERS: expected name=path, got `{part}`")
        binary = Path(path)
        if not os.access(binary, os.X_OK) or not binary.is_file():
            raise BenchError(f"BENCH_PEERS: {binary} is not a program")
        peers.append(Peer(name, binary, kind_of(name, binary)))
    return peers


def installed_peers() -> list[Peer]:
    path = os.environ.get("PATH", "") + ":" + EXTRA_PATH
    found = ((kind, shutil.which(kind, path=path)) for kind in RIVALS)
    return [Peer(kind, Path(binary), RIVALS[kind]) for kind, binary in found if binary]


def all_sides(pondage: Path, peers: Sequence[Peer]) -> list[Side]:
    """Everything that can take part, each gateway once per way to reach PostgreSQL.

    A peer of BENCH_PEERS takes the place of an installed program of the same name.
    """
    programs: dict[str, tuple[type[Gateway], Path]] = {}
    if pondage.is_file():
        programs["pondage"] = (Pondage, pondage)
    for peer in (*installed_peers(), *peers):
        programs[peer.name] = (peer.kind, peer.binary)
    sides: list[Side] = [Direct()]
    for name, (kind, binary) in programs.items():
        ways = sorted(kind.transports, key=lambda way: way is not kind.default_transport)
        sides.extend(kind(name, binary, way) for way in ways)
    sides.append(Constant())
    return sides


def select(sides: Sequence[Side], wanted: Sequence[str]) -> list[Side]:
    """The wanted sides in the wanted order, else those that take part by themselves; BenchError
    for one that there is not.
    """
    by_name = {side.name: side for side in sides}
    unknown = [name for name in wanted if name not in by_name]
    if unknown:
        raise BenchError(
            f"no side {', '.join(unknown)} on this machine; there are {', '.join(by_name)}"
        )
    return [by_name[name] for name in wanted] if wanted else [s for s in sides if s.by_default]
