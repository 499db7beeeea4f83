#!/bin/sh
# Runs the suites of redis-py, Celery and Flask-Session, and the commands that Sidekiq and Rails
# send, against the server that REDIS_URL names. The drivers come from PyPI, pinned, into a venv
# under target/.
set -eu
cd "$(dirname "$0")"
venv=${DRIVERS_OUT:-../../../target/drivers/redis-python}
mkdir -p "$venv"
venv=$(cd "$venv" && pwd)
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
cmp -s requirements.txt "$venv/installed.txt" || {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r requirements.txt
    cp requirements.txt "$venv/installed.txt"
}
exec "$venv/bin/python" -m pytest -p no:cacheprovider "$@"
