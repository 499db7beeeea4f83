#!/bin/sh
# Runs the suite of pgx against the server that PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE
# name. Go fetches the driver as go.mod and go.sum say.
set -eu
cd "$(dirname "$0")"
exec go test -count=1 -v -timeout 300s "$@" ./...
