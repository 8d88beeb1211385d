#!/usr/bin/env bash
# make bench: measures the performance of Waypost, each figure beside a baseline; see bench/. It builds release programs
# and starts a PostgreSQL with its default durability and a Redis for this run. Nothing else should run on the machine.
#
# ONLY=accept,drain measures only these sections. GATE=15 fails if row 15 misses its bound. The table is printed, the
# figures are in .dev/bench.json.
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/servers.sh"

readonly BENCH_POSTGRES_PORT=17432
readonly BENCH_REDIS_PORT=17379
# Memory for millions of rows, and checkpoints by time instead of size. Durability is the default of PostgreSQL: fsync,
# full_page_writes and synchronous_commit are on. wal_level=minimal (no replication) halves the cost of copying millions
# of rows in and does not change single commits. pg_stat_statements counts the statements.
readonly BENCH_POSTGRES_SETTINGS=(shared_buffers=2GB min_wal_size=8GB max_wal_size=8GB maintenance_work_mem=1GB wal_level=minimal
    max_wal_senders=0 shared_preload_libraries=pg_stat_statements)
# The number of 16 MiB segments that max_wal_size allows.
readonly BENCH_WAL_SEGMENTS=512

main() {
    local since
    local -a only=() gate=()
    since=$(now_ms)
    [[ -z ${ONLY:-} ]] || only=(--only "$ONLY")
    [[ -z ${GATE:-} ]] || gate=(--gate "$GATE")
    unset DATABASE_URL REDIS_URL # always use private servers
    require_build_tools
    scratch_open bench
    step "Building (release; the first build takes up to twenty minutes on two cores)" build
    step "Starting a PostgreSQL" start_postgres "$BENCH_POSTGRES_PORT" "${BENCH_POSTGRES_SETTINGS[@]}"
    step "Creating 8 GiB of WAL segments" write_segments
    step "Starting a Redis" start_redis "$BENCH_REDIS_PORT" --save '' --appendonly no
    [[ -x $PG_BIN/pgbench ]] || die "$PG_BIN/pgbench is missing; install the package of the PostgreSQL server, or postgresql-contrib"
    DATABASE_URL=$(private_postgres_url waypost)
    REDIS_URL=$(private_redis_url)
    WAYPOST_BIN_DIR=$(target_dir)/release
    POSTGRES_PID=$(pid_of postgres)
    REDIS_PID=$(pid_of redis)
    export DATABASE_URL REDIS_URL WAYPOST_BIN_DIR PG_BIN POSTGRES_PID REDIS_PID
    interruptible "$WAYPOST_BIN_DIR/waypost-bench" --json "$ROOT/.dev/bench.json" "${only[@]}" "${gate[@]}" "$@"
    say "==> Measured; $(elapsed "$since") in total"
}

# A server that has run for a while reuses old WAL segments. A new server creates each segment first: it writes and syncs
# 16 MiB of zeros, during which no transaction commits. On this benchmark that takes about 20 ms, two to four times per
# second.
write_segments() {
    private_psql postgres -q \
        -c "DO \$\$ BEGIN
                FOR segment IN 1..$BENCH_WAL_SEGMENTS LOOP
                    PERFORM pg_logical_emit_message(false, 'bench', 'full'), pg_switch_wal();
                END LOOP;
            END \$\$" \
        -c CHECKPOINT
}

build() {
    interruptible build_cargo build --release --bins
    interruptible build_cargo build --release -p waypost-bench
}

main "$@"
