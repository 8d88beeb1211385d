#!/usr/bin/env bash
# make fuzz-code: feeds input that libFuzzer generates to the parsers of untrusted data (provider events, link tokens,
# templates). Each target in fuzz/ runs for FUZZ_SECONDS (60), with limits on memory and on the time per input. An input
# that fails is stored in fuzz/artifacts/. fuzz/corpus/ grows from run to run.
#
# It needs neither a nightly compiler nor a sanitizer: our code has no `unsafe`, and a stack overflow or a failed
# assertion ends the process anyway. It does not run in CI, because its result depends on chance.
#
# make fuzz-code ARGS=events_ses     runs one target, or several
# make fuzz-code FUZZ_SECONDS=3600   runs longer
# make fuzz-code ARGS=check          only sees whether all targets compile, as CI does
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

readonly VERSION=0.13.2
readonly CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/waypost/cargo-fuzz-$VERSION
# Limits on the time of an input and the memory of a target. A thread of the render pool may use 32 MiB of stack, and a
# rendering 2 MiB per body; the rest is libFuzzer's corpus and coverage data.
readonly INPUT_SECONDS_MAX=10
readonly MEMORY_MB_MAX=1024

main() {
    local since target targets
    since=$(now_ms)
    export SQLX_OFFLINE=true
    unset DATABASE_URL
    if [[ $* == check ]]; then
        step "Compiling the targets" check_targets
        return 0
    fi
    if ! have cargo-fuzz; then
        [[ -x $CACHE/bin/cargo-fuzz ]] || step "Building cargo-fuzz $VERSION, once on this machine (a minute)" build_cargo_fuzz
        PATH=$CACHE/bin:$PATH
    fi
    cd "$ROOT/fuzz"
    step "Building the targets (some minutes the first time)" interruptible cargo fuzz build --sanitizer none
    targets=("$@")
    ((${#targets[@]})) || mapfile -t targets < <(cargo fuzz list)
    for target in "${targets[@]}"; do
        step "$target for ${FUZZ_SECONDS:=60} s" interruptible fuzz "$target"
    done
    say "==> Found nothing; $(elapsed "$since") in total"
}

# The targets are a workspace of their own, which no other command looks at. This does not need cargo-fuzz.
check_targets() {
    RUSTFLAGS='--cfg fuzzing' interruptible cargo check --locked --quiet --bins --target-dir "$(target_dir)/fuzzing" \
        --manifest-path "$ROOT/fuzz/Cargo.toml"
}

build_cargo_fuzz() {
    env -u CARGO_TARGET_DIR cargo install cargo-fuzz --version "$VERSION" --locked --quiet --root "$CACHE"
}

fuzz() {
    mkdir -p "corpus/$1"
    cargo fuzz run --sanitizer none "$1" "corpus/$1" "seeds/$1" -- \
        -max_total_time="$FUZZ_SECONDS" -timeout="$INPUT_SECONDS_MAX" -rss_limit_mb="$MEMORY_MB_MAX" \
        -max_len="$(longest "$1")" -print_final_stats=1 >&2 || die "$1 failed; the input is in fuzz/artifacts/$1"
}

# The maximum input length of a target. Deeply nested templates need long inputs.
longest() {
    case $1 in
        template_*) echo 65536 ;;
        *) echo 8192 ;;
    esac
}

main "$@"
