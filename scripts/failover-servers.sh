#!/usr/bin/env bash
# For `make test-servers` only: starts the servers that fail over, and makes them fail while a load runs. STATE is the
# directory of the run.
#
#   redis-1, redis-2             TLS with client certificates, users with few rights; redis-2 is the replica
#   sentinel-1 to sentinel-3     watch the master under the name `main`
#   postgres, postgres-standby   TLS; the standby is synchronous
#   pgbouncer                    in front of postgres; databases `session` and `transaction`
#
# failover-servers.sh kill-redis-master | kill-postgres-primary | restart-pgbouncer
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/servers.sh"

readonly TEST_POSTGRES_PORT=20300
readonly TEST_STANDBY_PORT=20301
readonly TEST_PGBOUNCER_PORT=20303
readonly TEST_REDIS_PORT=20310
readonly TEST_SENTINEL_PORT=20320
# How long the standby is there, but read-only, before it is promoted.
readonly PROMOTE_AFTER_SECONDS=2
# A password in all of these servers. No message may repeat it.
readonly TEST_PASSWORD=canary-not-a-secret

tls_dir() { printf '%s/tls' "$(data_root)"; }
port_of() { cat "$STATE/ports/$1"; }

# ---------------------------------------------------------------------------------------------------------------
# Certificates

