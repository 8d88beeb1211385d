#!/usr/bin/env bash
# Compiles each of sources/ by mjml and by Waypost and compares what comes out: the elements with their attributes,
# texts and styles, and where Chromium shows them at 375 and 700 pixels. docs/templates.md says what may differ.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../../scripts/servers.sh
. "$here/../../../scripts/servers.sh"
: "${WAYPOST_URL:?}" "${WAYPOST_API_KEY:?}" "${JUDGE_HOME:?}"

if ! have chromium; then
    mkdir -p "$JUDGE_SCRATCH/log"
    STATE=$JUDGE_SCRATCH install_packages Chromium chromium chromium chromium
fi
cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$here/judge.mjs" "$JUDGE_HOME/"
cd "$JUDGE_HOME"
if ! cmp -s package-lock.json installed.json; then
    npm ci --ignore-scripts >&2
    cp package-lock.json installed.json
fi
exec node judge.mjs "$here/sources"
