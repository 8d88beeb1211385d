#!/usr/bin/env bash
# make down: stops the processes that `make up` and `make dev-db` started in this checkout, and no others. Keeps the data.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

main() {
    local name names=()
    if [[ -d $STATE/run ]]; then
        rm -f "$STATE/env"
        for name in simulator worker scheduler smtp api redis postgres; do
            ! is_running "$name" || names+=("$name")
        done
    fi
    if ((${#names[@]} == 0)); then
        say "No process of this checkout is running."
        return 0
    fi
    step "Stopping ${names[*]}" stop_all "${names[@]}"
}

main