# make_certificates : an authority; certificates of it for the servers at 127.0.0.1 and for the client `mail`; and another
# authority, which has signed nothing.
make_certificates() {
    local dir
    dir=$(tls_dir)
    mkdir -p "$dir"
    make_authority "$dir/ca"
    make_authority "$dir/other-ca"
    sign_certificate "$dir" server /CN=servers subjectAltName=IP:127.0.0.1
    sign_certificate "$dir" client /CN=mail subjectAltName=DNS:mail
    chmod 600 "$dir"/*.key
    [[ $(id -u) != 0 ]] || chown -R "$(service_user)" "$dir"
}

make_authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$(basename "$1")" \
        -addext basicConstraints=critical,CA:TRUE -keyout "$1.key" -out "$1.crt" 2>/dev/null
}

sign_certificate() {
    local dir=$1 name=$2 subject=$3 alternative=$4
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$subject" -keyout "$dir/$name.key" \
        -out "$dir/$name.csr" 2>/dev/null
    openssl x509 -req -in "$dir/$name.csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" -CAcreateserial -days 2 \
        -extfile <(printf '%s\n' "$alternative" basicConstraints=critical,CA:FALSE) -out "$dir/$name.crt" 2>/dev/null
}

# ---------------------------------------------------------------------------------------------------------------
# Redis and its Sentinels

# start_redis_pair : starts redis-1, its replica redis-2 and three Sentinels.
start_redis_pair() {
    local nth
    ensure_redis_installed
    have redis-cli || die "redis-cli is not installed (Debian, Ubuntu: apt-get install redis-tools)"
    start_redis_node 1
    start_redis_node 2 replicaof 127.0.0.1 "$(port_of redis-1)"
    for nth in 1 2 3; do start_sentinel "$nth"; done
    wait_until "the replica follows" replica_follows
    wait_until "the Sentinels know each other" sentinels_agree
}

# tls_lines : the settings of Redis and Sentinel for TLS. Clients need a certificate, which is the default.
tls_lines() {
    local dir
    dir=$(tls_dir)
    printf '%s\n' 'port 0' 'bind 127.0.0.1' "tls-port $1" "tls-cert-file $dir/server.crt" "tls-key-file $dir/server.key" \
        "tls-ca-cert-file $dir/ca.crt" 'tls-replication yes'
}

# acl_lines : the users. That of Waypost is the one in docs/operations.md; those of replicas and Sentinels are from the
# documentation of Redis.
acl_lines() {
    printf 'user %s on >%s %s\n' \
        default "$TEST_PASSWORD" '-@all' \
        waypost "$TEST_PASSWORD" "$(sed -n 's/^user waypost on >PASSWORD //p' "$ROOT/docs/operations.md")" \
        replica "$TEST_PASSWORD" '+psync +replconf +ping' \
        sentinel "$TEST_PASSWORD" 'allchannels +multi +slaveof +ping +exec +subscribe +config|rewrite +role +publish +info +client|setname +client|kill +script|kill' \
        admin "$TEST_PASSWORD" '~* &* +@all'
}

# start_redis_node NTH [SETTING…]
start_redis_node() {
    local nth=$1 dir file
    shift
    choose_port "redis-$nth" $((TEST_REDIS_PORT + nth))
    dir=$(data_root)/redis-$nth
    file=$dir/redis.conf
    mkdir -p "$dir"
    { tls_lines "$CHOSEN_PORT" && acl_lines && printf '%s\n' "dir $dir" 'save ""' 'repl-diskless-sync-delay 0' 'masteruser replica' \
        "masterauth $TEST_PASSWORD" "$*"; } >"$file"
    [[ $(id -u) != 0 ]] || chown -R "$(service_user)" "$dir"
    spawn_redis_node "$nth"
}

spawn_redis_node() {
    find_redis
    spawn_as_service_user "redis-$1" "$1" "$REDIS_SERVER" "$(data_root)/redis-$1/redis.conf"
    wait_until "redis-$1 answers" redis_answers_ping "redis-$1"
}

redis_answers_ping() { [[ $(redis_asks "$1" PING) == PONG ]]; }

start_sentinel() {
    local nth=$1 dir file
    choose_port "sentinel-$nth" $((TEST_SENTINEL_PORT + nth))
    dir=$(data_root)/sentinel-$nth
    file=$dir/sentinel.conf
    mkdir -p "$dir"
    { tls_lines "$CHOSEN_PORT" && printf '%s\n' "dir $dir" "requirepass $TEST_PASSWORD" \
        "sentinel sentinel-pass $TEST_PASSWORD" "sentinel monitor main 127.0.0.1 $(port_of redis-1) 2" \
        'sentinel auth-user main sentinel' "sentinel auth-pass main $TEST_PASSWORD" \
        'sentinel down-after-milliseconds main 1000' 'sentinel failover-timeout main 5000'; } >"$file"
    [[ $(id -u) != 0 ]] || chown -R "$(service_user)" "$dir"
    spawn_as_service_user "sentinel-$nth" "$nth" "$REDIS_SERVER" "$file" --sentinel
}

# redis_asks NAME COMMAND… : runs a command at a Redis, as its administrator.
redis_asks() {
    local name=$1
    shift
    redis_client "$(port_of "$name")" --user admin "$@"
}

sentinel_asks() {
    local nth=$1
    shift
    redis_client "$(port_of "sentinel-$nth")" "$@"
}

redis_client() {
    local port=$1
    shift
    REDISCLI_AUTH=$TEST_PASSWORD timeout 5 redis-cli --no-auth-warning -p "$port" --tls --cacert "$(tls_dir)/ca.crt" \
        --cert "$(tls_dir)/client.crt" --key "$(tls_dir)/client.key" "$@"
}

replica_follows() { [[ $(redis_asks redis-2 INFO replication) == *master_link_status:up* ]]; }

sentinels_agree() {
    local nth
    for nth in 1 2 3; do
        [[ $(sentinel_asks "$nth" SENTINEL MASTER main) == *num-other-sentinels?2*quorum* ]] || return 1
        [[ $(sentinel_asks "$nth" SENTINEL CKQUORUM main) == OK* ]] || return 1
        [[ $(sentinel_asks "$nth" SENTINEL REPLICAS main) == *master-link-status?ok* ]] || return 1
    done
}

# kill_redis_master : kills the master and a Sentinel, as if they were on one machine. The machine comes back when the
# replica is the master.
kill_redis_master() {
    signal redis-1 KILL
    signal sentinel-1 KILL
    await_end redis-1 KILL
    await_end sentinel-1 KILL
    wait_until "the replica is promoted" replica_is_master
    spawn_redis_node 1
}

replica_is_master() { [[ $(redis_asks redis-2 ROLE) == master* ]]; }

# ---------------------------------------------------------------------------------------------------------------
# PostgreSQL, its standby and PgBouncer

# start_postgres_with_tls : starts the primary. The role `mail` logs in by its certificate over TLS, and by password
# otherwise.
start_postgres_with_tls() {
    local dir data
    dir=$(tls_dir)
    start_postgres "$TEST_POSTGRES_PORT" fsync=off ssl=on "ssl_cert_file=$dir/server.crt" "ssl_key_file=$dir/server.key" \
        "ssl_ca_file=$dir/ca.crt"
    private_psql postgres -q -c "CREATE ROLE mail LOGIN PASSWORD '$TEST_PASSWORD'"
    data=$(data_root)/postgres
    sed -i '1i hostssl postgres_case mail 127.0.0.1/32 cert' "$data/pg_hba.conf"
    private_psql postgres -qAt -c 'SELECT pg_reload_conf()' >/dev/null
}

create_database() { private_psql postgres -q -c "CREATE DATABASE $1 OWNER mail"; }

# start_standby : copies the primary and starts a synchronous standby.
start_standby() {
    local data
    data=$(data_root)/postgres-standby
    choose_port postgres-standby "$TEST_STANDBY_PORT"
    (export PGPASSWORD && PGPASSWORD=$(cat "$STATE/postgres.password") && as_service_user "$PG_BIN/pg_basebackup" \
        --pgdata "$data" --write-recovery-conf --checkpoint fast --no-sync \
        --dbname "host=127.0.0.1 port=$(port_of postgres) user=waypost application_name=standby") >"$STATE/log/basebackup.log" 2>&1 ||
        { show_log_tail basebackup && die "the standby could not be made"; }
    spawn_as_service_user postgres-standby "$CHOSEN_PORT" "$PG_BIN/postgres" -D "$data" -p "$CHOSEN_PORT" \
        -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=400 -c max_locks_per_transaction=256 \
        -c fsync=off -c ssl=on -c "ssl_cert_file=$(tls_dir)/server.crt" -c "ssl_key_file=$(tls_dir)/server.key" \
        -c "ssl_ca_file=$(tls_dir)/ca.crt"
    private_psql postgres -q -c "ALTER SYSTEM SET synchronous_standby_names = 'standby'"
    private_psql postgres -qAt -c 'SELECT pg_reload_conf()' >/dev/null
    wait_until "the standby is synchronous" standby_is_synchronous
}

standby_is_synchronous() {
    [[ $(private_psql postgres -Atc "SELECT sync_state FROM pg_stat_replication WHERE application_name = 'standby'") == sync ]]
}

# kill_postgres_primary : kills the primary with all its processes, and promotes the standby after a while. The new primary
# waits for no standby: the setting came after the copy was made.
kill_postgres_primary() {
    local pid
    local -a sessions
    find_postgres "$(cat "$STATE/postgres.major")"
    pid=$(pid_of postgres)
    # The file ends without a newline; a process may end before its turn.
    read -ra sessions <"/proc/$pid/task/$pid/children" || true
    kill -s KILL "$pid" "${sessions[@]}" || true
    await_end postgres KILL
    sleep "$PROMOTE_AFTER_SECONDS"
    port_of postgres-standby >"$STATE/ports/postgres"
    private_psql postgres -qAt -c 'SELECT pg_promote()' >/dev/null
}

# start_pgbouncer : with the settings of Debian's package, except for what follows here.
start_pgbouncer() {
    local dir
    have pgbouncer || [[ -x /usr/sbin/pgbouncer ]] || install_packages PgBouncer pgbouncer pgbouncer pgbouncer
    choose_port pgbouncer "$TEST_PGBOUNCER_PORT"
    dir=$(data_root)/pgbouncer
    mkdir -p "$dir"
    printf '"mail" "%s"\n' "$TEST_PASSWORD" >"$dir/users.txt"
    cat >"$dir/pgbouncer.ini" <<INI
[databases]
session = host=127.0.0.1 port=$(port_of postgres) dbname=pgbouncer_case pool_mode=session
transaction = host=127.0.0.1 port=$(port_of postgres) dbname=pgbouncer_case pool_mode=transaction
statement = host=127.0.0.1 port=$(port_of postgres) dbname=pgbouncer_case pool_mode=statement
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $CHOSEN_PORT
unix_socket_dir =
auth_type = plain
auth_file = $dir/users.txt
default_pool_size = 300
max_client_conn = 500
INI
    [[ $(id -u) != 0 ]] || chown -R "$(service_user)" "$dir"
    spawn_pgbouncer
}

spawn_pgbouncer() {
    local program
    program=$(command -v pgbouncer || printf '/usr/sbin/pgbouncer')
    spawn_as_service_user pgbouncer 1 "$program" "$(data_root)/pgbouncer/pgbouncer.ini"
    wait_until "PgBouncer answers" port_taken "$(port_of pgbouncer)"
}

restart_pgbouncer() {
    signal pgbouncer KILL
    await_end pgbouncer KILL
    sleep 1
    spawn_pgbouncer
}

# ---------------------------------------------------------------------------------------------------------------

# wait_until WHAT COMMAND… : waits until the command succeeds.
wait_until() {
    local what=$1 deadline
    shift
    deadline=$(($(now_ms) + SERVER_READY_SECONDS_MAX * 1000))
    until "$@" >/dev/null 2>&1; do
        (($(now_ms) < deadline)) || die "not in $SERVER_READY_SECONDS_MAX s: $what"
        sleep 0.1
    done
}

# Sourced by test-servers.sh, which starts the servers.
[[ ${BASH_SOURCE[0]} == "$0" ]] || return 0

case ${1:-} in
kill-redis-master) kill_redis_master ;;
kill-postgres-primary) kill_postgres_primary ;;
restart-pgbouncer) restart_pgbouncer ;;
*) die "kill-redis-master, kill-postgres-primary or restart-pgbouncer" ;;
esac
