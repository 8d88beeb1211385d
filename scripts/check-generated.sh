#!/usr/bin/env bash
# make check-generated: fails, naming the file, if what is committed is not what `make generate` would write.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

main() {
    local fresh=$ROOT/.dev/generated path stale=0
    rm -rf "$fresh"
    mkdir -p "$fresh"
    "$ROOT/scripts/generate.sh" "$fresh"
    for path in .sqlx openapi/waypost.v1.json .env.example docs/configuration.md; do
        if ! diff -r -u "$ROOT/$path" "$fresh/$path" >"$fresh/difference" 2>&1; then
            say "$path is not what it would be generated as:"
            head -n 40 "$fresh/difference" >&2
            stale=1
        fi
    done
    rm -rf "$fresh"
    [[ $stale == 0 ]] || die "run 'make generate' and commit what it changes"
    say "==> Generated files are unchanged"
}

main
