#!/bin/sh
# Looks at everything below packaging/: PROGRAM is the binary to pack. The checkers come from PyPI.
set -eu
cd "$(dirname "$0")"
venv=${PACKAGING_VENV:-.venv}
cmp -s requirements.txt "$venv/installed.txt" || {
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
    cp requirements.txt "$venv/installed.txt"
}
# Packed quickly: it is thrown away.
export DPKG_DEB_OPTIONS="-Zgzip -z1"
exec "$venv/bin/python" -m unittest -v "$@"
