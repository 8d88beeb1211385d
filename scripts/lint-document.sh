#!/usr/bin/env bash
# make lint-document: checks the OpenAPI document by the rules of Redocly (recommended) and Spectral (oas), and against an
# earlier version: what clients of that version send must still be accepted, and what they read must still be there.
#
# BASE names the commit of the earlier version (default: HEAD if the document differs from it, else the commit before).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=lib.sh
. scripts/lib.sh

readonly REDOCLY=2.77.0
readonly SPECTRAL=6.16.3
readonly DOCUMENT=openapi/waypost.v1.json

main() {
    have npm || die "npm is not installed (Debian, Ubuntu: apt-get install nodejs npm)"
    step "Testing the comparison of documents" test_comparison
    local tools=$ROOT/.dev/node/lint-$REDOCLY-$SPECTRAL
    [[ -e $tools/complete ]] || step "Installing Redocly $REDOCLY and Spectral $SPECTRAL from npm" install "$tools"
    # Neither reports to its maker, nor looks for newer versions.
    export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
    step "Redocly, recommended rules" "$tools/node_modules/.bin/redocly" lint --extends recommended --format github-actions "$DOCUMENT"
    printf 'extends: ["spectral:oas"]\n' >"$tools/spectral.yaml"
    step "Spectral, rules for OpenAPI" \
        "$tools/node_modules/.bin/spectral" lint --ruleset "$tools/spectral.yaml" --fail-severity warn "$DOCUMENT"
    compare
}

test_comparison() { (cd scripts && python3 -m unittest --quiet compatibility_test); }

install() {
    rm -rf -- "$1"
    mkdir -p -- "$1"
    npm install --prefix "$1" --no-audit --no-fund --silent "@redocly/cli@$REDOCLY" "@stoplight/spectral-cli@$SPECTRAL" >&2
    touch "$1/complete"
}

compare() {
    local base=${BASE:-} earlier
    if [[ -z $base ]]; then
        base=HEAD
        ! git diff --quiet HEAD -- "$DOCUMENT" 2>/dev/null || base=HEAD^
    fi
    earlier=$(mktemp)
    # A path in the current shell, because the trap outlives this function.
    # shellcheck disable=SC2064
    trap "rm -f -- '$earlier'" EXIT
    if ! git show "$base:$DOCUMENT" >"$earlier" 2>/dev/null; then
        say "==> Not compared with an earlier version: git has no $base:$DOCUMENT"
        return 0
    fi
    step "Comparing with the document of $base" python3 scripts/compatibility.py "$earlier" "$DOCUMENT"
}

main "$@"
