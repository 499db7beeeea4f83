"""The workloads, one module each."""

from .base import Options, Workload
from .coalesce import Coalesce
from .connect import Connect
from .prepared import Prepared
from .redis import Redis

WORKLOADS: dict[str, Workload] = {
    workload.name: workload for workload in (Connect(), Coalesce(), Prepared(), Redis())
}

__all__ = ["WORKLOADS", "Options", "Workload"]
