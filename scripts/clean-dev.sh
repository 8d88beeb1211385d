#!/usr/bin/env bash
# make clean-dev: stops what `make up` and `make dev-db` started and removes .dev with all data, keys and logs in it.
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "$0")/servers.sh"

"$ROOT/scripts/down.sh"
remove_data
rm -rf -- "$ROOT/.dev"
say "Removed .dev."
