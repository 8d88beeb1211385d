#!/usr/bin/env bash
# Sends a mail and prints Waypost's answer. Needs WAYPOST_URL and WAYPOST_API_KEY.
#
#   ./send.sh charles@example.org order-1042
set -euo pipefail

recipient=$1
order=$2

# With the same Idempotency-Key a repeated request sends nothing twice, so curl may repeat it after a timeout, a 429 or a
# 503.
curl --silent --show-error --fail-with-body --retry 3 --max-time 10 "$WAYPOST_URL/v1/send" \
    --header "Authorization: Bearer $WAYPOST_API_KEY" \
    --header 'Content-Type: application/json' \
    --header "Idempotency-Key: $order-receipt" \
    --data @- <<JSON
{
  "from": "Ada Lovelace <ada@example.com>",
  "to": "$recipient",
  "subject": "Your receipt for $order",
  "html": "<p>Thank you for your order.</p>",
  "text": "Thank you for your order.",
  "tags": ["receipts"],
  "metadata": {"order": "$order"}
}
JSON
