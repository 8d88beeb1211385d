#!/usr/bin/env bash
# Renders the cases of handlebars-spec through a running Waypost and compares the results with handlebars.js and with the
# expected ones. WAYPOST_URL and WAYPOST_API_KEY (TEMPLATES_READ, TEMPLATES_WRITE) name the API; JUDGE_HOME is the folder
# of the packages. Nothing is sent. handlebars-spec is AGPL: it is only installed and read, and no part of it is copied.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
: "${WAYPOST_URL:?}" "${WAYPOST_API_KEY:?}" "${JUDGE_HOME:?}"
mkdir -p "$JUDGE_HOME"
cp "$here/package.json" "$here/package-lock.json" "$JUDGE_HOME/"
(cd "$JUDGE_HOME" && npm ci --ignore-scripts --no-audit --no-fund >/dev/null)
exec node "$here/judge.js"
