#!/usr/bin/env bash
# make bench: measures what Waypost exists for, each figure beside its floor; bench/ says how. Release
# programs, a PostgreSQL with its default durability and a Redis of this run alone. Nothing else should be at work on
# the machine.
#
# ONLY=accept,drain measures these sections alone. GATE=15 fails where a row named there is missed. The table is
# printed, the figures are in .dev/bench.json.
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/servers.sh"

readonly BENCH_POSTGRES_PORT=17432
readonly BENCH_REDIS_PORT=17379
# Memory for millions of rows, and checkpoints by time and not by size. Durability is what PostgreSQL gives by default:
# fsync, full_page_writes and synchronous_commit are on. Without replication (wal_level) millions of rows are copied in at
# half the cost; what is committed one by one is written as before. Statements are counted.
readonly BENCH_POSTGRES_SETTINGS=(shared_buffers=2GB min_wal_size=8GB max_wal_size=8GB maintenance_work_mem=1GB wal_level=minimal
    max_wal_senders=0 shared_preload_libraries=pg_stat_statements)
# As many of 16 MiB as max_wal_size lets it keep.
readonly BENCH_WAL_SEGMENTS=512

main() {
    local since
    local -a only=() gate=()
    since=$(now_ms)
    [[ -z ${ONLY:-} ]] || only=(--only "$ONLY")
    [[ -z ${GATE:-} ]] || gate=(--gate "$GATE")
    unset DATABASE_URL REDIS_URL # a private pair is the whole purpose
    require_build_tools
    scratch_open bench
    step "Building (release; the first time up to twenty minutes on two cores)" build
    step "Starting a PostgreSQL" start_postgres "$BENCH_POSTGRES_PORT" "${BENCH_POSTGRES_SETTINGS[@]}"
    step "Writing 8 GiB of its log once" write_segments
    step "Starting a Redis" start_redis "$BENCH_REDIS_PORT" --save '' --appendonly no
    [[ -x $PG_BIN/pgbench ]] || die "$PG_BIN/pgbench is missing; it comes with the server's package, or with postgresql-contrib"
    DATABASE_URL=$(private_postgres_url waypost)
    REDIS_URL=$(private_redis_url)
    WAYPOST_BIN_DIR=$(target_dir)/release
    POSTGRES_PID=$(pid_of postgres)
    REDIS_PID=$(pid_of redis)
    export DATABASE_URL REDIS_URL WAYPOST_BIN_DIR PG_BIN POSTGRES_PID REDIS_PID
    interruptible "$WAYPOST_BIN_DIR/waypost-bench" --json "$ROOT/.dev/bench.json" "${only[@]}" "${gate[@]}" "$@"
    say "==> Measured; $(elapsed "$since") with everything"
}

# A server that has run for a while writes its log over segments that it no longer needs. A new one makes each of them
# first, 16 MiB of zeros and their fsync, and nobody commits meanwhile: some 20 ms, twice to four times a second here.
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
