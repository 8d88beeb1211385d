# shellcheck shell=bash
# Private PostgreSQL and Redis servers for development, tests and `make generate`: finds or installs the programs, starts
# and stops the servers. This file is sourced and sources lib.sh.

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly POSTGRES_MAJOR_MIN=15 # UNIQUE NULLS NOT DISTINCT
readonly REDIS_VERSION_MIN=6.2 # XAUTOCLAIM
# The authentication method of the private PostgreSQL; `scratch_open` sets another one.
POSTGRES_AUTHENTICATION=scram-sha-256
readonly SERVER_START_ATTEMPTS_MAX=5
readonly SERVER_READY_SECONDS_MAX=60

# ---------------------------------------------------------------------------------------------------------------
# The user and the data directory of the servers

# service_user : prints the user of the servers. PostgreSQL refuses to run as root.
service_user() {
    if [[ $(id -u) != 0 ]]; then
        id -un
    elif id postgres >/dev/null 2>&1; then
        echo postgres
    else
        echo nobody
    fi
}

# as_service_user COMMAND… : runs a command as that user, in a directory that the user may enter. Uses exec, so that the
# pid of a background process is that of the server.
as_service_user() {
    local user
    user=$(service_user)
    cd /
    if [[ $(id -u) != 0 ]]; then
        exec "$@"
    elif have setpriv; then
        exec setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups env HOME=/ USER="$user" "$@"
    elif have runuser; then
        exec runuser -u "$user" -- "$@"
    else
        exec sudo -u "$user" -- "$@"
    fi
}

# spawn_as_service_user NAME FINGERPRINT COMMAND… : spawn with as_service_user. setsid cannot execute a function, hence
# the inner bash.
spawn_as_service_user() {
    local name=$1 fingerprint=$2
    shift 2
    # shellcheck disable=SC2016 # the inner bash expands the variables
    spawn "$name" "$fingerprint" bash -c '. "$0"; as_service_user "$@"' "$ROOT/scripts/servers.sh" "$@"
}

# data_root : prints the directory of the servers' data and stores it in $STATE/data-dir. It is below $STATE if the
# servers' user can enter that; if not (root, with the checkout in its private home), it is a new one in /var/tmp.
data_root() {
    local dir user
    user=$(service_user)
    if [[ -s $STATE/data-dir ]]; then
        dir=$(cat "$STATE/data-dir")
        if [[ -d $dir && -O $dir ]] || [[ -d $dir && $(stat -c %U "$dir" 2>/dev/null) == "$user" ]]; then
            printf '%s' "$dir"
            return 0
        fi
    fi
    dir=$STATE/data
    if (as_service_user test -x "$STATE") 2>/dev/null; then
        mkdir -p "$dir"
    else
        # mktemp: another user could guess a fixed name and create it first.
        dir=$(mktemp -d "/var/tmp/waypost-$(id -u)-XXXXXXXX")
    fi
    chmod 700 "$dir"
    [[ $(id -u) != 0 ]] || chown "$user" "$dir"
    printf '%s\n' "$dir" >"$STATE/data-dir"
    printf '%s' "$dir"
}

# remove_data : removes the servers' data. The servers must be stopped.
remove_data() {
    local dir
    [[ -s $STATE/data-dir ]] || return 0
    dir=$(cat "$STATE/data-dir")
    case $dir in
    "$STATE"/data | /var/tmp/waypost-*) rm -rf -- "$dir" ;;
    *) warn "did not remove $dir: these scripts did not create it" ;;
    esac
    rm -f "$STATE/data-dir"
}

# ---------------------------------------------------------------------------------------------------------------
# Installing missing programs

