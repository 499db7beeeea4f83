#!/bin/sh
# Runs the suite of node-postgres against the server that PGHOST, PGPORT, PGUSER, PGPASSWORD and
# PGDATABASE name. The drivers come from npm, as package-lock.json says.
set -eu
cd "$(dirname "$0")"
cmp -s package-lock.json node_modules/.installed || {
    npm ci --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules/.installed
}
exec npm test --silent -- "$@"
