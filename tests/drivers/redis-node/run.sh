#!/bin/sh
# Runs the suites of ioredis, node-redis, BullMQ, connect-redis and rate-limit-redis against the
# server that REDIS_URL names. The drivers come from npm, as package-lock.json says.
set -eu
cd "$(dirname "$0")"
cmp -s package-lock.json node_modules/.installed || {
    # Not `npm ci`: the lock names other systems' binaries of msgpackr-extract, which is optional
    # and not to be had everywhere, and that refuses a lock with less than everything.
    npm install --no-save --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules/.installed
}
exec npm test --silent -- "$@"
