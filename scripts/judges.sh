#!/usr/bin/env bash
# make judges: compares Waypost with independent implementations ("judges"): the vendors' clients, SMTP clients, a mail server,
# handlebars.js, mjml with a browser, an OpenID Connect provider. Uses a PostgreSQL, a Redis and processes for this run only.
#
# Each directory of tests/judges is a judge; its run.sh describes the comparison. It is called with WAYPOST_URL,
# WAYPOST_API_KEY (of an organization of its own), SIMULATOR_URL, JUDGE_HOME (a persistent directory for its
# installations) and JUDGE_SCRATCH (a directory for this run). It prints "N passed, M failed" last and fails if M is not
# 0. Waypost calls the simulator through a recorder at RECORDER_URL, which writes the requests to RECORDED_REQUESTS.
# Waypost signs users in at WAYPOST_OIDC_ISSUER, where a judge may run a provider.
# Waypost trusts mail servers with the certificate WAYPOST_SMTP_CA_FILE, whose key has the same name with .key.
# WAYPOST_BIN_DIR has Waypost's programs, of which a judge may start its own.
#
# judges.sh [NAME…] runs these judges only. JUDGES_BIN is a directory of built programs; without it they are built.
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "$0")/servers.sh"

readonly JUDGES_POSTGRES_PORT=18432
readonly JUDGES_REDIS_PORT=18379
readonly JUDGES_API_PORT=18080
readonly JUDGES_SIMULATOR_PORT=18090
readonly JUDGES_RECORDER_PORT=18091
readonly JUDGES_OIDC_PORT=18092
readonly JUDGE_SECONDS_MAX=${JUDGE_SECONDS_MAX:-900}

main() {
    local since name failed=()
    local -a judges=("$@")
    since=$(now_ms)
    ((${#judges[@]})) || mapfile -t judges < <(cd "$ROOT/tests/judges" && for run in */run.sh; do dirname "$run"; done)
    for name in "${judges[@]}"; do
        [[ -x $ROOT/tests/judges/$name/run.sh ]] || die "there is no judge $name in tests/judges"
    done
    require_build_tools
    require_python
    have npm || die "npm is not installed (Debian, Ubuntu: apt-get install nodejs npm)"
    scratch_open judges
    require_venv
    have openssl || install_packages openssl openssl openssl openssl
    BIN=${JUDGES_BIN:-$(target_dir)/debug}
    [[ -n ${JUDGES_BIN:-} ]] || step "Building (debug)" interruptible build_cargo build --workspace --bins
    step "Starting a PostgreSQL" start_postgres "$JUDGES_POSTGRES_PORT" fsync=off synchronous_commit=off full_page_writes=off
    step "Starting a Redis" start_redis "$JUDGES_REDIS_PORT" --save '' --appendonly no
    export WAYPOST_BIN_DIR=$BIN
    start_service
    for name in "${judges[@]}"; do
        # As a condition, so that `set -e` does not end the run at the first judge that fails.
        if ! judge "$name"; then failed+=("$name"); fi
    done
    ((${#failed[@]} == 0)) || die "failed: ${failed[*]}"
    say "==> All judges passed; $(elapsed "$since") in total"
}

start_service() {
    choose_port recorder "$JUDGES_RECORDER_PORT"
    RECORDER_URL=http://127.0.0.1:$CHOSEN_PORT
    export RECORDER_URL RECORDED_REQUESTS=$STATE/requests.jsonl WAYPOST_SMTP_CA_FILE=$STATE/mail-server.crt
    # WAYPOST_SMTP_SERVER is not set: the mail server judge runs a server of its own.
    export WAYPOST_PROVIDER_BASE_URL=$RECORDER_URL
    export WAYPOST_RATE_LIMIT_ANONYMOUS_PER_MINUTE=1000000 WAYPOST_RATE_LIMIT_SEND_MAX=1000000
    export WAYPOST_RATE_LIMIT_OTHER_MAX=1000000
    choose_port oidc "$JUDGES_OIDC_PORT"
    export WAYPOST_OIDC_ISSUER=http://127.0.0.1:$CHOSEN_PORT WAYPOST_OIDC_CLIENT_ID=waypost
    export WAYPOST_OIDC_CLIENT_SECRET=judge-secret-that-is-long-enough-for-nobody
    make_certificate
    start_waypost judges "$BIN" "$JUDGES_API_PORT" "$JUDGES_SIMULATOR_PORT"
    spawn recorder judges python3 "$ROOT/tests/judges/providers/recorder.py"
}

# make_certificate : creates a certificate for mail servers at 127.0.0.1, which Waypost trusts, and its key.
make_certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 \
        -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE \
        -keyout "${WAYPOST_SMTP_CA_FILE%.crt}.key" -out "$WAYPOST_SMTP_CA_FILE" 2>/dev/null
}

# judge NAME : runs one judge and prints its result. Its output goes to stderr.
judge() {
    local name=$1 since status=0
    since=$(now_ms)
    say "==> $name"
    WAYPOST_API_KEY=$(make_api_key "$BIN" "$name")
    JUDGE_HOME=$ROOT/.dev/judges-home/$name
    JUDGE_SCRATCH=$STATE/$name
    mkdir -p "$JUDGE_HOME" "$JUDGE_SCRATCH"
    export WAYPOST_API_KEY JUDGE_HOME JUDGE_SCRATCH
    interruptible timeout "$JUDGE_SECONDS_MAX" "$ROOT/tests/judges/$name/run.sh" >&2 || status=$?
    say "    $name: $([[ $status == 0 ]] && printf 'passed' || printf 'FAILED (%s)' "$status"), $(elapsed "$since")"
    return "$status"
}

main "$@"
