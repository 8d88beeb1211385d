#!/usr/bin/env bash
# Checks the signature of one webhook by hand: exits with 0 if it is genuine. The secret comes from the environment
# (WAYPOST_WEBHOOK_SECRET), the raw body from standard input. For debugging only: openssl shows the secret to other users
# of this machine, and the comparison does not take constant time. Receivers use the Python or TypeScript example.
#
#   ./verify.sh <X-Waypost-Timestamp> <X-Waypost-Signature> < body
set -euo pipefail

timestamp=$1
signature=$2
now=$(date +%s)

if [[ ! $timestamp =~ ^[1-9][0-9]{0,11}$ ]] || ((timestamp < now - 300 || timestamp > now + 300)); then
    echo "refused: signed more than 5 minutes ago" >&2
    exit 1
fi
expected=$({ printf '%s.' "$timestamp" && cat; } | openssl dgst -sha256 -hmac "${WAYPOST_WEBHOOK_SECRET:?}" -r | cut -d' ' -f1)
if [[ $signature != "$expected" ]]; then
    echo "refused: the signature is not genuine" >&2
    exit 1
fi
echo genuine
