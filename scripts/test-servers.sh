#!/usr/bin/env bash
# make test-servers: runs Waypost with PostgreSQL and Redis as others run them, on servers of this run only: Redis with TLS,
# a user with few rights and Sentinels; PostgreSQL with TLS, client certificates, PgBouncer and a synchronous standby. In
# each case a server fails over in the middle of a load, and the messages are counted; see chaos/. Then wrong settings:
# each must be explained in one sentence.
#
# test-servers.sh [CASE…] runs these cases only: settings, pgbouncer, redis, postgres. MESSAGES sets the load of each case
# (400), SEED repeats it. SERVERS_BIN is a directory of built programs; without it they are built.
set -euo pipefail
# shellcheck source=failover-servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/failover-servers.sh"

readonly TEST_PROXY_PORT=20302
readonly CHAOS_PORT_FIRST=20330

FAILED=()

main() {
    local since name
    local -a cases=("$@")
    since=$(now_ms)
    ((${#cases[@]})) || cases=(settings pgbouncer redis postgres) # the last one leaves only the standby
    for name in "${cases[@]}"; do
        [[ $(type -t "case_$name") == function ]] || die "there is no case $name"
    done
    SEED=${SEED:-$((RANDOM * 32768 + RANDOM))}
    unset DATABASE_URL REDIS_URL # always use private servers
    require_build_tools
    scratch_open test-servers
    have openssl || install_packages openssl openssl openssl openssl
    BIN=${SERVERS_BIN:-$(target_dir)/debug}
    [[ -n ${SERVERS_BIN:-} ]] || step "Building (debug)" interruptible build_cargo build --workspace --bins
    start_servers
    for name in "${cases[@]}"; do "case_$name"; done
    say "==> $(elapsed "$since") in total"
    ((${#FAILED[@]} == 0)) || die "failed: ${FAILED[*]}; SEED=$SEED repeats the loads"
}

start_servers() {
    make_certificates
    step "Starting PostgreSQL, PgBouncer, two Redis and three Sentinels" start_all
    disown -a # otherwise bash reports each server that the run kills
}

start_all() {
    start_postgres_with_tls
    create_database pgbouncer_case
    start_pgbouncer
    start_redis_pair
}

# ---------------------------------------------------------------------------------------------------------------
# The cases

case_redis() {
    create_database redis_case
    run_load redis kill-redis-master "Redis: TLS, client certificate, limited user, Sentinels; the master is killed" \
        DATABASE_URL="$(plain_url redis_case)" REDIS_URL="$(sentinel_url)"
    no_denied_command
}

# no_denied_command : Redis has denied the user of Waypost nothing.
no_denied_command() {
    local name denied
    for name in redis-1 redis-2; do
        denied=$(redis_asks "$name" ACL LOG | grep -A1 -E '^ *[0-9]*\)? *"?(object|username)' || true)
        report "the user of docs/operations.md suffices at $name" "$([[ $denied != *waypost* ]] && echo true)" "$denied"
    done
}

case_pgbouncer() {
    run_load pgbouncer restart-pgbouncer "PgBouncer in session mode; it is killed and starts again" \
        DATABASE_URL="$(pgbouncer_url session)" REDIS_URL="$(redis_url)" -- --tables-url "$(plain_url pgbouncer_case)"
}

case_postgres() {
    create_database postgres_case
    step "Starting a synchronous standby" start_standby
    GOOD_DATABASE_URL=$(tls_url "$(port_of postgres-standby)" postgres_case)
    GOOD_REDIS_URL=$(sentinel_url)
    explains WAYPOST_ENV=development 'accepts no writes: is it a standby'
    choose_port proxy "$TEST_PROXY_PORT"
    run_load postgres kill-postgres-primary \
        "PostgreSQL: verify-full, client certificate, synchronous standby; the primary is killed, the standby promoted" \
        DATABASE_URL="$(tls_url "$CHOSEN_PORT" postgres_case)" REDIS_URL="$(sentinel_url)" -- \
        --forward "127.0.0.1:$CHOSEN_PORT=127.0.0.1:$(port_of postgres),127.0.0.1:$(port_of postgres-standby)"
}

case_settings() {
    say "==> Wrong settings, each in one sentence"
    create_database postgres_case_settings
    postgres_settings
    pgbouncer_settings
    redis_settings
}

# ---------------------------------------------------------------------------------------------------------------
# URLs

plain_url() { printf 'postgres://mail:%s@127.0.0.1:%s/%s' "$TEST_PASSWORD" "$(port_of postgres)" "$1"; }
pgbouncer_url() { printf 'postgres://mail:%s@127.0.0.1:%s/%s' "$TEST_PASSWORD" "$(port_of pgbouncer)" "$1"; }

# files : the parameters of a URL that name the certificates.
files() { printf 'sslrootcert=%s/%s.crt&sslcert=%s/client.crt&sslkey=%s/client.key' "$(tls_dir)" "${1:-ca}" "$(tls_dir)" "$(tls_dir)"; }

# tls_url PORT DATABASE
tls_url() { printf 'postgres://mail@127.0.0.1:%s/%s?sslmode=verify-full&%s' "$1" "$2" "$(files)"; }

redis_url() { printf 'rediss://waypost:%s@127.0.0.1:%s/0?%s' "$TEST_PASSWORD" "$(port_of redis-1)" "$(files)"; }

sentinel_url() {
    printf 'rediss+sentinel://waypost:%s@127.0.0.1:%s,127.0.0.1:%s,127.0.0.1:%s/main/0?sentinel_password=%s&%s' \
        "$TEST_PASSWORD" "$(port_of sentinel-1)" "$(port_of sentinel-2)" "$(port_of sentinel-3)" "$TEST_PASSWORD" "$(files)"
}

# ---------------------------------------------------------------------------------------------------------------
# The load

# run_load NAME ACTION WHAT VARIABLE=VALUE… [-- ARGUMENT…] : runs a load during which the action happens.
run_load() {
    local name=$1 action=$2 what=$3 log=$STATE/log/$1-load.txt counts kept
    local -a variables=()
    shift 3
    while (($#)) && [[ $1 != -- ]]; do variables+=("$1") && shift; done
    (($# == 0)) || shift
    say "==> $what"
    if interruptible env "${variables[@]}" STATE="$STATE" WAYPOST_BIN_DIR="$BIN" "$BIN/waypost-chaos" --seed "$SEED" \
        --messages "${MESSAGES:-400}" --port-first "$CHAOS_PORT_FIRST" --server-fault "$action" "$@" >"$log" 2>&1; then
        counts=$(sed -n 's/^chaos: seed=[0-9]* \(accepted.*\)/\1/p' "$log" | tail -n 1)
        report "$name: $counts; $(grep -o 'every API was ready.*' "$log")" true
    else
        kept=$ROOT/.dev/test-servers-failed/$SEED
        mkdir -p "$kept"
        cp "$STATE"/log/* "$kept"
        report "$name" false "$(tail -n 15 "$log")
the logs are in $kept"
    fi
}

# report WHAT PASSED [DETAILS] : prints the line of a result.
report() {
    if [[ $2 == true ]]; then
        say "    ok      $1"
    else
        say "    FAILED  $1"
        say "${3:-}"
        FAILED+=("$(head -n 1 <<<"${1%%:*}")")
    fi
}

# ---------------------------------------------------------------------------------------------------------------
# Settings

# explains VARIABLE=VALUE SENTENCE : with this instead of a good setting, `waypost-api doctor` fails with this sentence and
# does not print the password.
explains() {
    local output status=0 passed=false
    output=$(env DATABASE_URL="$GOOD_DATABASE_URL" REDIS_URL="$GOOD_REDIS_URL" WAYPOST_ENV=development \
        WAYPOST_LISTEN=127.0.0.1:0 WAYPOST_LOG=warn "$1" "$BIN/waypost-api" doctor 2>&1) || status=$?
    [[ $status == 0 || $output != *"$2"* || $output == *"$TEST_PASSWORD"* ]] || passed=true
    output=${output//$(data_root)/…}
    [[ $passed == false ]] || output=$(grep -F "$2" <<<"$output")
    report "$output" "$passed" "    expected with $1: $2"
}

postgres_settings() {
    local port dir url
    port=$(port_of postgres)
    dir=$(tls_dir)
    GOOD_DATABASE_URL=$(plain_url postgres_case_settings)
    GOOD_REDIS_URL=$(redis_url)
    env DATABASE_URL="$GOOD_DATABASE_URL" REDIS_URL="$GOOD_REDIS_URL" WAYPOST_ENV=development "$BIN/waypost-api" migrate
    url=postgres://mail:$TEST_PASSWORD@127.0.0.1:$port/postgres_case_settings
    explains "DATABASE_URL=$url?sslmode=verify-full&sslrootcert=$dir/other-ca.crt" 'over TLS (invalid peer certificate: UnknownIssuer)'
    explains "DATABASE_URL=${url/127.0.0.1/localhost}?sslmode=verify-full&sslrootcert=$dir/ca.crt" 'not valid for'
    explains "DATABASE_URL=$url?sslmode=verify-full&sslrootcert=$dir/none.crt" 'the files of sslrootcert'
    explains "DATABASE_URL=postgres://mail@127.0.0.1:$port/postgres_case?sslmode=verify-full&sslrootcert=$dir/ca.crt" 'check sslcert and sslkey in DATABASE_URL'
    explains "DATABASE_URL=postgres://mail:$TEST_PASSWORD@one:5432,two:5432/x" 'DATABASE_URL must name one host'
}

pgbouncer_settings() {
    explains "DATABASE_URL=$(pgbouncer_url transaction)" 'set pool_mode = session in the pooler'
    explains "DATABASE_URL=$(pgbouncer_url statement)" 'set pool_mode = session in the pooler'
    explains "DATABASE_URL=postgres://mail:wrong@127.0.0.1:$(port_of pgbouncer)/session" 'the password in DATABASE_URL'
    explains "DATABASE_URL=$(pgbouncer_url elsewhere)" 'elsewhere'
}

redis_settings() {
    local port dir url
    port=$(port_of redis-1)
    dir=$(tls_dir)
    url=rediss://waypost:$TEST_PASSWORD@127.0.0.1:$port/0
    explains "REDIS_URL=$url?$(files other-ca)" 'UnknownIssuer'
    explains "REDIS_URL=${url/127.0.0.1/localhost}?$(files)" 'not valid for'
    explains "REDIS_URL=$url?sslrootcert=$dir/ca.crt" 'certificate'
    explains "REDIS_URL=$url?sslrootcert=$dir/none.crt" 'none.crt, which sslrootcert names, cannot be read'
    explains "REDIS_URL=redis://waypost:$TEST_PASSWORD@127.0.0.1:$port/0" 'rediss://'
    explains "REDIS_URL=rediss://waypost:wrong@127.0.0.1:$port/0?$(files)" 'the password in REDIS_URL'
    explains "REDIS_URL=rediss://sentinel:$TEST_PASSWORD@127.0.0.1:$port/0?$(files)" 'has the rights that Waypost needs'
    explains "REDIS_URL=$(sentinel_url | sed 's,/main/,/other/,')" 'know no such master'
    explains "REDIS_URL=$(sentinel_url | sed 's,sentinel_password=[^&]*,sentinel_password=wrong,')" 'and sentinel_password'
    explains "REDIS_URL=$(sentinel_url | sed 's,://waypost:[^@]*@,://waypost:wrong@,')" 'the password in REDIS_URL'
}

main "$@"
