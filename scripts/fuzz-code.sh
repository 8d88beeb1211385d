#!/usr/bin/env bash
# make fuzz-code: what strangers and customers may send (the posts of providers, the tokens of links, templates), made
# up by libFuzzer. Each target in fuzz/ runs for FUZZ_SECONDS (60) with bounded memory and time for each input; an
# input that breaks something is kept in fuzz/artifacts/, and fuzz/corpus/ grows from run to run.
#
# Neither a nightly compiler nor a sanitizer is needed: our code has no `unsafe`, and a stack that overflows or an
# assertion that fails ends the process without one. Not in CI: what it finds depends on chance.
#
# make fuzz-code ARGS=events_ses     one target (or several)
# make fuzz-code FUZZ_SECONDS=3600   longer
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

readonly VERSION=0.13.2
readonly CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/waypost/cargo-fuzz-$VERSION
# An input may take this long, and a target this much memory. A thread of the workshop may use 32 MiB of stack, and a
# rendering 2 MiB for each body; the rest is libFuzzer's corpus and what it knows of the code.
readonly INPUT_SECONDS_MAX=10
readonly MEMORY_MB_MAX=1024

main() {
    local since target targets
    since=$(now_ms)
    if ! have cargo-fuzz; then
        [[ -x $CACHE/bin/cargo-fuzz ]] || step "Building cargo-fuzz $VERSION, once on this machine (a minute)" build_cargo_fuzz
        PATH=$CACHE/bin:$PATH
    fi
    cd "$ROOT/fuzz"
    export SQLX_OFFLINE=true
    unset DATABASE_URL
    step "Building the targets (some minutes the first time)" interruptible cargo fuzz build --sanitizer none
    targets=("$@")
    ((${#targets[@]})) || mapfile -t targets < <(cargo fuzz list)
    for target in "${targets[@]}"; do
        step "$target for ${FUZZ_SECONDS:=60} s" interruptible fuzz "$target"
    done
    say "==> Nothing found; $(elapsed "$since") with everything"
}

build_cargo_fuzz() {
    env -u CARGO_TARGET_DIR cargo install cargo-fuzz --version "$VERSION" --locked --quiet --root "$CACHE"
}

fuzz() {
    mkdir -p "corpus/$1"
    cargo fuzz run --sanitizer none "$1" "corpus/$1" "seeds/$1" -- \
        -max_total_time="$FUZZ_SECONDS" -timeout="$INPUT_SECONDS_MAX" -rss_limit_mb="$MEMORY_MB_MAX" \
        -max_len="$(longest "$1")" -print_final_stats=1 >&2 || die "$1 found something; it lies in fuzz/artifacts/$1"
}

# Deep nesting needs room; everything else is found in little.
longest() {
    case $1 in
        template_*) echo 65536 ;;
        *) echo 8192 ;;
    esac
}

main "$@"
