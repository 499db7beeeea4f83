#!/bin/sh
# Runs the suite of pgjdbc against the server that PGHOST, PGPORT, PGUSER, PGPASSWORD and
# PGDATABASE name. Maven fetches the driver and JUnit, pinned in pom.xml.
set -eu
cd "$(dirname "$0")"
out=${DRIVERS_OUT:-../../../target/drivers/java}
mkdir -p "$out"
out=$(cd "$out" && pwd)
exec mvn --batch-mode --no-transfer-progress "-DbuildDirectory=$out" test "$@"
