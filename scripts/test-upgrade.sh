#!/usr/bin/env bash
# make test-upgrade: upgrades a Waypost under load from an earlier version to this one, and back, one process after the
# other, and counts the messages as `make chaos` does; see chaos/src/upgrade.rs. It starts a PostgreSQL, a Redis and
# processes for this run.
#
# The earlier version is the newest release (tag v*) before this commit, or the commit that BASE names. Without either
# there is nothing to test. Its programs are built once and kept in .dev/earlier.
#
# SEED repeats the load of a run (default: random; printed first). On failure the logs are copied to .dev/upgrade-failed.
set -euo pipefail
# shellcheck source=chaos-servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/chaos-servers.sh"

readonly MESSAGES=2000 # over 90 s; the upgrade takes a minute on two cores
readonly PROGRAMS=(waypost-api waypost-worker waypost-scheduler)

main() {
    local since base earlier kept
    since=$(now_ms)
    base=${BASE:-$(newest_release)}
    if [[ -z $base ]]; then
        say "==> No release precedes this commit, so there is no upgrade to test (BASE=commit names a version)"
        return 0
    fi
    base=$(git -C "$ROOT" rev-parse --verify --quiet "$base^{commit}") || die "git has no commit ${BASE:-$base}"
    SEED=${SEED:-$((RANDOM * 32768 + RANDOM))}
    say "==> From $(git -C "$ROOT" log -1 --format='%h (%s)' "$base"); SEED=$SEED repeats the load"
    unset DATABASE_URL REDIS_URL # always use private servers
    require_build_tools
    earlier=$ROOT/.dev/earlier/$base
    [[ -e $earlier/complete ]] || step "Building that version" build_earlier "$base" "$earlier"
    step "Building this version" interruptible build_cargo build --workspace --bins
    scratch_open upgrade
    step "Starting a PostgreSQL" start_chaos_postgres
    step "Starting a Redis" start_chaos_redis
    DATABASE_URL=$(private_postgres_url waypost)
    REDIS_URL=$(private_redis_url)
    WAYPOST_BIN_DIR=$(target_dir)/debug
    export STATE DATABASE_URL REDIS_URL WAYPOST_BIN_DIR
    if ! interruptible "$WAYPOST_BIN_DIR/waypost-chaos" --upgrade-from "$earlier" --seed "$SEED" --messages "$MESSAGES"; then
        kept=$ROOT/.dev/upgrade-failed/$SEED
        mkdir -p "$kept"
        cp "$STATE"/log/* "$kept"
        die "the upgrade from $base failed; its logs are in $kept; $(elapsed "$since") in total"
    fi
    say "==> Upgraded; $(elapsed "$since") in total"
}

# newest_release : prints the newest tag v* before this commit; pre-releases come before their release.
newest_release() {
    git -C "$ROOT" -c versionsort.suffix=- tag --list 'v*' --merged HEAD --no-contains HEAD --sort=-version:refname |
        sed -n 1p
}

# build_earlier COMMIT FOLDER : builds the programs of a commit, in a target directory of their own, and keeps them.
build_earlier() {
    local base=$1 folder=$2 built=$ROOT/.dev/earlier/target source
    rm -rf -- "$folder"
    mkdir -p -- "$folder"
    source=$folder/source
    mkdir -- "$source"
    git -C "$ROOT" archive "$base" | tar -x -C "$source"
    interruptible build_in "$source" "$built"
    cp -- "${PROGRAMS[@]/#/$built/debug/}" "$folder"
    rm -rf -- "$source"
    touch "$folder/complete"
}

build_in() {
    cd "$1"
    env -u DATABASE_URL SQLX_OFFLINE=true CARGO_TARGET_DIR="$2" cargo build --locked "${PROGRAMS[@]/#/--package=}"
}

main "$@"
