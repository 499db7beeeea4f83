"""What a workload is to the runner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from ..loads import Load
from ..postgres import Cluster


@dataclass(frozen=True)
class Options:
    """Sizes given on the command line; a workload takes those that concern it."""

    scales: tuple[int, ...]
    clients: int
    idle_clients: int


class Workload(ABC):
    name: str
    title: str

    def settings(self) -> dict[str, str]:
        """PostgreSQL settings beyond those every workload gets."""
        return {}

    @abstractmethod
    def prepare(self, cluster: Cluster, options: Options) -> Sequence[str]:
        """Fills the freshly started cluster; notes for the report, such as what had no room."""

    @abstractmethod
    def loads(self, options: Options) -> Sequence[Load]:
        """In the order of the report."""
