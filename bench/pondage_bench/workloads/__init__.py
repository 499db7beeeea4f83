"""The workloads, one module each."""

from .base import Options, Workload
from .coalesce import Coalesce
from .connect import Connect
from .prepared import Prepared

WORKLOADS: dict[str, Workload] = {
    workload.name: workload for workload in (Connect(), Coalesce(), Prepared())
}

__all__ = ["WORKLOADS", "Options", "Workload"]
