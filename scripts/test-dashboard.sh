#!/usr/bin/env bash
# make test-dashboard: checks the types of the dashboard, and tests it in Chromium, with Playwright and axe, against a
# running Waypost with its simulator. Screenshots of every page are in dashboard/test-results/screens.
#
# test-dashboard.sh ARGUMENT… passes arguments to Playwright: tests/messages.spec.ts, --grep "…".
#
# It uses a PostgreSQL, a Redis, a Waypost and a simulator for this run only.
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "$0")/servers.sh"

readonly DASHBOARD_POSTGRES_PORT=17632
readonly DASHBOARD_REDIS_PORT=17579
readonly DASHBOARD_API_PORT=17280
readonly DASHBOARD_SIMULATOR_PORT=17290

main() {
    require_node
    require_python
    find_chromium
    scratch_open dashboard
    cd "$ROOT/dashboard"
    step "Installing the packages of the dashboard" npm ci --no-audit --no-fund --silent
    step "Checking types" npm run --silent check
    start_own_waypost
    step "Testing in Chromium" interruptible npx --no-install playwright test "$@"
}

# find_chromium : sets CHROMIUM to the browser, and installs it if there is none.
find_chromium() {
    CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
    if [[ -z $CHROMIUM ]]; then
        install_packages Chromium chromium chromium chromium
        CHROMIUM=$(command -v chromium || command -v chromium-browser) || die "Chromium was not found after its installation"
    fi
    export CHROMIUM
}

start_own_waypost() {
    local bin organization
    require_build_tools
    step "Building (debug)" interruptible build_cargo build --workspace --bins
    bin=$(target_dir)/debug
    step "Starting a PostgreSQL" start_postgres "$DASHBOARD_POSTGRES_PORT" fsync=off synchronous_commit=off full_page_writes=off
    step "Starting a Redis" start_redis "$DASHBOARD_REDIS_PORT" --save '' --appendonly no
    # All tests come from one address.
    export WAYPOST_RATE_LIMIT_ANONYMOUS_PER_MINUTE=1000000
    start_waypost dashboard "$bin" "$DASHBOARD_API_PORT" "$DASHBOARD_SIMULATOR_PORT"
    organization=$("$bin/waypost-api" create-organization --name 'Acme Inc.')
    WAYPOST_API_KEY=$("$bin/waypost-api" create-api-key --organization "$organization" --name 'Tests')
    WAYPOST_EMAIL=ada@example.com
    WAYPOST_PASSWORD=$(random_hex 12)
    make_owner "$bin" "$organization" "$WAYPOST_EMAIL" 'Ada Lovelace' "$WAYPOST_PASSWORD"
    WAYPOST_API_BIN=$bin/waypost-api
    export WAYPOST_API_KEY WAYPOST_EMAIL WAYPOST_PASSWORD WAYPOST_API_BIN
}

main "$@"