# install_packages WHAT APT DNF BREW : installs packages with the system's package manager, or prints what to install by
# hand. APT, DNF and BREW may be several names, separated by spaces.
install_packages() {
    local what=$1 apt=$2
    local -a root=() dnf brew
    read -ra dnf <<<"$3"
    read -ra brew <<<"$4"
    if [[ $(id -u) != 0 ]]; then
        if have sudo && sudo -n true 2>/dev/null; then root=(sudo -n); else root=(false); fi
    fi
    if have brew && [[ $(id -u) != 0 ]]; then
        step "Installing $what: brew install ${brew[*]}" brew install "${brew[@]}"
    elif have apt-get && [[ ${root[*]-} != false ]]; then
        step "Installing $what: apt-get install $apt" apt_install_without_service "$apt" "${root[@]}"
    elif have dnf && [[ ${root[*]-} != false ]]; then
        step "Installing $what: dnf install ${dnf[*]}" "${root[@]}" dnf install -y -q "${dnf[@]}" >&2
    else
        die "$what is not installed, and this user cannot install it.
  Debian, Ubuntu:  apt-get install $apt
  Fedora, RHEL:    dnf install ${dnf[*]}
  macOS:           brew install ${brew[*]}
  Its system service is not needed. Or set DATABASE_URL and REDIS_URL to running servers."
    fi
}

# apt_install_without_service PACKAGES [SUDO…] : installs packages without starting their services, which Debian would do.
# A policy-rc.d that exits with 101 prevents the start; the services are also disabled, so that they do not start at the
# next boot.
apt_install_without_service() {
    local policy=/usr/sbin/policy-rc.d made_policy=false status=0 log=$STATE/log/install.log package
    local -a packages
    read -ra packages <<<"$1"
    shift
    mkdir -p "$STATE/log"
    "$@" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >>"$log" 2>&1 ||
        warn "apt-get update failed; continuing with the present package lists"
    if [[ ! -e $policy ]]; then
        printf '#!/bin/sh\nexit 101\n' | "$@" tee "$policy" >/dev/null
        "$@" chmod 755 "$policy"
        made_policy=true
    fi
    "$@" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >>"$log" 2>&1 || status=$?
    [[ $made_policy == false ]] || "$@" rm -f "$policy"
    if [[ $status != 0 ]]; then
        show_log_tail install
        die "apt-get could not install ${packages[*]}"
    fi
    if [[ -d /run/systemd/system ]]; then
        for package in "${packages[@]}"; do
            if "$@" systemctl disable --now --quiet "$package" >>"$log" 2>&1; then
                say "    its system service is disabled (systemctl enable --now $package enables it)"
            fi
        done
    fi
}

# ---------------------------------------------------------------------------------------------------------------
# PostgreSQL

# postgres_bin_dirs : prints the program directories of all installed versions, newest first.
postgres_bin_dirs() {
    local dir
    {
        for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin \
            /usr/local/opt/postgresql@*/bin "$(pg_config --bindir 2>/dev/null)" \
            "$(dirname "$(command -v postgres 2>/dev/null || echo /nonexistent/postgres)")"; do
            [[ -x $dir/postgres && -x $dir/initdb && -x $dir/psql ]] || continue
            printf '%s %s\n' "$(postgres_major "$dir")" "$dir"
        done
    } | sort -rnu | cut -d' ' -f2-
}

postgres_major() { "$1/postgres" --version | sed -E 's/^[^0-9]*([0-9]+).*/\1/'; }

# find_postgres [MAJOR] : sets PG_BIN. With MAJOR it finds that version only, because no other can read the data.
find_postgres() {
    local dir major
    PG_BIN=
    while read -r dir; do
        major=$(postgres_major "$dir")
        ((major >= POSTGRES_MAJOR_MIN)) || continue
        [[ -z ${1:-} || $major == "$1" ]] || continue
        PG_BIN=$dir
        return 0
    done < <(postgres_bin_dirs)
    return 1
}

ensure_postgres_installed() {
    find_postgres "${1:-}" && return 0
    [[ -z ${1:-} ]] || die "the data in $(data_root)/postgres needs PostgreSQL $1, which is not installed (make clean-dev removes the data)"
    # contrib (pg_trgm, btree_gin) is a separate package with dnf only.
    install_packages PostgreSQL postgresql 'postgresql-server postgresql-contrib' postgresql@17
    find_postgres || die "PostgreSQL $POSTGRES_MAJOR_MIN or newer is needed, and the package manager has none; set DATABASE_URL to a running server"
}

