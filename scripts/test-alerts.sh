#!/usr/bin/env bash
# make test-alerts: checks deploy/prometheus and deploy/grafana, then makes alerts true, one after the other, on a running
# Waypost watched by a real Prometheus with the shipped rules. Each must fire, and end after the mend. Uses a PostgreSQL, a
# Redis, a Prometheus and processes for this run only.
#
# The rules run in fast motion: each minute in them becomes a second (see in_seconds).
#
# The full disk is a small file system of its own that this script mounts. That needs root or user namespaces; without
# either this fault is left out, and the script says so.
#
# test-alerts.sh files checks the files alone. ALERTS_BIN is a directory of built programs; without it they are built.
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "$0")/servers.sh"

readonly ALERTS_POSTGRES_PORT=20532
readonly ALERTS_REDIS_PORT=20579
readonly ALERTS_API_PORT=20540
readonly ALERTS_HEALTH_PORT=20541
readonly ALERTS_SUBMISSION_PORT=20545
readonly ALERTS_SIMULATOR_PORT=20550
readonly ALERTS_RECEIVER_PORT=20551
readonly ALERTS_PROMETHEUS_PORT=20590
# Small enough to fill at once, large enough for the cluster, its WAL and the mail of the run.
readonly DISK_MIB=320
readonly POSTGRES_SETTINGS=(fsync=off synchronous_commit=off full_page_writes=off max_wal_size=64MB min_wal_size=48MB
    shared_buffers=64MB log_min_duration_statement=-1)

# The alerts that the faults below may raise.
readonly EXPECTED=(WaypostNoWorker WaypostProcessDown WaypostQueueStuck WaypostQueueSlow WaypostMailWaits
    WaypostWebhookEndpointsFailing WaypostWebhooksLate WaypostProviderPostsRefused WaypostProviderFailing
    WaypostAccountFailing WaypostRedisUnavailable WaypostPostgresUnavailable WaypostApiErrors WaypostApiSlow
    WaypostDatabaseResources WaypostDatabasePoolWaits WaypostEncryptionKeysWrong WaypostNoScheduler WaypostTaskLate
    WaypostApiDown)

main() {
    local since
    since=$(now_ms)
    unset DATABASE_URL REDIS_URL # always use private servers
    require_python
    [[ ${1:-} == files ]] || enter_own_mounts "$@"
    scratch_open alerts
    trap close EXIT
    have promtool || install_packages Prometheus prometheus golang-github-prometheus prometheus
    step "Checking the files" check_files
    if [[ ${1:-} != files ]]; then
        BIN=${ALERTS_BIN:-$(target_dir)/debug}
        [[ -n ${ALERTS_BIN:-} ]] || step "Building (debug)" interruptible build_cargo build --workspace --bins
        start_all
        disown -a # otherwise bash reports each process that the run stops
        step "Nothing is wrong, and no alert fires" stay_quiet
        make_alerts_true
        step "Everything is mended, and every alert ends" await_end_of_alerts
        step "No other alert fired" no_other_fired
        step "Comparing what rules and dashboard name with what Prometheus has" \
            python3 "$ROOT/scripts/check_alerts.py" series "$PROMETHEUS"
    fi
    say "==> Passed; $(elapsed "$since") in total"
}

# enter_own_mounts ARGUMENT… : runs this script again where its mounts are its own and end with it.
enter_own_mounts() {
    local -a namespace=(unshare --mount --propagation private)
    [[ -z ${ALERTS_OWN_MOUNTS:-} ]] || return 0
    if [[ $(id -u) != 0 ]]; then
        # There sudo works no more, so all that is needed must be installed.
        have promtool && find_postgres && find_redis || return 0
        namespace+=(--user --map-current-user --keep-caps)
    fi
    export ALERTS_OWN_MOUNTS=no
    if "${namespace[@]}" mount -t tmpfs tmpfs /mnt 2>/dev/null; then
        ALERTS_OWN_MOUNTS=yes exec "${namespace[@]}" "$0" "$@"
    fi
}

# ---------------------------------------------------------------------------------------------------------------
# The files

