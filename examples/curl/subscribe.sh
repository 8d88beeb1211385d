#!/usr/bin/env bash
# Makes a webhook endpoint and prints its signing secret, which Waypost shows this once. Needs WAYPOST_URL,
# WAYPOST_API_KEY (with SETTINGS_WRITE) and python3 to read the answer. Something must listen at the URL already.
#
#   ./subscribe.sh http://127.0.0.1:8099/ > webhook-secret
set -euo pipefail

curl --silent --show-error --fail-with-body "$WAYPOST_URL/v1/webhook-endpoints" \
    --header "Authorization: Bearer $WAYPOST_API_KEY" \
    --header 'Content-Type: application/json' \
    --data "{\"url\": \"$1\", \"events\": [\"QUEUED\", \"SENT\", \"DELIVERED\", \"OPENED\", \"BOUNCED\", \"COMPLAINED\"]}" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["data"]["secret"])'
