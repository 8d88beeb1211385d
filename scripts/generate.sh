#!/usr/bin/env bash
# make generate: writes the generated files that are committed. generate.sh [DIRECTORY] writes to that directory instead
# of the checkout (for make check-generated).
#
#   .sqlx                     descriptions of all queries by Postgres, so that the code compiles without a database
#   openapi/waypost.v1.json   the OpenAPI document
#   .env.example              all settings
#   docs/configuration.md     the table of settings, between two markers
#   sdks/*/src/generated      the types and methods of the client SDKs, from the OpenAPI document
#   openapi/samples.json      calls of each operation with the SDKs, for the documentation page
#   sdks/go/*_gen.go          those of Go, whose files are all in one directory
#   sdks/python/src/waypost   those of Python: types.py and _generated
#   dashboard/dist            the dashboard's files, which waypost-api holds; they have the TypeScript SDK in them
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "$0")/servers.sh"

readonly DATABASE=waypost_generate
readonly TABLE_BEGIN='<!-- configuration:begin -->'
readonly TABLE_END='<!-- configuration:end -->'

main() {
    OUT=${1:-$ROOT}
    require_build_tools
    scratch_open generate
    ensure_postgres_installed
    step "Starting a PostgreSQL to check the queries against" start_postgres 25432 fsync=off synchronous_commit=off
    # With psql: the program may not compile until its queries are described.
    step "Creating the tables" apply_migrations "$DATABASE"
    step "Describing the queries: .sqlx" describe_queries
    step "Building the program that prints the rest" build_program
    step "Writing openapi/waypost.v1.json, .env.example, docs/configuration.md" write_printed
    step "Writing the SDKs and openapi/samples.json" write_sdks
    "$ROOT/scripts/build-dashboard.sh" "$OUT/dashboard/dist"
}

# If SQLX_OFFLINE_DIR is set, the macros write one file per query when they are expanded against a live database. `touch`
# makes cargo compile the crates, and thus expand the macros. The directory is empty at first, so that no description
# outlives its query. Clippy expands the macros too; in CI it is called as by `make lint`, which then has nothing to do.
describe_queries() {
    DESCRIBED=$STATE/sqlx
    mkdir "$DESCRIBED"
    cd "$ROOT"
    find "$ROOT"/*/src "$ROOT"/tests/it -maxdepth 1 \( -name lib.rs -o -name main.rs \) -exec touch {} + 2>/dev/null || true
    interruptible env DATABASE_URL="$(private_postgres_url "$DATABASE")" SQLX_OFFLINE=false SQLX_OFFLINE_DIR="$DESCRIBED" \
        cargo clippy --workspace --all-targets --quiet -- ${CI:+-D warnings}
    compgen -G "$DESCRIBED/query-*.json" >/dev/null || die "sqlx described no query"
    mkdir -p "$OUT"
    rm -rf "$OUT/.sqlx"
    cp -r "$DESCRIBED" "$OUT/.sqlx"
}

# Uses the new descriptions instead of the committed ones. Builds all programs, like `make test`: a build of one package
# has other features and would build the dependencies twice.
build_program() { SQLX_OFFLINE_DIR=$DESCRIBED interruptible build_cargo build --workspace --bins --quiet; }

write_printed() {
    local program
    program=$(target_dir)/debug/waypost-api
    mkdir -p "$OUT/openapi"
    "$program" openapi >"$STATE/openapi.json"
    mv "$STATE/openapi.json" "$OUT/openapi/waypost.v1.json"
    "$program" config --format env >"$STATE/env.example"
    mv "$STATE/env.example" "$OUT/.env.example"
    "$program" config --format markdown >"$STATE/table.md"
    write_table docs/configuration.md
}

write_sdks() {
    "$(target_dir)/debug/waypost-sdk-generator" "$OUT/openapi/waypost.v1.json" "$ROOT/sdks/generator/templates" "$OUT/sdks" "$OUT/openapi/samples.json"
}

# write_table FILE : writes the file with the new table of settings between its markers.
write_table() {
    local file=$1
    if ! grep -qF -- "$TABLE_BEGIN" "$ROOT/$file" || ! grep -qF -- "$TABLE_END" "$ROOT/$file"; then
        die "$file lacks the markers $TABLE_BEGIN and $TABLE_END around its table of settings"
    fi
    awk -v table="$STATE/table.md" -v begin="$TABLE_BEGIN" -v end="$TABLE_END" '
        index($0, end) { inside = 0 }
        !inside { print }
        index($0, begin) { inside = 1; while ((getline line < table) > 0) print line }
    ' "$ROOT/$file" >"$STATE/table-in-file.md"
    mkdir -p "$(dirname "$OUT/$file")"
    cat "$STATE/table-in-file.md" >"$OUT/$file"
}

main "$@"
