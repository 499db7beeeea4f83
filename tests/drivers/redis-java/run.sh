#!/bin/sh
# Runs the suite of Jedis against the server that REDIS_URL names. Maven fetches the driver and
# JUnit, pinned in pom.xml.
set -eu
cd "$(dirname "$0")"
out=${DRIVERS_OUT:-../../../target/drivers/redis-java}
mkdir -p "$out"
out=$(cd "$out" && pwd)
exec mvn --batch-mode --no-transfer-progress "-DbuildDirectory=$out" test "$@"
