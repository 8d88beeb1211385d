#!/usr/bin/env bash
# Renders the cases that the tests of `waypost-api import` expect with handlebars.js, with each vendor's helpers as its
# documentation describes them. JUDGE_HOME is the folder of the packages. It calls no Waypost: the tests do.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
: "${JUDGE_HOME:?}"
mkdir -p "$JUDGE_HOME"
cp "$here/package.json" "$here/package-lock.json" "$JUDGE_HOME/"
(cd "$JUDGE_HOME" && npm ci --ignore-scripts --no-audit --no-fund >/dev/null)
exec node "$here/judge.js"
