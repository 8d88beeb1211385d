#!/usr/bin/env bash
# Signs users in to Waypost at oidc-provider, which the OpenID Foundation has certified, as a browser would: redirects,
# cookies, forms.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../../scripts/servers.sh
. "$here/../../../scripts/servers.sh"
# shellcheck source=../install.sh
. "$here/../install.sh"
: "${WAYPOST_URL:?}" "${WAYPOST_API_KEY:?}" "${WAYPOST_OIDC_ISSUER:?}" "${JUDGE_HOME:?}"

install_once package-lock.json install_node
cp "$here/judge.mjs" "$JUDGE_HOME/"
cd "$JUDGE_HOME"
exec node judge.mjs
