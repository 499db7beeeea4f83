#!/bin/sh
# Looks at the dashboard at DASHBOARD with Debian's Chromium, while clients of the gateway at PGHOST,
# PGPORT (database PGDATABASE, user PGUSER) make load. The process GATEWAY_PID is ended and started
# anew from GATEWAY_FILE by GATEWAY_PROGRAM. SCREENSHOTS names where to put pictures, if any are wanted.
set -eu
cd "$(dirname "$0")"
cmp -s package-lock.json node_modules/.installed || {
    npm ci --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules/.installed
}
exec npm test --silent -- "$@"
