#!/usr/bin/env bash
# make fuzz: validates the OpenAPI document and calls the API with valid and invalid requests that schemathesis generates
# from it. Fails on a 5xx, on a response that the document does not list, on an invalid request that is accepted, and if
# less than a quarter of the valid sends are accepted. Uses a PostgreSQL, a Redis, an API and a simulator for this run only.
#
# FUZZ_SECONDS limits the time of the calls (120). FUZZ_SEED repeats a run (default: random; printed).
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "$0")/servers.sh"

readonly SCHEMATHESIS=4.32.5
readonly VALIDATOR=0.9.0
readonly FUZZ_POSTGRES_PORT=17432
readonly FUZZ_REDIS_PORT=17379
readonly FUZZ_API_PORT=17080
readonly FUZZ_SIMULATOR_PORT=17090
# Long enough for a share that says something: the first requests of a run are simpler than most.
readonly SENDS_SECONDS=20
readonly SENDS_MIN=50

main() {
    local since
    since=$(now_ms)
    require_build_tools
    require_python
    scratch_open fuzz
    install_tools
    step "Building (debug)" interruptible build_cargo build --workspace --bins
    BIN=$(target_dir)/debug
    step "Starting a PostgreSQL" start_postgres "$FUZZ_POSTGRES_PORT" fsync=off synchronous_commit=off full_page_writes=off
    step "Starting a Redis" start_redis "$FUZZ_REDIS_PORT" --save '' --appendonly no
    # A 429 would hide the rest of the handler.
    export WAYPOST_RATE_LIMIT_ANONYMOUS_PER_MINUTE=1000000 WAYPOST_RATE_LIMIT_SEND_MAX=1000000
    export WAYPOST_RATE_LIMIT_OTHER_MAX=1000000
    start_waypost fuzz "$BIN" "$FUZZ_API_PORT" "$FUZZ_SIMULATOR_PORT"
    step "Validating the document" validate_document
    FUZZ_SEED=${FUZZ_SEED:-$((RANDOM * 32768 + RANDOM))}
    step "Calling the API for about ${FUZZ_SECONDS:=120} s (FUZZ_SEED=$FUZZ_SEED repeats it)" interruptible fuzz
    say "==> Found nothing; $(elapsed "$since") in total"
}

# Installs the tools from PyPI into a virtual environment, once per pair of versions.
install_tools() {
    TOOLS=$ROOT/.dev/python/schemathesis-$SCHEMATHESIS-$VALIDATOR
    [[ ! -x $TOOLS/bin/schemathesis || ! -e $TOOLS/complete ]] || return 0
    step "Installing schemathesis $SCHEMATHESIS from PyPI" install_tools_into "$TOOLS"
}

install_tools_into() {
    local log=$STATE/log/pip.log
    rm -rf -- "$1"
    require_venv
    python3 -m venv "$1" >"$log" 2>&1 || { show_log_tail pip; die "python3 -m venv failed"; }
    "$1/bin/pip" install --quiet --disable-pip-version-check \
        "schemathesis==$SCHEMATHESIS" "openapi-spec-validator==$VALIDATOR" >>"$log" 2>&1 ||
        { show_log_tail pip; die "schemathesis could not be installed (it needs Python 3.10 or newer)"; }
    touch "$1/complete"
}

validate_document() { "$TOOLS/bin/openapi-spec-validator" --schema 3.0 "$ROOT/openapi/waypost.v1.json" >&2; }

# Four runs, each with an organization of its own: a run may revoke its own API key, and a rate limit that it sets would
# slow all other requests. Only the first one uses ids from responses in later requests.
fuzz() {
    schemathesis --exclude-path-regex '^/v1/(api-keys|settings)' --max-time "$FUZZ_SECONDS"
    schemathesis --include-path-regex '^/v1/api-keys' --max-time "$((FUZZ_SECONDS / 6))" --phases examples,coverage,fuzzing
    schemathesis --include-path-regex '^/v1/settings' --max-time "$((FUZZ_SECONDS / 6))" --phases examples,coverage,fuzzing
    FUZZ_SENDS=$STATE/sends schemathesis --include-path-regex '^/v1/send$' --max-time "$SENDS_SECONDS" --phases examples,fuzzing --mode positive
    sends_are_accepted
}

sends_are_accepted() {
    local accepted total
    read -r accepted total <"$STATE/sends"
    say "    $accepted of $total valid sends were accepted"
    ((total >= SENDS_MIN && accepted * 4 >= total)) || die "fewer than $SENDS_MIN valid sends were made, or less than a quarter of them accepted"
}

# schemathesis.toml lists the disabled checks. One worker only: CPython 3.11 sometimes fails to parse in two threads.
schemathesis() {
    local key
    key=$(make_api_key "$BIN" fuzz)
    make_sends_possible "$key"
    # schemathesis writes its findings to the working directory.
    cd "$STATE"
    SCHEMATHESIS_HOOKS="$ROOT/scripts/schemathesis_hooks.py" "$TOOLS/bin/schemathesis" --config-file "$ROOT/scripts/schemathesis.toml" run "$WAYPOST_URL/openapi.json" "$@" \
        --header "Authorization: Bearer $key" \
        --seed "$FUZZ_SEED" --request-timeout 30 --workers 1 --generation-database none --no-color >&2 ||
        { show_log_tail api; die "schemathesis reported failures; FUZZ_SEED=$FUZZ_SEED repeats the run"; }
}

# An account that sends, and from any domain. Requests of the run may change both.
make_sends_possible() {
    call "$1" POST /v1/providers '{"providerType": "SENDGRID", "displayName": "Simulated", "credentials": {"apiKey": "SG.simulator"}}'
    call "$1" PATCH /v1/settings '{"unverifiedDomains": "accept"}'
}

call() {
    local answer
    answer=$(API_KEY=$1 python3 "$ROOT/scripts/request.py" "$2" "$WAYPOST_URL$3" "$4")
    [[ $answer == 2* ]] || die "$2 $3 was answered with $answer"
}

main "$@"
