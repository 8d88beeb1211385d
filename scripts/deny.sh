#!/usr/bin/env bash
# make deny: checks licences, banned and duplicate crates and sources (deny.toml), and known vulnerabilities if the
# advisory database can be reached. Uses the installed cargo-deny, or builds one, once per machine.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

readonly VERSION=0.20.2
readonly FETCH_SECONDS_MAX=120
readonly CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/waypost/cargo-deny-$VERSION

main() {
    if ! have cargo-deny; then
        [[ -x $CACHE/bin/cargo-deny ]] || step "Building cargo-deny $VERSION, once on this machine (a minute or two)" build_cargo_deny
        PATH=$CACHE/bin:$PATH
    fi
    cd "$ROOT"
    cargo deny check licenses bans sources
    if timeout "$FETCH_SECONDS_MAX" cargo deny fetch db >/dev/null 2>&1; then
        cargo deny check advisories
    else
        say "==> Skipped the check for known vulnerabilities: the advisory database cannot be reached from here"
    fi
}

# A debug build without the bundled git: cargo-deny runs for seconds, and a release build takes ten times as long.
build_cargo_deny() {
    env -u CARGO_TARGET_DIR CARGO_PROFILE_DEV_DEBUG=false cargo install cargo-deny --version "$VERSION" --locked --quiet \
        --debug --no-default-features --root "$CACHE"
}

main
