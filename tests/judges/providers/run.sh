#!/usr/bin/env bash
# Compares the simulator, and Waypost's requests to it, with the vendors' own clients: SendGrid's, Postmark's, Mailgun's
# and botocore. The simulator must accept the clients' requests, and they must parse its responses; each message from
# Waypost must look to the simulator like the client's; Waypost's requests must fit the clients' published types and
# botocore's model of SES; and Waypost must read the simulator's events as django-anymail does. Called by
# scripts/judges.sh, which also starts the recorder.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)

# shellcheck source=../install.sh
. "$here/../install.sh"

install_once requirements.txt install_python
install_once package-lock.json install_node
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1 # All servers are on this machine.
export PYTHONDONTWRITEBYTECODE=1
export NODE_PATH=$JUDGE_HOME/node_modules
"$JUDGE_HOME/venv/bin/python" "$here/waypost.py"
node "$here/clients.js"
"$JUDGE_HOME/venv/bin/python" "$here/ses.py"
"$JUDGE_HOME/venv/bin/python" "$here/events.py"
cat "$JUDGE_SCRATCH"/tally-* | awk '{ passed += $1; failed += $2 } END { print passed " passed, " failed " failed"; exit failed > 0 }'
