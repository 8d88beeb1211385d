#!/usr/bin/env bash
# make up: builds Waypost and starts it in the background, with a simulator, a demo organization and a simulated provider
# account. If it runs already, it starts missing processes, restarts those that were rebuilt or whose settings changed,
# and prints the same text.
#
# Settings in the environment take precedence over the defaults here: DATABASE_URL, REDIS_URL, WAYPOST_LISTEN,
# WAYPOST_PUBLIC_URL, WAYPOST_ENCRYPTION_KEYS, WAYPOST_PROVIDER_BASE_URL, WAYPOST_ENV, WAYPOST_LOG, and all others, which
# the programs read themselves. SIMULATOR_URL (host and port) is the address of the simulator.
#
# Files in .dev: env (settings for other programs, written when everything is ready), api-key, password (of the demo
# organization's owner), encryption-keys, the data of the private servers, log/*.log. `make down` stops everything, `make clean-dev` also removes the files.
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "$0")/servers.sh"

readonly READY_SECONDS_MAX=60
readonly API_PORT=8080
readonly WORKER_HEALTH_PORT=8081
readonly SCHEDULER_HEALTH_PORT=8082
readonly API_HEALTH_PORT=8083
readonly SIMULATOR_PORT=8090
readonly SMTP_PORT=2525
readonly SUBMISSION_PORT=2587
readonly SUBMISSION_HEALTH_PORT=8084
readonly WAYPOST_EMAIL=owner@example.com

main() {
    local since
    since=$(now_ms)
    require_build_tools
    require_python
    state_open
    only_one up
    stop_on_failure
    is_running api || rm -f "$STATE/env" # its presence means that the service is ready
    start_development_servers
    build
    configure
    step "Migrating the database" "$BIN/waypost-api" migrate >&2
    start_programs
    connect_organization
    write_env_file
    say "    $(elapsed "$since") in total"
    print_welcome
}

build() {
    BIN=$(target_dir)/up
    if [[ ! -x $BIN/waypost-api ]]; then
        say "The first build compiles all dependencies: about five minutes on two cores."
    fi
    step "Building" interruptible build_cargo build --profile up --bins
}

# ---------------------------------------------------------------------------------------------------------------
# Settings

configure() {
    configure_api_address
    configure_simulator_address
    configure_smtp_address
    configure_submission_address
    export DATABASE_URL REDIS_URL
    export WAYPOST_ENV=${WAYPOST_ENV:-development}
    export WAYPOST_LISTEN WAYPOST_URL SIMULATOR_URL
    export WAYPOST_PUBLIC_URL=${WAYPOST_PUBLIC_URL:-$WAYPOST_URL}
    export WAYPOST_PROVIDER_BASE_URL=${WAYPOST_PROVIDER_BASE_URL:-$SIMULATOR_URL}
    if [[ -z ${WAYPOST_ENCRYPTION_KEYS:-} ]]; then
        [[ -s $STATE/encryption-keys ]] || { printf '1:' && head -c 32 /dev/urandom | base64; } | write_secret "$STATE/encryption-keys"
        WAYPOST_ENCRYPTION_KEYS=$(cat "$STATE/encryption-keys")
    fi
    export WAYPOST_ENCRYPTION_KEYS
    choose_program_port worker "$WORKER_HEALTH_PORT"
    WORKER_HEALTH=127.0.0.1:$CHOSEN_PORT
    choose_program_port scheduler "$SCHEDULER_HEALTH_PORT"
    SCHEDULER_HEALTH=127.0.0.1:$CHOSEN_PORT
    choose_second_port api api-health "$API_HEALTH_PORT"
    API_HEALTH=127.0.0.1:$CHOSEN_PORT
    choose_second_port smtp submission-health "$SUBMISSION_HEALTH_PORT"
    SUBMISSION_HEALTH=127.0.0.1:$CHOSEN_PORT
}

configure_api_address() {
    local host
    if [[ -n ${WAYPOST_LISTEN:-} ]]; then
        host=${WAYPOST_LISTEN%:*}
        # A listener on all addresses answers on loopback too.
        [[ $host != 0.0.0.0 && $host != '[::]' ]] || host=127.0.0.1
        require_given_port api WAYPOST_LISTEN "$host" "${WAYPOST_LISTEN##*:}"
    else
        choose_program_port api "$API_PORT"
        host=127.0.0.1
        WAYPOST_LISTEN=$host:$CHOSEN_PORT
        say_if_moved "The API" "$CHOSEN_PORT" "$API_PORT"
    fi
    WAYPOST_URL=http://$host:${WAYPOST_LISTEN##*:}
}

