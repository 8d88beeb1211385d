#!/usr/bin/env bash
# For `make chaos` only: crashes, stops and starts the servers of a run in progress. STATE is the directory of the run.
#
# chaos-servers.sh crash-postgres | start-postgres | kill-redis | start-redis
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/servers.sh"

# Committed data must survive a crash of the server, which needs synchronous_commit, but not a crash of the machine, which
# would need fsync.
readonly CHAOS_POSTGRES_PORT=19432
readonly CHAOS_REDIS_PORT=19379
readonly CHAOS_POSTGRES_SETTINGS=(fsync=off max_wal_size=4GB log_min_duration_statement=5000)

start_chaos_postgres() { start_postgres "$CHAOS_POSTGRES_PORT" "${CHAOS_POSTGRES_SETTINGS[@]}"; }
start_chaos_redis() { start_redis "$CHAOS_REDIS_PORT" --save '' --appendonly no; }

# restart_in_place START NAME : starts a server on its old port, or fails: the running processes know no other port.
restart_in_place() {
    local port
    port=$(cat "$STATE/ports/$2")
    "$1"
    [[ $(cat "$STATE/ports/$2") == "$port" ]] || die "$2 could not get its port $port again"
}

# Sourced by chaos.sh, which starts both servers the first time.
[[ ${BASH_SOURCE[0]} == "$0" ]] || return 0

case ${1:-} in
crash-postgres)
    signal postgres QUIT
    await_end postgres QUIT
    ;;
start-postgres) restart_in_place start_chaos_postgres postgres ;;
kill-redis)
    signal redis KILL
    await_end redis KILL
    ;;
start-redis) restart_in_place start_chaos_redis redis ;;
*) die "crash-postgres, start-postgres, kill-redis or start-redis" ;;
esac