check_files() {
    local config=$ROOT/deploy/prometheus
    promtool check config "$config/prometheus.yml" >"$STATE/log/promtool.log" 2>&1 || promtool_failed
    promtool test rules "$config/alerts_test.yml" >"$STATE/log/promtool.log" 2>&1 || promtool_failed
    python3 "$ROOT/scripts/check_alerts.py" files "$STATE"
    promtool check rules "$STATE/dashboard.yml" >"$STATE/log/promtool.log" 2>&1 || promtool_failed
    promtool check config --syntax-only "$STATE"/prometheus-*.yml >"$STATE/log/promtool.log" 2>&1 || promtool_failed
    in_seconds <"$config/alerts.yml" >"$STATE/rules.yml"
    promtool check rules "$STATE/rules.yml" >"$STATE/log/promtool.log" 2>&1 || promtool_failed
    if grep -qE '\[[0-9]+m\]|for: [0-9]+m|\* 60' "$STATE/rules.yml"; then die "in_seconds left minutes in the rules"; fi
}

promtool_failed() {
    show_log_tail promtool
    die "promtool refuses a file of deploy"
}

# in_seconds : turns each minute of the rules into a second: `for: 5m`, `[10m]`, `10 * 60`.
in_seconds() { sed -E 's/(for: [0-9]+)m$/\1s/; s/\[([0-9]+)m\]/[\1s]/g; s/([0-9]+) \* 60\b/\1/g'; }

# ---------------------------------------------------------------------------------------------------------------
# What is watched

start_all() {
    [[ ${ALERTS_OWN_MOUNTS:-no} == no ]] || mount_small_disk
    step "Starting a PostgreSQL" start_own_postgres
    step "Starting a Redis" start_own_redis
    configure
    step "Starting Waypost" start_programs
    connect
    step "Starting Prometheus" start_prometheus
    API_KEY=$WAYPOST_API_KEY spawn sender alerts python3 "$ROOT/scripts/alerts_run.py" send
}

# A directory of this run becomes a file system of its own, for the data of PostgreSQL.
mount_small_disk() {
    mount -t tmpfs -o "size=${DISK_MIB}m,mode=0700,uid=$(id -u "$(service_user)")" tmpfs "$(data_root)"
}

# close : stops everything, unmounts, and removes the directory of the run.
close() {
    trap '' INT TERM HUP
    stop_everything
    ! mountpoint --quiet "$(data_root)" || umount "$(data_root)"
    scratch_close
}

start_own_postgres() { start_postgres "$ALERTS_POSTGRES_PORT" "${POSTGRES_SETTINGS[@]}"; }
start_own_redis() { start_redis "$ALERTS_REDIS_PORT" --save '' --appendonly no; }

# restart_in_place START NAME : starts a server on its old port, or fails: the running programs know no other port.
restart_in_place() {
    local port
    port=$(cat "$STATE/ports/$2")
    RESERVED_PORTS=()
    "$1"
    [[ $(cat "$STATE/ports/$2") == "$port" ]] || die "$2 could not get its port $port again"
}

# configure : chooses the ports and exports the settings of all programs.
configure() {
    DATABASE_URL=$(private_postgres_url waypost)
    REDIS_URL=$(private_redis_url)
    choose_port simulator "$ALERTS_SIMULATOR_PORT" && SIMULATOR_URL=http://127.0.0.1:$CHOSEN_PORT
    choose_port receiver "$ALERTS_RECEIVER_PORT" && RECEIVER_PORT=$CHOSEN_PORT
    choose_port api "$ALERTS_API_PORT" && WAYPOST_LISTEN=127.0.0.1:$CHOSEN_PORT
    WAYPOST_URL=http://$WAYPOST_LISTEN
    choose_port api-health "$ALERTS_HEALTH_PORT" && API_HEALTH=127.0.0.1:$CHOSEN_PORT
    choose_port worker "$ALERTS_HEALTH_PORT" && WORKER_HEALTH=127.0.0.1:$CHOSEN_PORT
    choose_port scheduler "$ALERTS_HEALTH_PORT" && SCHEDULER_HEALTH=127.0.0.1:$CHOSEN_PORT
    choose_port smtp "$ALERTS_HEALTH_PORT" && SMTP_HEALTH=127.0.0.1:$CHOSEN_PORT
    choose_port submission "$ALERTS_SUBMISSION_PORT" && WAYPOST_SUBMISSION_LISTEN=127.0.0.1:$CHOSEN_PORT
    choose_port other-api "$ALERTS_HEALTH_PORT" && OTHER_API=127.0.0.1:$CHOSEN_PORT
    choose_port other-api-health "$ALERTS_HEALTH_PORT" && OTHER_API_HEALTH=127.0.0.1:$CHOSEN_PORT
    choose_port prometheus "$ALERTS_PROMETHEUS_PORT" && PROMETHEUS=http://127.0.0.1:$CHOSEN_PORT
    HANGING=$STATE/hanging
    export DATABASE_URL REDIS_URL WAYPOST_LISTEN WAYPOST_SUBMISSION_LISTEN WAYPOST_URL WAYPOST_ENV=development WAYPOST_LOG=warn
    export WAYPOST_PUBLIC_URL=$WAYPOST_URL WAYPOST_PROVIDER_BASE_URL=$SIMULATOR_URL WAYPOST_WEBHOOK_TIMEOUT=2s
    # A worker that was stopped and started again takes up its mail at once.
    export WAYPOST_RETRY_FIRST=1s WAYPOST_RETRY_LONGEST=5s
}

