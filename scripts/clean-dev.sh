#!/usr/bin/env bash
# make clean-dev: stops everything that `make up` and `make dev-db` started and that killed runs of tests and benchmarks
# left behind, and removes .dev with all data, keys and logs.
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
