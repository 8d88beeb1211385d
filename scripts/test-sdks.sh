#!/usr/bin/env bash
# make test-sdks: checks, builds and tests the SDKs against a live Waypost, by the cases in sdks/conformance/cases.md.
#
# WAYPOST_URL, WAYPOST_API_KEY (all permissions) and SIMULATOR_URL say where a Waypost is, with the simulator as its
# provider. Without them it uses a PostgreSQL, a Redis, a Waypost and a simulator for this run only.
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "$0")/servers.sh"

readonly SDKS_POSTGRES_PORT=17532
readonly SDKS_REDIS_PORT=17479
readonly SDKS_API_PORT=17180
readonly SDKS_SIMULATOR_PORT=17190
readonly PACKED_BYTES_MAX=61440
readonly RUNTIME_LINES_MAX=450

main() {
    have node || die "Node.js 18 or newer is needed"
    have npm || die "npm is needed"
    require_python
    scratch_open sdks
    [[ -n ${WAYPOST_URL:-} && -n ${WAYPOST_API_KEY:-} && -n ${SIMULATOR_URL:-} ]] || start_waypost
    start_proxy
    cd "$ROOT/sdks/typescript"
    step "TypeScript: installing the compiler" npm ci --no-audit --no-fund --silent
    step "TypeScript: checking types" npm run --silent check
    step "TypeScript: building" npm run --silent build
    step "TypeScript: looking for missing cases" all_cases_in tests/conformance.test.mjs
    step "TypeScript: testing" npm test --silent
    step "TypeScript: packing" packed_is_small
    step "TypeScript: measuring the runtime" runtime_is_small src/runtime/*.ts
    say "==> All SDKs passed"
}

start_waypost() {
    local organization bin
    require_build_tools
    step "Building (debug)" interruptible build_cargo build --workspace --bins
    bin=$(target_dir)/debug
    step "Starting a PostgreSQL" start_postgres "$SDKS_POSTGRES_PORT" fsync=off synchronous_commit=off full_page_writes=off
    step "Starting a Redis" start_redis "$SDKS_REDIS_PORT" --save '' --appendonly no
    DATABASE_URL=$(private_postgres_url waypost)
    REDIS_URL=$(private_redis_url)
    choose_port simulator "$SDKS_SIMULATOR_PORT"
    SIMULATOR_URL=http://127.0.0.1:$CHOSEN_PORT
    choose_port api "$SDKS_API_PORT"
    WAYPOST_URL=http://127.0.0.1:$CHOSEN_PORT
    export DATABASE_URL REDIS_URL WAYPOST_URL SIMULATOR_URL
    export WAYPOST_ENV=development WAYPOST_LISTEN=127.0.0.1:$CHOSEN_PORT WAYPOST_PUBLIC_URL=$WAYPOST_URL
    export WAYPOST_PROVIDER_BASE_URL=$SIMULATOR_URL WAYPOST_LOG=warn
    "$bin/waypost-api" migrate >&2
    spawn simulator sdks "$bin/waypost-simulator" --listen "${SIMULATOR_URL#http://}"
    spawn api sdks "$bin/waypost-api" serve
    spawn worker sdks env WAYPOST_HEALTH_LISTEN=127.0.0.1:0 "$bin/waypost-worker"
    spawn scheduler sdks env WAYPOST_HEALTH_LISTEN=127.0.0.1:0 "$bin/waypost-scheduler"
    wait_for_server api api_answers || { show_log_tail api; die "the API did not start"; }
    organization=$("$bin/waypost-api" create-organization --name SDKs)
    WAYPOST_API_KEY=$("$bin/waypost-api" create-api-key --organization "$organization" --name sdks)
    export WAYPOST_API_KEY
}

api_answers() { [[ $(python3 "$ROOT/scripts/request.py" GET "$WAYPOST_URL/readyz" 2>/dev/null | head -n 1) == 200 ]]; }

start_proxy() {
    spawn proxy sdks python3 -u "$ROOT/sdks/conformance/proxy.py"
    wait_for_server proxy proxy_answers || { show_log_tail proxy; die "the proxy of the conformance tests did not start"; }
    CONFORMANCE_PROXY_URL=$(sed -n 's/^CONFORMANCE_PROXY_URL=//p' "$STATE/log/proxy.log")
    export CONFORMANCE_PROXY_URL
}

proxy_answers() { grep -q CONFORMANCE_PROXY_URL= "$STATE/log/proxy.log"; }

# all_cases_in FILE : whether a test of the file is named after each case.
all_cases_in() {
    local id missing=()
    for id in $(sed -n 's/^| \(C[0-9][0-9]\) |.*/\1/p' "$ROOT/sdks/conformance/cases.md"); do
        grep -q "\"$id[ \"]" "$1" || missing+=("$id")
    done
    [[ ${#missing[@]} == 0 ]] || die "$1 has no test for ${missing[*]}"
}

packed_is_small() {
    local bytes
    bytes=$(npm pack --dry-run --ignore-scripts --json 2>/dev/null | node -p 'JSON.parse(require("fs").readFileSync(0, "utf8"))[0].size')
    ((bytes <= PACKED_BYTES_MAX)) || die "the package has $bytes bytes packed, more than $PACKED_BYTES_MAX"
    say "    $bytes bytes packed"
}

# runtime_is_small FILE… : by lines that are neither empty nor comments.
runtime_is_small() {
    local lines
    lines=$(grep -vhcE '^\s*(//|/?\*|$)' "$@" | awk '{ sum += $1 } END { print sum }')
    ((lines <= RUNTIME_LINES_MAX)) || die "the handwritten runtime has $lines lines, more than $RUNTIME_LINES_MAX"
    say "    $lines lines by hand"
}

main "$@"
