#!/usr/bin/env bash
# build-dashboard.sh [DIRECTORY] : builds the dashboard into dashboard/dist, or into DIRECTORY. The files are committed and
# compiled into waypost-api, so that building Waypost needs neither Node.js nor npm.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

main() {
    local out=${1:-$ROOT/dashboard/dist}
    require_node
    cd "$ROOT/dashboard"
    step "Installing the packages of the dashboard" npm ci --no-audit --no-fund --silent
    step "Building the dashboard" npm run --silent build -- --outDir "$out" --emptyOutDir --logLevel warn
}

main "$@"
