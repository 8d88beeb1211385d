#!/usr/bin/env bash
# make check-generated: fails if a committed file differs from the one that `make generate` would write.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

main() {
    local fresh=$ROOT/.dev/generated path stale=0
    rm -rf "$fresh"
    mkdir -p "$fresh"
    "$ROOT/scripts/generate.sh" "$fresh"
    for path in .sqlx openapi/waypost.v1.json openapi/samples.json .env.example docs/configuration.md \
        sdks/{typescript,rust}/src/generated sdks/python/src/waypost/{types.py,_generated/{client,errors,resources,version}.py} \
        sdks/go/{client,errors,resources,types,version}_gen.go \
        dashboard/dist; do
        if ! diff -r -u "$ROOT/$path" "$fresh/$path" >"$fresh/difference" 2>&1; then
            say "$path differs from the generated file:"
            head -n 40 "$fresh/difference" >&2
            stale=1
        fi
    done
    rm -rf "$fresh"
    [[ $stale == 0 ]] || die "run 'make generate' and commit its changes"
    say "==> The generated files are up to date"
}

main
