"""What is compared: PostgreSQL itself, Pondage, and the poolers found on this machine."""

from .base import Gateway, Side
from .discover import Peer, all_sides, parse_peers, select
from .limit import Limit
from .pondage import NO_MEMORY, Mirror, Pondage, PondageOnConstant, Variant
from .statements import StatementByStatement

__all__ = [
    "NO_MEMORY",
    "Gateway",
    "Limit",
    "Mirror",
    "Peer",
    "Pondage",
    "PondageOnConstant",
    "Side",
    "StatementByStatement",
    "Variant",
    "all_sides",
    "parse_peers",
    "select",
]