# private_postgres_url DATABASE : prints the URL of the private server; fails if there is none.
private_postgres_url() {
    [[ -s $STATE/postgres.password && -s $STATE/ports/postgres ]] || return 1
    printf 'postgres://waypost:%s@127.0.0.1:%s/%s' "$(cat "$STATE/postgres.password")" "$(cat "$STATE/ports/postgres")" "$1"
}

# start_postgres DEFAULT_PORT [SETTING…] : starts the private server unless it runs, creates the database `waypost`, and
# sets PG_BIN. The server listens on 127.0.0.1 only, without a Unix socket, and requires a random password: other users of
# the machine must not become its superuser.
start_postgres() {
    local default_port=$1 data attempt
    shift
    data=$(data_root)/postgres
    if is_running postgres; then
        find_postgres "$(cat "$STATE/postgres.major")" || true
        return 0
    fi
    ensure_postgres_installed "$(cat "$STATE/postgres.major" 2>/dev/null || true)"
    [[ -s $STATE/postgres.major && -d $data ]] || create_postgres_cluster "$data"
    for ((attempt = 1; attempt <= SERVER_START_ATTEMPTS_MAX; attempt++)); do
        choose_port postgres "$default_port"
        spawn_postgres "$data" "$CHOSEN_PORT" "$@"
        if wait_for_server postgres postgres_answers; then
            [[ $(private_psql postgres -Atc "SELECT 1 FROM pg_database WHERE datname = 'waypost'") == 1 ]] ||
                private_psql postgres -qc 'CREATE DATABASE waypost'
            return 0
        fi
        # If another process took the port meanwhile, try the next one. Any other error is final.
        grep -q 'Address already in use' "$STATE/log/postgres.log" || break
        rm -f "$STATE/ports/postgres"
    done
    show_log_tail postgres
    die "PostgreSQL did not start"
}

create_postgres_cluster() {
    local data=$1 pwfile locale=C status=0
    # C.UTF-8 sorts bytewise like C and has the case mapping of Unicode. Not every system has it.
    if locale -a 2>/dev/null | grep -qiE '^C\.utf-?8$'; then locale=C.UTF-8; fi
    rm -rf -- "$data"
    random_hex 24 | write_secret "$STATE/postgres.password"
    # initdb runs as the servers' user and reads the password from a file; data_root belongs to that user.
    pwfile=$(data_root)/password
    cp "$STATE/postgres.password" "$pwfile"
    chmod 600 "$pwfile"
    [[ $(id -u) != 0 ]] || chown "$(service_user)" "$pwfile"
    (as_service_user "$PG_BIN/initdb" -D "$data" -U waypost --encoding=UTF8 --locale="$locale" --no-sync \
        --auth-host="$POSTGRES_AUTHENTICATION" --auth-local=reject --pwfile="$pwfile") >"$STATE/log/initdb.log" 2>&1 || status=$?
    rm -f "$pwfile"
    if [[ $status != 0 ]]; then
        show_log_tail initdb
        die "initdb failed"
    fi
    postgres_major "$PG_BIN" >"$STATE/postgres.major"
}

spawn_postgres() {
    local data=$1 port=$2 setting
    shift 2
    local -a settings=()
    for setting in listen_addresses=127.0.0.1 unix_socket_directories= max_connections=400 shared_buffers=256MB \
        max_locks_per_transaction=256 log_min_duration_statement=1000 "$@"; do
        settings+=(-c "$setting")
    done
    remove_stale_pid_file "$data"
    spawn_as_service_user postgres "$port" "$PG_BIN/postgres" -D "$data" -p "$port" "${settings[@]}"
}

