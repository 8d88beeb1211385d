#!/usr/bin/env bash
# Holds the simulator, and what Waypost sends to it, against the vendors' own clients: SendGrid's, Postmark's, Mailgun's
# and botocore. The simulator must take what the clients send and be understood by them; each mail that Waypost sends
# must look to the simulator as the client's; Waypost's requests must fit the clients' published types and botocore's
# model of SES; and Waypost must understand the simulator's events as django-anymail does. Called by
# scripts/judges.sh, which also starts the recorder.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)

# install_once FILE COMMAND : unless FILE is as it was when COMMAND last succeeded.
install_once() {
    cmp -s "$here/$1" "$JUDGE_HOME/installed-$1" && return
    "$2"
    cp "$here/$1" "$JUDGE_HOME/installed-$1"
}

install_python() {
    python3 -m venv --clear "$JUDGE_HOME/venv"
    "$JUDGE_HOME/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
}

install_node() {
    cp "$here/package.json" "$here/package-lock.json" "$JUDGE_HOME"
    npm ci --silent --no-audit --no-fund --prefix "$JUDGE_HOME"
}

install_once requirements.txt install_python
install_once package-lock.json install_node
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1 # It is all on this machine.
export PYTHONDONTWRITEBYTECODE=1
export NODE_PATH=$JUDGE_HOME/node_modules
"$JUDGE_HOME/venv/bin/python" "$here/waypost.py"
node "$here/clients.js"
"$JUDGE_HOME/venv/bin/python" "$here/ses.py"
"$JUDGE_HOME/venv/bin/python" "$here/events.py"
cat "$JUDGE_SCRATCH"/tally-* | awk '{ passed += $1; failed += $2 } END { print passed " passed, " failed " failed"; exit failed > 0 }'