start_programs() {
    "$BIN/waypost-api" migrate >&2
    spawn simulator alerts "$BIN/waypost-simulator" --listen "${SIMULATOR_URL#http://}"
    spawn receiver alerts python3 "$ROOT/scripts/alerts_run.py" receive "$RECEIVER_PORT" "$HANGING"
    start_api
    start_worker
    start_scheduler
    start_smtp
    wait_for_server api api_answers || { show_log_tail api; die "the API did not start"; }
}

start_api() { WAYPOST_HEALTH_LISTEN=$API_HEALTH spawn api alerts "$BIN/waypost-api" serve; }
start_worker() { WAYPOST_HEALTH_LISTEN=$WORKER_HEALTH spawn worker alerts "$BIN/waypost-worker"; }
start_smtp() { WAYPOST_HEALTH_LISTEN=$SMTP_HEALTH spawn smtp alerts "$BIN/waypost-smtp"; }
start_scheduler() { WAYPOST_HEALTH_LISTEN=$SCHEDULER_HEALTH spawn scheduler alerts "$BIN/waypost-scheduler"; }

# connect : makes an organization with a provider account and a webhook endpoint.
connect() {
    WAYPOST_API_KEY=$(make_api_key "$BIN" Alerts)
    post "$WAYPOST_URL/v1/providers" \
        '{"providerType": "SENDGRID", "displayName": "SendGrid", "credentials": {"apiKey": "SG.good-key"}}'
    EVENTS_URL=$(sed -n 's/.*"webhookUrl":"\([^"]*\)".*/\1/p' <<<"$ANSWER")
    post "$WAYPOST_URL/v1/webhook-endpoints" "{\"url\": \"http://127.0.0.1:$RECEIVER_PORT/\", \"events\": [\"DELIVERED\"]}"
}

# post URL BODY : sets ANSWER; fails unless it was accepted.
post() {
    ANSWER=$(API_KEY=${WAYPOST_API_KEY:-} python3 "$ROOT/scripts/request.py" POST "$@") || die "no answer from $1"
    [[ $ANSWER == 2* ]] || die "$1 answered $ANSWER"
}

# The rules and jobs are the shipped ones. While PostgreSQL is away, a scheduler takes up to 4 s to answer, others 1.5 s.
start_prometheus() {
    local job
    {
        printf 'global: { scrape_interval: 3s, scrape_timeout: 3s, evaluation_interval: 1s }\n'
        printf 'rule_files: [rules.yml]\nscrape_configs:\n'
        for job in api worker scheduler smtp; do
            printf '  - job_name: waypost-%s\n    file_sd_configs: [{ files: [%s.json], refresh_interval: 1s }]\n' "$job" "$job"
            [[ $job != scheduler ]] || printf '    scrape_interval: 5s\n    scrape_timeout: 5s\n'
        done
    } >"$STATE/prometheus.yml"
    watch_targets api "$API_HEALTH"
    watch_targets worker "$WORKER_HEALTH"
    watch_targets scheduler "$SCHEDULER_HEALTH"
    watch_targets smtp "$SMTP_HEALTH"
    spawn prometheus alerts prometheus --config.file="$STATE/prometheus.yml" --storage.tsdb.path="$STATE/prometheus" \
        --web.listen-address="${PROMETHEUS#http://}" --log.level=warn
    wait_for_server prometheus prometheus_answers || { show_log_tail prometheus; die "Prometheus did not start"; }
}

prometheus_answers() { python3 "$ROOT/scripts/request.py" GET "$PROMETHEUS/-/ready" 2>/dev/null | grep -q '^200$'; }

# watch_targets JOB ADDRESS… : Prometheus reads the metrics of these from now on.
watch_targets() {
    local list
    list=$(printf '"%s",' "${@:2}")
    printf '[{"targets": [%s]}]\n' "${list%,}" >"$STATE/$1.json.new"
    mv "$STATE/$1.json.new" "$STATE/$1.json"
}

run() { interruptible python3 "$ROOT/scripts/alerts_run.py" "$@"; }
firing() { run firing "$PROMETHEUS" "$@"; }
gone() { run gone "$PROMETHEUS" "$@"; }

