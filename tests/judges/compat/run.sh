#!/usr/bin/env bash
# The vendors' own clients with Waypost's endpoints of these vendors, unchanged but for the base URL and the key: every call
# for emails; answers and errors are read as the clients read them, and fit the types that they declare. Called by
# scripts/judges.sh.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)

# shellcheck source=../install.sh
. "$here/../install.sh"

install_once requirements.txt install_python
install_once package-lock.json install_node
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1 # All servers are on this machine.
export PYTHONDONTWRITEBYTECODE=1
export NODE_PATH=$JUDGE_HOME/node_modules

# waypost METHOD PATH BODY : calls Waypost's own API.
waypost() {
    curl --silent --show-error --fail-with-body --request "$1" --header "Authorization: Bearer $WAYPOST_API_KEY" \
        --header 'Content-Type: application/json' --data "$3" "$WAYPOST_URL$2" >"$JUDGE_SCRATCH/answer"
}

waypost POST /v1/providers '{"providerType": "SENDGRID", "displayName": "Simulated", "credentials": {"apiKey": "SG.judge"}}'
# The mails are compared with what was given.
waypost PATCH /v1/settings '{"trackOpens": false, "trackClicks": false}'
node "$here/resend.js"
"$JUDGE_HOME/venv/bin/python" "$here/resend_python.py"
node "$here/sendgrid.js"
"$JUDGE_HOME/venv/bin/python" "$here/sendgrid_python.py"
node "$here/postmark.js"
"$JUDGE_HOME/venv/bin/python" "$here/postmarker_python.py"
cat "$JUDGE_SCRATCH"/tally-* | awk '{ passed += $1; failed += $2 } END { print passed " passed, " failed " failed"; exit failed > 0 }'
