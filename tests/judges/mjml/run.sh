#!/usr/bin/env bash
# Compiles each file of sources/ with mjml and with Waypost and compares the results: the elements with their attributes,
# texts and styles, and their positions in Chromium at 375 and 700 pixels. docs/templates.md lists the allowed
# differences.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../../scripts/servers.sh
. "$here/../../../scripts/servers.sh"
# shellcheck source=../install.sh
. "$here/../install.sh"
: "${WAYPOST_URL:?}" "${WAYPOST_API_KEY:?}" "${JUDGE_HOME:?}"

if ! have chromium; then
    mkdir -p "$JUDGE_SCRATCH/log"
    STATE=$JUDGE_SCRATCH install_packages Chromium chromium chromium chromium
fi
install_node_without_scripts() { install_node --ignore-scripts; }
install_once package-lock.json install_node_without_scripts
cp "$here/judge.mjs" "$JUDGE_HOME/"
cd "$JUDGE_HOME"
exec node judge.mjs "$here/sources"