configure_simulator_address() {
    local host port
    if [[ -n ${SIMULATOR_URL:-} ]]; then
        read -r host port < <(url_host_port "$SIMULATOR_URL" "$SIMULATOR_PORT")
        require_given_port simulator SIMULATOR_URL "$host" "$port"
        SIMULATOR_LISTEN=$host:$port
    else
        choose_program_port simulator "$SIMULATOR_PORT"
        SIMULATOR_LISTEN=127.0.0.1:$CHOSEN_PORT
        SIMULATOR_URL=http://$SIMULATOR_LISTEN
        say_if_moved "The simulator" "$CHOSEN_PORT" "$SIMULATOR_PORT"
    fi
}

# configure_smtp_address : the simulator is also the server of every SMTP account, so that no mail leaves this machine. It
# has no trusted certificate, so SMTP accounts need "tls": "none".
configure_smtp_address() {
    choose_second_port simulator smtp "$SMTP_PORT"
    SIMULATOR_SMTP_LISTEN=127.0.0.1:$CHOSEN_PORT
    export WAYPOST_SMTP_SERVER=${WAYPOST_SMTP_SERVER:-$SIMULATOR_SMTP_LISTEN}
}

# configure_submission_address : where programs send mail over SMTP.
configure_submission_address() {
    if [[ -n ${WAYPOST_SUBMISSION_LISTEN:-} ]]; then
        require_given_port smtp WAYPOST_SUBMISSION_LISTEN "${WAYPOST_SUBMISSION_LISTEN%:*}" "${WAYPOST_SUBMISSION_LISTEN##*:}"
    else
        choose_program_port smtp "$SUBMISSION_PORT"
        WAYPOST_SUBMISSION_LISTEN=127.0.0.1:$CHOSEN_PORT
        say_if_moved "SMTP submission" "$CHOSEN_PORT" "$SUBMISSION_PORT"
    fi
    export WAYPOST_SUBMISSION_LISTEN
}

# choose_program_port NAME DEFAULT : sets CHOSEN_PORT like choose_port, but a program that runs already keeps its port.
choose_program_port() {
    local kept
    kept=$(cat "$STATE/ports/$1" 2>/dev/null || true)
    if [[ -n $kept ]] && listens_on "$1" "$kept"; then
        CHOSEN_PORT=$kept
        RESERVED_PORTS+=("$kept")
    else
        choose_port "$1" "$2"
    fi
}

# choose_second_port PROGRAM NAME DEFAULT : the same for another port of a program.
choose_second_port() {
    local kept
    kept=$(cat "$STATE/ports/$2" 2>/dev/null || true)
    if [[ -n $kept ]] && is_running "$1"; then
        CHOSEN_PORT=$kept
        RESERVED_PORTS+=("$kept")
    else
        choose_port "$2" "$3"
    fi
}

# require_given_port NAME VARIABLE HOST PORT : fails if a configured port is taken. Such a port is never replaced and not
# stored for the next start. For addresses other than loopback the program itself reports the error.
require_given_port() {
    if [[ $3 =~ ^(127\.0\.0\.1|localhost|0\.0\.0\.0)$ ]] && port_taken "$4" && ! listens_on "$1" "$4"; then
        die "$2 sets port $4, but another program listens there"
    fi
    RESERVED_PORTS+=("$4")
}

# listens_on NAME PORT : the program runs and was started with that port.
listens_on() { is_running "$1" && [[ $(cat "$STATE/run/$1.port" 2>/dev/null) == "$2" ]]; }

say_if_moved() {
    local who=$1 port=$2 usual=$3
    if [[ $port != "$usual" ]]; then say "==> $who uses port $port, because $usual was taken"; fi
}

# ---------------------------------------------------------------------------------------------------------------
# Programs

start_programs() {
    start_program simulator "$SIMULATOR_LISTEN" "$BIN/waypost-simulator" --listen "$SIMULATOR_LISTEN" \
        --smtp-listen "$SIMULATOR_SMTP_LISTEN"
    WAYPOST_HEALTH_LISTEN=$API_HEALTH start_program api "$WAYPOST_LISTEN" "$BIN/waypost-api" serve
    WAYPOST_HEALTH_LISTEN=$WORKER_HEALTH start_program worker "$WORKER_HEALTH" "$BIN/waypost-worker"
    WAYPOST_HEALTH_LISTEN=$SCHEDULER_HEALTH start_program scheduler "$SCHEDULER_HEALTH" "$BIN/waypost-scheduler"
    WAYPOST_HEALTH_LISTEN=$SUBMISSION_HEALTH start_program smtp "$WAYPOST_SUBMISSION_LISTEN" "$BIN/waypost-smtp"
    step "Waiting until all programs are ready" await_programs
}

