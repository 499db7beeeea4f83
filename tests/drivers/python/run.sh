#!/bin/sh
# Runs the suites of psycopg 3 and asyncpg against the server that PGHOST, PGPORT, PGUSER,
# PGPASSWORD and PGDATABASE name. The drivers come from PyPI, pinned, into a venv under target/.
set -eu
cd "$(dirname "$0")"
venv=${DRIVERS_OUT:-../../../target/drivers/python}
mkdir -p "$venv"
venv=$(cd "$venv" && pwd)
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
cmp -s requirements.txt "$venv/installed.txt" || {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r requirements.txt
    cp requirements.txt "$venv/installed.txt"
}
exec "$venv/bin/python" -m pytest -p no:cacheprovider "$@"
