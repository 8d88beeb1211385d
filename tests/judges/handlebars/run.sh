#!/usr/bin/env bash
# Renders the cases of handlebars-spec through a running Waypost and compares with handlebars.js and with what the cases
# expect. WAYPOST_URL and WAYPOST_API_KEY (TEMPLATES_READ, TEMPLATES_WRITE) say where; JUDGE_HOME is where the packages
# are installed. Nothing is sent. handlebars-spec is AGPL: it is installed to be read here, and no part of it is copied.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
: "${WAYPOST_URL:?}" "${WAYPOST_API_KEY:?}" "${JUDGE_HOME:?}"
mkdir -p "$JUDGE_HOME"
cp "$here/package.json" "$here/package-lock.json" "$JUDGE_HOME/"
(cd "$JUDGE_HOME" && npm ci --ignore-scripts --no-audit --no-fund >/dev/null)
exec node "$here/judge.js"
