#!/usr/bin/env bash
# make clean-dev: stops what `make up` and `make dev-db` started, and what runs of tests and measurements left that were
# killed outright, and removes .dev with all data, keys and logs in it.
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "$0")/servers.sh"

"$ROOT/scripts/down.sh"
remove_data
for base in "$ROOT"/.dev/*/; do
    clear_interrupted "${base%/}"
done
rm -rf -- "$ROOT/.dev"
say "Removed .dev."
