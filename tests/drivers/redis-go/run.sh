#!/bin/sh
# Runs the suite of go-redis against the server that REDIS_URL names. Go fetches the driver as
# go.mod and go.sum say.
set -eu
cd "$(dirname "$0")"
exec go test -count=1 -v -timeout 300s "$@" ./...
