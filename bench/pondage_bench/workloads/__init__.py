"""The workloads, one module each."""

from .base import Options, Workload
from .coalesce import Coalesce
from .connect import Connect

WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in (Connect(), Coalesce())}

__all__ = ["WORKLOADS", "Options", "Workload"]