# remove_stale_pid_file DATA : after a crash, Postgres refuses to start while the pid in its pid file exists, even if it
# now belongs to another program or a zombie (containers without an init). This function removes the file in that case,
# once no process works in the data directory any more: until then the file protects the data from the processes of a
# killed server that are still ending.
remove_stale_pid_file() {
    local data=$1 pid deadline
    pid=$(head -n 1 "$data/postmaster.pid" 2>/dev/null) || return 0
    [[ -d /proc/self && -d /proc/$pid ]] || return 0
    if start_time "$pid" >/dev/null && [[ $(cat "/proc/$pid/comm") == postgres ]]; then return 0; fi
    deadline=$(($(now_ms) + SERVER_READY_SECONDS_MAX * 1000))
    while works_in "$data" && (($(now_ms) < deadline)); do sleep 0.05; done
    works_in "$data" || rm -f "$data/postmaster.pid"
}

# works_in DIRECTORY : the directory is the working directory of some process.
works_in() {
    local cwd
    for cwd in /proc/[0-9]*/cwd; do
        [[ $(readlink "$cwd" 2>/dev/null) != "$1" ]] || return 0
    done
    return 1
}

postgres_answers() { private_psql postgres -Atc 'SELECT 1' >/dev/null 2>&1; }

# private_psql DATABASE ARGUMENT… : runs psql on the private server. The password is in the environment, because all
# users can see arguments.
private_psql() {
    local database=$1
    shift
    PGPASSWORD=$(cat "$STATE/postgres.password") PGCONNECT_TIMEOUT=5 PGOPTIONS='--client-min-messages=warning' \
        "$PG_BIN/psql" -X -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$(cat "$STATE/ports/postgres")" -U waypost -d "$database" "$@"
}

# apply_migrations DATABASE : creates a new database and runs the migrations in order, each in a transaction. Only for
# checking queries (`query!`): it does not record the applied migrations as `waypost-api migrate` does.
apply_migrations() {
    local database=$1 file
    private_psql postgres -q -c "DROP DATABASE IF EXISTS $database WITH (FORCE)" -c "CREATE DATABASE $database"
    for file in "$ROOT"/migrations/*.sql; do
        [[ -e $file ]] || continue
        if [[ $(head -n 1 "$file") == '-- no-transaction'* ]]; then
            private_psql "$database" -q -f "$file" >/dev/null
        else
            private_psql "$database" -q -1 -f "$file" >/dev/null
        fi
    done
}

# ---------------------------------------------------------------------------------------------------------------
# Redis

# find_redis : sets REDIS_SERVER.
find_redis() {
    local program version
    REDIS_SERVER=
    for program in redis-server valkey-server /opt/homebrew/bin/redis-server /usr/local/bin/redis-server; do
        program=$(command -v "$program") || continue
        version=$("$program" --version | sed -nE 's/.* v=([0-9]+\.[0-9]+).*/\1/p')
        [[ $(printf '%s\n%s\n' "$REDIS_VERSION_MIN" "$version" | sort -V | head -n 1) == "$REDIS_VERSION_MIN" ]] || continue
        REDIS_SERVER=$program
        return 0
    done
    return 1
}

ensure_redis_installed() {
    find_redis && return 0
    install_packages Redis redis-server redis redis
    find_redis || die "Redis $REDIS_VERSION_MIN or newer is needed, and the package manager has none; set REDIS_URL to a running server"
}

private_redis_url() {
    [[ -s $STATE/ports/redis ]] || return 1
    printf 'redis://127.0.0.1:%s/0' "$(cat "$STATE/ports/redis")"
}

# start_redis DEFAULT_PORT [ARGUMENT…] : starts the private server unless it runs. It has no password: it listens on
# loopback only and contains only ids and counters, and Redis disables dangerous commands by default.
start_redis() {
    local default_port=$1 data attempt
    shift
    is_running redis && { find_redis || true; return 0; }
    ensure_redis_installed
    data=$(data_root)/redis
    mkdir -p "$data"
    [[ $(id -u) != 0 ]] || chown "$(service_user)" "$data"
    for ((attempt = 1; attempt <= SERVER_START_ATTEMPTS_MAX; attempt++)); do
        choose_port redis "$default_port"
        spawn_as_service_user redis "$CHOSEN_PORT" "$REDIS_SERVER" --bind 127.0.0.1 --port "$CHOSEN_PORT" --dir "$data" \
            --daemonize no --maxmemory-policy noeviction "$@"
        wait_for_server redis redis_answers && return 0
        grep -q 'Address already in use' "$STATE/log/redis.log" || break
        rm -f "$STATE/ports/redis"
    done
    show_log_tail redis
    die "Redis did not start"
}

