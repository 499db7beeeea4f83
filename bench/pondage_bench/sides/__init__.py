"""What is compared: PostgreSQL itself, Pondage, and the poolers found on this machine."""

from .base import Gateway, Side
from .discover import Peer, all_sides, parse_peers, select

__all__ = ["Gateway", "Peer", "Side", "all_sides", "parse_peers", "select"]
