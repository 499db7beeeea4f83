"""The limit of a database: PostgreSQL, asked in the way it answers fastest."""

from __future__ import annotations

from .base import Direct


class Limit(Direct):
    """Each load that knows such a way says so; the others refuse this side."""

    name = "limit"
    kind = "limit"
    description = "PostgreSQL itself, asked as it answers fastest: each load says how"
