#!/usr/bin/env bash
# make chaos: breaks everything around Waypost under load and counts what becomes of the mail; chaos/ says
# how. A PostgreSQL, a Redis and processes of this run alone; the rest of the machine is not touched.
#
# SEED repeats a run's load and faults (a new one each time; it is printed first), MESSAGES sets the load (50,000).
# CHAOS_PROFILE=debug takes the programs that the tests built, and not release ones.
#
# On failure the logs of all processes are kept below .dev/chaos-failed.
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
    unset DATABASE_URL REDIS_URL # a private pair is the whole purpose
    require_build_tools
    scratch_open chaos
    find_faketime
    step "Building ($profile)" build "${flags[@]}"
    step "Starting a PostgreSQL" start_chaos_postgres
    step "Starting a Redis" start_chaos_redis
    disown -a # bash would tell of each that the run kills
    DATABASE_URL=$(private_postgres_url waypost)
    REDIS_URL=$(private_redis_url)
    WAYPOST_BIN_DIR=$(target_dir)/$profile
    export STATE DATABASE_URL REDIS_URL WAYPOST_BIN_DIR
    if ! interruptible "$WAYPOST_BIN_DIR/waypost-chaos" --seed "$SEED" --messages "${MESSAGES:-50000}" "$@"; then
        kept=$ROOT/.dev/chaos-failed/$SEED
        mkdir -p "$kept"
        cp "$STATE"/log/* "$kept"
        say "SEED=$SEED repeats it; the logs are kept in $kept; $(elapsed "$since") with everything"
        exit 1
    fi
}

# find_faketime : sets FAKETIME_LIBRARY, with which the clocks of some processes are wrong.
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

# As the tests build it where it is the debug build, so that theirs is used again.
build() {
    if (($# == 0)); then
        interruptible build_cargo build --workspace --bins
    else
        interruptible build_cargo build "$@" --bins
        interruptible build_cargo build "$@" -p waypost-chaos
    fi
}

main "$@"