# Prometheus knows nothing before it has read the metrics once, and says that all is down.
stay_quiet() {
    run reading "$PROMETHEUS"
    gone
    QUIET_SINCE=$(now_ms)
    run quiet "$PROMETHEUS" 10
}

# ---------------------------------------------------------------------------------------------------------------
# The faults. What takes longer to end than the next fault to begin is awaited at the end of all.

make_alerts_true() {
    step "A webhook endpoint hangs, and somebody posts events with a wrong signature" hang_endpoint
    step "The provider is dead, too" kill_provider
    step "An API with another encryption key does not start" use_wrong_key
    step "The worker is stopped" stop_worker
    step "The scheduler is stopped" stop_scheduler
    step "Redis is stopped" stop_redis
    if [[ ${ALERTS_OWN_MOUNTS:-no} == yes ]]; then
        step "The disk of PostgreSQL is full" fill_disk
    else
        warn "the full disk is not tested: this user cannot mount a file system, or PostgreSQL, Redis or Prometheus had to be installed"
    fi
    step "PostgreSQL is stopped, and an API with another encryption key starts meanwhile" stop_postgres
    step "The API is stopped" stop_api
}

hang_endpoint() {
    touch "$HANGING"
    run post "$EVENTS_URL" 30
    firing WaypostProviderPostsRefused
}

kill_provider() {
    post "$SIMULATOR_URL/faults" '{"provider": "SENDGRID", "kind": "error", "calls": "ALL"}'
    firing WaypostProviderFailing WaypostAccountFailing WaypostWebhookEndpointsFailing
    rm "$HANGING"
    post "$SIMULATOR_URL/faults" '{"provider": "SENDGRID", "kind": "none"}'
}

use_wrong_key() {
    start_other_api
    firing WaypostProcessDown
    ! is_running other-api || die "an API with another encryption key runs"
    grep -q WAYPOST_ENCRYPTION_KEYS "$STATE/log/other-api.log" || { show_log_tail other-api; die "it did not say why"; }
    stop_other_api
    gone WaypostProcessDown
}

start_other_api() {
    WAYPOST_ENCRYPTION_KEYS=9:$(head -c 32 /dev/urandom | base64) WAYPOST_LISTEN=$OTHER_API \
        WAYPOST_HEALTH_LISTEN=$OTHER_API_HEALTH spawn other-api alerts "$BIN/waypost-api" serve
    watch_targets api "$API_HEALTH" "$OTHER_API_HEALTH"
}

stop_other_api() {
    watch_targets api "$API_HEALTH"
    stop_all other-api
}

stop_worker() {
    stop_all worker
    firing WaypostNoWorker WaypostProcessDown WaypostQueueStuck
    start_worker
    gone WaypostNoWorker WaypostProcessDown WaypostQueueStuck
}

stop_scheduler() {
    stop_all scheduler
    firing WaypostNoScheduler
    start_scheduler
    gone WaypostNoScheduler
}

stop_redis() {
    stop_all redis
    firing WaypostRedisUnavailable
    restart_in_place start_own_redis redis
    gone WaypostRedisUnavailable
}

fill_disk() {
    local filler
    filler=$(data_root)/filler
    dd if=/dev/zero of="$filler" bs=64k 2>/dev/null || true # until there is no space left
    firing WaypostDatabaseResources
    rm "$filler"
    # A server that cannot write its WAL ends.
    is_running postgres || restart_in_place start_own_postgres postgres
    gone WaypostDatabaseResources
}

stop_postgres() {
    stop_all postgres
    # A program starts without PostgreSQL, and then cannot see that its key is wrong.
    start_other_api
    firing WaypostPostgresUnavailable WaypostApiErrors
    restart_in_place start_own_postgres postgres
    gone WaypostPostgresUnavailable WaypostApiErrors
    firing WaypostEncryptionKeysWrong
    stop_other_api
    gone WaypostEncryptionKeysWrong
}

stop_api() {
    stop_all api
    firing WaypostApiDown
    start_api
    gone WaypostApiDown
}

# A task that runs every ten minutes and failed meanwhile stays late until its next run, in fast motion for ever.
await_end_of_alerts() {
    local -a names=()
    local name
    for name in "${EXPECTED[@]}"; do [[ $name == WaypostTaskLate ]] || names+=("$name"); done
    gone "${names[@]}"
}

no_other_fired() { run only "$PROMETHEUS" $((($(now_ms) - QUIET_SINCE) / 1000)) "${EXPECTED[@]}"; }

main "$@"
