"""The workloads, one module each."""

from .base import Options, Workload
from .cache import Cache
from .coalesce import Coalesce
from .connect import Connect
from .prepared import Prepared
from .procedure import Procedure
from .redis import Redis
from .session import Session

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Connect(), Coalesce(), Prepared(), Redis(), Cache(), Procedure(), Session()
    )
}

__all__ = ["WORKLOADS", "Options", "Workload"]