# start_program NAME ADDRESS COMMAND… : starts a program, unless it runs with the same program and settings.
start_program() {
    local name=$1 port=${2##*:} fingerprint
    shift 2
    fingerprint=$(fingerprint "$@")
    ! runs_as "$name" "$fingerprint" || return 0
    if is_running "$name"; then
        say "==> Restarting the $name: it was rebuilt, or its settings changed"
        stop_all "$name"
    else
        say "==> Starting the $name (log: ${STATE#"$PWD"/}/log/$name.log)"
    fi
    printf '%s\n' "$port" >"$STATE/run/$name.port"
    spawn "$name" "$fingerprint" "$@"
}

# fingerprint COMMAND… : prints a digest of the program, its arguments and its settings. A digest, because settings
# contain secrets.
fingerprint() {
    {
        stat -c '%Y %s' "$1" 2>/dev/null || stat -f '%m %z' "$1"
        printf '%s\n' "$@"
        # Without the variables that are for other programs.
        env | grep -E '^(WAYPOST_|DATABASE_URL=|REDIS_URL=)' | grep -vE '^WAYPOST_(URL|SMTP_URL|API_KEY|EMAIL|PASSWORD|TEST_[A-Z_]*|BIN_DIR)=' | sort
    } | sha256
}

await_programs() {
    await_program simulator "$SIMULATOR_URL/"
    await_program api "$WAYPOST_URL/readyz"
    await_program worker "http://$WORKER_HEALTH/readyz"
    await_program scheduler "http://$SCHEDULER_HEALTH/readyz"
    await_program smtp "http://$SUBMISSION_HEALTH/readyz"
}

# await_program NAME URL : waits until URL answers 200; shows the log if the program ends or takes too long.
await_program() {
    local name=$1 url=$2 answer='' deadline
    deadline=$(($(now_ms) + READY_SECONDS_MAX * 1000))
    while (($(now_ms) < deadline)); do
        if ! is_running "$name"; then
            show_log_tail "$name"
            die "the $name ended instead of becoming ready"
        fi
        answer=$(python3 "$ROOT/scripts/request.py" GET "$url" || true)
        [[ ${answer%%$'\n'*} != 200 ]] || return 0
        sleep 0.1
    done
    show_log_tail "$name"
    die "the $name was not ready within $READY_SECONDS_MAX s; $url last answered: ${answer:-nothing}"
}

# ---------------------------------------------------------------------------------------------------------------
# The demo organization: an API key and a simulated provider account

# api METHOD PATH [BODY] : sets STATUS and ANSWER.
api() {
    local reply
    reply=$(API_KEY=$WAYPOST_API_KEY python3 "$ROOT/scripts/request.py" "$1" "$WAYPOST_URL$2" "${@:3}") ||
        die "no answer from $1 $WAYPOST_URL$2"
    STATUS=${reply%%$'\n'*}
    ANSWER=${reply#*$'\n'}
}

connect_organization() {
    find_or_create_key
    find_or_create_owner
    api GET /v1/providers
    # The real SendGrid does not have the simulated account.
    if [[ -n ${WAYPOST_SENDGRID_BASE_URL:-} && ${WAYPOST_SENDGRID_BASE_URL%/} != "$SIMULATOR_URL" ]]; then
        say "==> WAYPOST_SENDGRID_BASE_URL is set: not connecting a simulated SendGrid account"
        return 0
    fi
    if [[ $ANSWER == *'"data":[]'* || $ANSWER == *'"data": []'* ]]; then
        step "Connecting a simulated SendGrid account" connect_provider
    fi
    # At every start, because the simulator has no persistent state.
    step "Registering the event webhook of the simulated account" register_events
}

# find_or_create_key : sets WAYPOST_API_KEY to a valid key, and ANSWER to the organization's provider accounts.
find_or_create_key() {
    local given=${WAYPOST_API_KEY:-} kept
    kept=$(cat "$STATE/api-key" 2>/dev/null || true)
    for WAYPOST_API_KEY in $given $kept; do
        api GET /v1/providers
        [[ $STATUS != 200 ]] || return 0
        [[ $STATUS == 401 ]] || die "GET /v1/providers answered $STATUS: $ANSWER"
    done
    # A stored key that is not valid any more (another database, removed data) is replaced.
    [[ -z $given || $given == "$kept" ]] || die "WAYPOST_API_KEY is set, but the key is not valid; unset it to get a new one"
    step "Creating a demo organization and its key" create_key
    api GET /v1/providers
    [[ $STATUS == 200 ]] || die "GET /v1/providers answered $STATUS: $ANSWER"
}

create_key() {
    local organization
    organization=$("$BIN/waypost-api" create-organization --name Demo)
    WAYPOST_API_KEY=$("$BIN/waypost-api" create-api-key --organization "$organization" --name 'make up')
    printf '%s\n' "$WAYPOST_API_KEY" | write_secret "$STATE/api-key"
}

# find_or_create_owner : sets WAYPOST_PASSWORD to that of the person who signs in to the dashboard.
find_or_create_owner() {
    local organization
    if ! "$BIN/waypost-api" list-users --json | grep -qF "\"$WAYPOST_EMAIL\""; then
        api GET '/v1/api-keys?limit=1'
        organization=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["data"][0]["organizationId"])' "$ANSWER")
        random_hex 8 | write_secret "$STATE/password"
        step "Creating the owner of the demo organization" \
            make_owner "$BIN" "$organization" "$WAYPOST_EMAIL" 'Demo Owner' "$(cat "$STATE/password")"
    fi
    WAYPOST_PASSWORD=$(cat "$STATE/password" 2>/dev/null || true)
}

connect_provider() {
    api POST /v1/providers '{"providerType":"SENDGRID","displayName":"Simulated SendGrid","credentials":{"apiKey":"SG.simulated"}}'
    [[ $STATUS == 201 ]] || die "connecting the simulated provider account answered $STATUS: $ANSWER"
}

register_events() {
    local id
    api GET /v1/providers
    id=$(python3 -c 'import json, sys
for account in json.loads(sys.argv[1])["data"]:
    if account["displayName"] == "Simulated SendGrid":
        print(account["id"])' "$ANSWER" | head -n 1)
    # The user removed the account or connected other accounts.
    [[ -n $id ]] || return 0
    api POST "/v1/providers/$id/event-webhook" '{}'
    [[ $STATUS == 200 ]] || die "registering the simulated account's events answered $STATUS: $ANSWER"
}

# ---------------------------------------------------------------------------------------------------------------
# Output

# write_env_file : writes the settings to a file, for running operator commands: set -a; . .dev/env; set +a
write_env_file() {
    local name
    # shellcheck disable=SC2034 # read by its name below
    WAYPOST_SMTP_URL=smtp://waypost:$WAYPOST_API_KEY@$WAYPOST_SUBMISSION_LISTEN
    for name in WAYPOST_URL WAYPOST_SMTP_URL WAYPOST_API_KEY WAYPOST_EMAIL WAYPOST_PASSWORD SIMULATOR_URL DATABASE_URL REDIS_URL WAYPOST_ENV WAYPOST_LISTEN \
        WAYPOST_PUBLIC_URL WAYPOST_ENCRYPTION_KEYS WAYPOST_PROVIDER_BASE_URL WAYPOST_SMTP_SERVER \
        WAYPOST_SUBMISSION_LISTEN; do
        printf '%s=%q\n' "$name" "${!name}"
    done | write_secret "$STATE/env"
}

print_welcome() {
    cat <<TEXT

Waypost is running.

  Dashboard       $WAYPOST_URL/
                  sign in as $WAYPOST_EMAIL with the password ${WAYPOST_PASSWORD:-that you set}
  API             $WAYPOST_URL/v1
  API docs        $WAYPOST_URL/docs
  SMTP            $WAYPOST_SUBMISSION_LISTEN   (any user name; the password is the API key)
  API key         $WAYPOST_API_KEY
  Sent mail       $SIMULATOR_URL/   (the inbox of the simulator; no mail leaves this machine)

Send a first mail:

  curl -s $WAYPOST_URL/v1/send \\
    -H 'Authorization: Bearer $WAYPOST_API_KEY' -H 'Content-Type: application/json' \\
    -d '{"from":"hello@example.com","to":"you@example.org","subject":"Hello","text":"It works."}'

The same over SMTP:

  python3 -c 'import smtplib; s = smtplib.SMTP("${WAYPOST_SUBMISSION_LISTEN%:*}", ${WAYPOST_SUBMISSION_LISTEN##*:}); s.login("waypost", "$WAYPOST_API_KEY"); s.sendmail(
    "hello@example.com", "you@example.org", "From: hello@example.com\\nTo: you@example.org\\nSubject: Hello\\n\\nIt works.")'

Show the status of the latest message:

  curl -s $WAYPOST_URL/v1/messages/\$(curl -s '$WAYPOST_URL/v1/messages?limit=1' \\
    -H 'Authorization: Bearer $WAYPOST_API_KEY' | python3 -c 'import json,sys; print(json.load(sys.stdin)["data"][0]["id"])') \\
    -H 'Authorization: Bearer $WAYPOST_API_KEY'

  Settings for other programs: .dev/env    Logs: .dev/log/    Stop: make down
TEXT
}

main
