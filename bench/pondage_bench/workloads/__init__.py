"""The workloads, one module each."""

from .base import Options, Workload
from .connect import Connect

WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in (Connect(),)}

__all__ = ["WORKLOADS", "Options", "Workload"]
