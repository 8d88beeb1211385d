#!/usr/bin/env bash
# make test: runs the whole test suite. Starts a PostgreSQL and a Redis for this run only, builds, runs
# `cargo test --workspace` with the given arguments, and always stops what it started. Several runs at once do not affect
# each other.
#
# If DATABASE_URL or REDIS_URL is set, the tests use that server. Every test creates and drops a database of its own, so
# the user needs CREATEDB.
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "$0")/servers.sh"

# Not the default ports, so that a stopped development server keeps its port.
readonly TEST_POSTGRES_PORT=15432
readonly TEST_REDIS_PORT=16379

main() {
    local since
    since=$(now_ms)
    require_build_tools
    require_python
    # One test runs the programs in examples/.
    have curl || install_packages curl curl curl curl
    have openssl || install_packages openssl openssl openssl openssl
    have node || install_packages Node.js nodejs nodejs node
    scratch_open test
    provide_postgres
    provide_redis
    # The tests start these programs as processes.
    step "Building (debug; the first build takes about three minutes on two cores)" interruptible build_cargo build --workspace --bins
    WAYPOST_BIN_DIR=$(target_dir)/debug
    export WAYPOST_BIN_DIR
    # Many tests wait for a time-out or for another process, so twice as many as there are processors run at once.
    export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(getconf _NPROCESSORS_ONLN)))}
    step "Running the tests" interruptible build_cargo test --workspace --no-fail-fast "$@"
    say "==> All tests passed; $(elapsed "$since") in total"
}

provide_postgres() {
    WAYPOST_TEST_DATABASE_URL=${WAYPOST_TEST_DATABASE_URL:-${DATABASE_URL:-}}
    if [[ -n $WAYPOST_TEST_DATABASE_URL ]]; then
        require_reachable DATABASE_URL "$WAYPOST_TEST_DATABASE_URL" 5432
    else
        # The settings trade durability for speed, since the tests create hundreds of databases. authentication_timeout:
        # a test that ends while it connects leaves a half-open connection, and DROP DATABASE waits until it times out.
        step "Starting a PostgreSQL for the tests" start_postgres "$TEST_POSTGRES_PORT" \
            fsync=off synchronous_commit=off full_page_writes=off wal_level=minimal max_wal_senders=0 max_wal_size=4GB \
            authentication_timeout=5s
        WAYPOST_TEST_DATABASE_URL=$(private_postgres_url waypost)
    fi
    export WAYPOST_TEST_DATABASE_URL
}

provide_redis() {
    WAYPOST_TEST_REDIS_URL=${WAYPOST_TEST_REDIS_URL:-${REDIS_URL:-}}
    if [[ -n $WAYPOST_TEST_REDIS_URL ]]; then
        require_reachable REDIS_URL "$WAYPOST_TEST_REDIS_URL" 6379
    else
        step "Starting a Redis for the tests" start_redis "$TEST_REDIS_PORT" --save '' --appendonly no
        WAYPOST_TEST_REDIS_URL=$(private_redis_url)
    fi
    # Some tests stop or flush Redis. They start one of their own, even if REDIS_URL is set.
    ensure_redis_installed
    export WAYPOST_TEST_REDIS_URL WAYPOST_TEST_REDIS_SERVER=${WAYPOST_TEST_REDIS_SERVER:-$REDIS_SERVER}
}

main "$@"