# redis_answers : the server answers a PING. Does not use redis-cli, a separate package on some distributions.
redis_answers() {
    local port reply
    port=$(cat "$STATE/ports/redis")
    port_taken "$port" || return 1
    exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
    printf 'PING\r\n' >&3
    IFS= read -r -t 2 reply <&3 || reply=
    exec 3>&-
    [[ $reply == +PONG* ]]
}

# ---------------------------------------------------------------------------------------------------------------
# Both

# wait_for_server NAME CHECK : waits until CHECK succeeds; fails if the process ends or takes too long.
wait_for_server() {
    local name=$1 check=$2 deadline
    deadline=$(($(now_ms) + SERVER_READY_SECONDS_MAX * 1000))
    while (($(now_ms) < deadline)); do
        is_running "$name" || return 1
        ! "$check" || return 0
        sleep 0.05
    done
    return 1
}

# means_private_server NAME URL PRIVATE_URL : development uses the private server. That is so if the URL in the
# environment is empty or that of the private server (from .dev/env), which may have to be started first; unless another
# server uses its port.
means_private_server() {
    local name=$1 url=$2 private=$3
    [[ -n $url ]] || return 0
    [[ -n $private && ${url%/*} == "${private%/*}" ]] || return 1
    is_running "$name" || ! port_taken "$(cat "$STATE/ports/$name")"
}

# start_development_servers : sets DATABASE_URL and REDIS_URL.
start_development_servers() {
    lock_servers
    if means_private_server postgres "${DATABASE_URL:-}" "$(private_postgres_url waypost || true)"; then
        is_running postgres || step "Starting a private PostgreSQL" start_postgres 5432
        find_postgres "$(cat "$STATE/postgres.major")" || true
        DATABASE_URL=$(private_postgres_url waypost)
    else
        require_reachable DATABASE_URL "$DATABASE_URL" 5432
        say "==> Using the PostgreSQL in DATABASE_URL"
    fi
    if means_private_server redis "${REDIS_URL:-}" "$(private_redis_url || true)"; then
        is_running redis || step "Starting a private Redis" start_redis 6379 --appendonly yes
        REDIS_URL=$(private_redis_url)
    else
        require_reachable REDIS_URL "$REDIS_URL" 6379
        say "==> Using the Redis in REDIS_URL"
    fi
    unlock_servers
}

# ---------------------------------------------------------------------------------------------------------------
# Servers of one run

# On Debian venv is a package apart from python3, so ensurepip may be missing.
require_venv() {
    python3 -c 'import ensurepip, venv' 2>/dev/null || install_packages "Python's venv" python3-venv python3 python
}

# start_waypost GROUP BIN API_PORT SIMULATOR_PORT : starts a Waypost and a simulator from the directory BIN for this run, with
# its PostgreSQL and Redis, on these ports or other free ones. Sets WAYPOST_URL, SIMULATOR_URL and
# WAYPOST_SUBMISSION_LISTEN. Mail goes to the simulator, unless WAYPOST_PROVIDER_BASE_URL says otherwise.
start_waypost() {
    local group=$1 bin=$2
    DATABASE_URL=$(private_postgres_url waypost)
    REDIS_URL=$(private_redis_url)
    choose_port simulator "$4"
    SIMULATOR_URL=http://127.0.0.1:$CHOSEN_PORT
    choose_port api "$3"
    WAYPOST_URL=http://127.0.0.1:$CHOSEN_PORT
    choose_port submission 2587
    export WAYPOST_SUBMISSION_LISTEN=127.0.0.1:$CHOSEN_PORT
    export DATABASE_URL REDIS_URL WAYPOST_URL SIMULATOR_URL
    export WAYPOST_ENV=development WAYPOST_LISTEN=${WAYPOST_URL#http://} WAYPOST_PUBLIC_URL=$WAYPOST_URL WAYPOST_LOG=warn
    export WAYPOST_PROVIDER_BASE_URL=${WAYPOST_PROVIDER_BASE_URL:-$SIMULATOR_URL}
    # The domains of a test are in no DNS.
    export WAYPOST_DNS_SERVERS=${WAYPOST_DNS_SERVERS:-none}
    "$bin/waypost-api" migrate >&2
    spawn simulator "$group" "$bin/waypost-simulator" --listen "${SIMULATOR_URL#http://}"
    spawn api "$group" "$bin/waypost-api" serve
    spawn worker "$group" env WAYPOST_HEALTH_LISTEN=127.0.0.1:0 "$bin/waypost-worker"
    spawn scheduler "$group" env WAYPOST_HEALTH_LISTEN=127.0.0.1:0 "$bin/waypost-scheduler"
    [[ ! -x $bin/waypost-smtp ]] || spawn smtp "$group" env WAYPOST_HEALTH_LISTEN=127.0.0.1:0 "$bin/waypost-smtp"
    wait_for_server api api_answers || { show_log_tail api; die "the API did not start"; }
}

api_answers() { [[ $(python3 "$ROOT/scripts/request.py" GET "$WAYPOST_URL/readyz" 2>/dev/null | head -n 1) == 200 ]]; }

# make_api_key BIN NAME : prints a key with all permissions, of a new organization.
make_api_key() {
    local organization
    organization=$("$1/waypost-api" create-organization --name "$2")
    "$1/waypost-api" create-api-key --organization "$organization" --name "$2"
}

# make_owner BIN ORGANIZATION EMAIL NAME PASSWORD : makes a user who owns the organization and is an operator, and sets the
# password with the link of create-user, as a person would.
make_owner() {
    local link answer
    link=$("$1/waypost-api" create-user --organization "$2" --email "$3" --name "$4" --role OWNER --operator)
    answer=$(printf '{"token":"%s","password":"%s"}' "${link##*#}" "$5" |
        python3 "$ROOT/scripts/request.py" POST "$WAYPOST_URL/v1/invitations/accept" -) || die "no answer to the invitation"
    [[ ${answer%%$'\n'*} == 201 ]] || die "the invitation was answered: $answer"
}

# scratch_open KIND : creates a state directory for this run (.dev/KIND/<pid>). At the end of the script its processes are
# stopped and the directory is removed. If the script is killed, the next run does that.
scratch_open() {
    local base=$ROOT/.dev/$1
    mkdir -p "$base"
    clear_interrupted "$base"
    STATE=$base/$$
    # Plain password authentication; the connection is on loopback only. A SCRAM exchange takes a debug build a good part
    # of a second, and tests open thousands of connections.
    POSTGRES_AUTHENTICATION=password
    state_open
    printf '%s %s\n' "$$" "$(start_time $$)" >"$STATE/owner"
    trap 'on_signal 130' INT
    trap 'on_signal 143' TERM HUP
    trap 'scratch_close' EXIT
}

# clear_interrupted BASE : stops the processes and removes the directories of killed runs below BASE (.dev/KIND).
clear_interrupted() {
    local STATE dir pid started # the called functions use this STATE
    for dir in "$1"/*/; do
        dir=${dir%/}
        [[ -f $dir/owner ]] || continue
        read -r pid started <"$dir/owner" || continue
        [[ $(start_time "$pid" || true) != "$started" ]] || continue
        say "==> Cleaning up after an interrupted run in $dir"
        STATE=$dir
        stop_everything
        remove_data
        rm -rf -- "$dir"
    done
}

# stop_everything : stops the processes of the state directory.
stop_everything() {
    local file names=()
    for file in "$STATE"/run/*.pid; do
        [[ ! -e $file ]] || names+=("$(basename "$file" .pid)")
    done
    stop_all ${names[@]+"${names[@]}"}
}

scratch_close() {
    trap '' INT TERM HUP
    stop_everything
    remove_data
    rm -rf -- "$STATE"
}
