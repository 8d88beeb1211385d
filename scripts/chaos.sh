#!/usr/bin/env bash
# make chaos: injects faults everywhere around Waypost under load and counts the messages; see chaos/. It starts a
# PostgreSQL, a Redis and processes for this run; it does not touch the rest of the machine.
#
# SEED repeats the load and the faults of a run (default: random; printed first). MESSAGES sets the load (50,000).
# CHAOS_PROFILE=debug uses the programs that the tests built instead of release programs.
#
# On failure the logs of all processes are copied to .dev/chaos-failed.
set -euo pipefail
# shellcheck source=chaos-servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/chaos-servers.sh"

main() {
    local since profile=${CHAOS_PROFILE:-release} kept
    local -a flags=()
    since=$(now_ms)
    [[ $profile != release ]] || flags=(--release)
    SEED=${SEED:-$((RANDOM * 32768 + RANDOM))}
    say "==> SEED=$SEED repeats this run"
    unset DATABASE_URL REDIS_URL # always use private servers
    require_build_tools
    scratch_open chaos
    find_faketime
    step "Building ($profile)" build "${flags[@]}"
    step "Starting a PostgreSQL" start_chaos_postgres
    step "Starting a Redis" start_chaos_redis
    disown -a # otherwise bash reports each server that the run kills
    DATABASE_URL=$(private_postgres_url waypost)
    REDIS_URL=$(private_redis_url)
    WAYPOST_BIN_DIR=$(target_dir)/$profile
    export STATE DATABASE_URL REDIS_URL WAYPOST_BIN_DIR
    if ! interruptible "$WAYPOST_BIN_DIR/waypost-chaos" --seed "$SEED" --messages "${MESSAGES:-50000}" "$@"; then
        kept=$ROOT/.dev/chaos-failed/$SEED
        mkdir -p "$kept"
        cp "$STATE"/log/* "$kept"
        say "SEED=$SEED repeats the run; its logs are in $kept; $(elapsed "$since") in total"
        exit 1
    fi
}

# find_faketime : sets FAKETIME_LIBRARY, which gives some processes a wrong clock.
find_faketime() {
    faketime_is_there || (install_packages libfaketime faketime libfaketime libfaketime) || true
    faketime_is_there || warn "libfaketime is not installed: all clocks are right in this run"
}

faketime_is_there() {
    local library
    for library in /usr/lib/*/faketime/libfaketime.so.1 /usr/lib64/faketime/libfaketime.so.1; do
        [[ ! -e $library ]] || { export FAKETIME_LIBRARY=$library && return 0; }
    done
    return 1
}

# The debug build uses the same command as the tests, so that their build is reused.
build() {
    if (($# == 0)); then
        interruptible build_cargo build --workspace --bins
    else
        interruptible build_cargo build "$@" --bins
        interruptible build_cargo build "$@" -p waypost-chaos
    fi
}

main "$@"
