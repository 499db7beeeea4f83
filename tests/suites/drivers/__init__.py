"""The suites that others have written for PostgreSQL and its drivers, one class each."""

from . import golang, java, postgres, python, rust
from .base import Suite


def all_suites() -> dict[str, Suite]:
    """By name, in the order in which they are run."""
    suites: list[Suite] = [
        postgres.Regress(), postgres.Isolation(), postgres.Pipeline(),
        python.Asyncpg(), python.Psycopg2(), python.Sqlalchemy(), golang.Pgx(),
        rust.TokioPostgres(), java.Pgjdbc(),
    ]
    return {suite.name: suite for suite in suites}
