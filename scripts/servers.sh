# shellcheck shell=bash
# Private PostgreSQL and Redis servers for development, tests and generating: found or installed, started, stopped.
# Sourced; brings lib.sh along.

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly POSTGRES_MAJOR_MIN=15 # UNIQUE NULLS NOT DISTINCT
readonly REDIS_VERSION_MIN=6.2 # XAUTOCLAIM
# How a client proves that it knows the password of a private server; `scratch_open` chooses otherwise.
POSTGRES_AUTHENTICATION=scram-sha-256
readonly SERVER_START_ATTEMPTS_MAX=5
readonly SERVER_READY_SECONDS_MAX=60

# ---------------------------------------------------------------------------------------------------------------
# Who runs the servers, and where their data lies

# PostgreSQL refuses to run as root, and Redis need not.
service_user() {
    if [[ $(id -u) != 0 ]]; then
        id -un
    elif id postgres >/dev/null 2>&1; then
        echo postgres
    else
        echo nobody
    fi
}

# as_service_user COMMAND… : in a directory which that user may enter. Executes in place where it can, so that the
# pid of a background process is the server's own.
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

# spawn_as_service_user NAME FINGERPRINT COMMAND… : as_service_user is a function, which setsid cannot execute.
spawn_as_service_user() {
    local name=$1 fingerprint=$2
    shift 2
    # shellcheck disable=SC2016 # that bash expands them, not this one
    spawn "$name" "$fingerprint" bash -c '. "$0"; as_service_user "$@"' "$ROOT/scripts/servers.sh" "$@"
}

# data_root : the directory of the servers' data. Below $STATE if the servers' user can get there; if not (root, with
# the checkout below its private home), in a directory of its own below /var/tmp, noted in $STATE/data-dir.
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
        # mktemp and not a name that others could guess and create first.
        dir=$(mktemp -d "/var/tmp/waypost-$(id -u)-XXXXXXXX")
    fi
    chmod 700 "$dir"
    [[ $(id -u) != 0 ]] || chown "$user" "$dir"
    printf '%s\n' "$dir" >"$STATE/data-dir"
    printf '%s' "$dir"
}

# remove_data : the servers must be stopped.
remove_data() {
    local dir
    [[ -s $STATE/data-dir ]] || return 0
    dir=$(cat "$STATE/data-dir")
    case $dir in
    "$STATE"/data | /var/tmp/waypost-*) rm -rf -- "$dir" ;;
    *) warn "left $dir alone: not a directory of ours" ;;
    esac
    rm -f "$STATE/data-dir"
}

# ---------------------------------------------------------------------------------------------------------------
# Installing what is missing

# install_packages WHAT APT DNF BREW : with the system's package manager; says so, or says what to install by hand. DNF
# may name several packages, with a space between them.
install_packages() {
    local what=$1 apt=$2 brew=$4
    local -a root=() dnf
    read -ra dnf <<<"$3"
    if [[ $(id -u) != 0 ]]; then
        if have sudo && sudo -n true 2>/dev/null; then root=(sudo -n); else root=(false); fi
    fi
    if have brew && [[ $(id -u) != 0 ]]; then
        step "Installing $what: brew install $brew" brew install "$brew"
    elif have apt-get && [[ ${root[*]-} != false ]]; then
        step "Installing $what: apt-get install $apt" apt_install_without_service "$apt" "${root[@]}"
    elif have dnf && [[ ${root[*]-} != false ]]; then
        step "Installing $what: dnf install ${dnf[*]}" "${root[@]}" dnf install -y -q "${dnf[@]}" >&2
    else
        die "$what is not installed, and this user cannot install it.
  Debian, Ubuntu:  apt-get install $apt
  Fedora, RHEL:    dnf install ${dnf[*]}
  macOS:           brew install $brew
  Its system service is not needed. Or set DATABASE_URL and REDIS_URL to servers that run already."
    fi
}

# apt_install_without_service PACKAGE [SUDO…] : Debian starts the service of a package it installs. We want the
# program only: policy-rc.d answering 101 is Debian's own way to say "do not start", and a service enabled by the
# installation would come back at the next boot.
apt_install_without_service() {
    local package=$1 policy=/usr/sbin/policy-rc.d made_policy=false status=0 log=$STATE/log/install.log
    shift
    "$@" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >>"$log" 2>&1 ||
        warn "apt-get update failed; trying with what is known"
    if [[ ! -e $policy ]]; then
        printf '#!/bin/sh\nexit 101\n' | "$@" tee "$policy" >/dev/null
        "$@" chmod 755 "$policy"
        made_policy=true
    fi
    "$@" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >>"$log" 2>&1 || status=$?
    [[ $made_policy == false ]] || "$@" rm -f "$policy"
    if [[ $status != 0 ]]; then
        show_log_tail install
        die "apt-get could not install $package"
    fi
    if [[ -d /run/systemd/system ]]; then
        "$@" systemctl disable --now --quiet "$package" >>"$log" 2>&1 || true
        say "    its system service was left switched off (systemctl enable --now $package turns it on)"
    fi
}

# ---------------------------------------------------------------------------------------------------------------
# PostgreSQL

# postgres_bin_dirs : every installed version's directory, newest first.
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

# find_postgres [MAJOR] : sets PG_BIN; with MAJOR only that version will do (data of another cannot be read).
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
    # Elsewhere the package of the server brings contrib (pg_trgm, btree_gin) along.
    install_packages PostgreSQL postgresql 'postgresql-server postgresql-contrib' postgresql@17
    find_postgres || die "PostgreSQL $POSTGRES_MAJOR_MIN or newer is needed, and the package manager has none; set DATABASE_URL to one that runs"
}

# private_postgres_url DATABASE : of the private server as remembered; fails when there never was one.
private_postgres_url() {
    [[ -s $STATE/postgres.password && -s $STATE/ports/postgres ]] || return 1
    printf 'postgres://waypost:%s@127.0.0.1:%s/%s' "$(cat "$STATE/postgres.password")" "$(cat "$STATE/ports/postgres")" "$1"
}

# start_postgres DEFAULT_PORT [SETTING…] : the private server, running and with a database `waypost`, in $PG_BIN.
# It listens on 127.0.0.1 only, without a Unix socket, and asks for a random password: other users of the machine
# must not become superuser of it.
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
        # Somebody took the port between our look and our start: try the next. All else is final.
        grep -q 'Address already in use' "$STATE/log/postgres.log" || break
        rm -f "$STATE/ports/postgres"
    done
    show_log_tail postgres
    die "PostgreSQL did not start"
}

create_postgres_cluster() {
    local data=$1 pwfile locale=C status=0
    # The bytewise order of C and the case mapping of Unicode, where the system has that locale.
    if locale -a 2>/dev/null | grep -qiE '^C\.utf-?8$'; then locale=C.UTF-8; fi
    rm -rf -- "$data"
    random_hex 24 | write_secret "$STATE/postgres.password"
    # initdb reads the password as the service user; files below data_root are that user's alone.
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
    forget_stale_pid_file "$data"
    spawn_as_service_user postgres "$port" "$PG_BIN/postgres" -D "$data" -p "$port" "${settings[@]}"
}

# After a crash, Postgres refuses to start while the pid in its own pid file exists, be it by now another program's or
# a zombie that nobody collects (containers without an init). Only then is the file removed, and only when no process
# works in the data directory any more: the file also guards the data while those of a killed server are still ending.
forget_stale_pid_file() {
    local data=$1 pid deadline
    pid=$(head -n 1 "$data/postmaster.pid" 2>/dev/null) || return 0
    [[ -d /proc/self && -d /proc/$pid ]] || return 0
    if start_time "$pid" >/dev/null && [[ $(cat "/proc/$pid/comm") == postgres ]]; then return 0; fi
    deadline=$(($(now_ms) + SERVER_READY_SECONDS_MAX * 1000))
    while works_in "$data" && (($(now_ms) < deadline)); do sleep 0.05; done
    works_in "$data" || rm -f "$data/postmaster.pid"
}

# works_in DIRECTORY : some process has it as its working directory.
works_in() {
    local cwd
    for cwd in /proc/[0-9]*/cwd; do
        [[ $(readlink "$cwd" 2>/dev/null) != "$1" ]] || return 0
    done
    return 1
}

postgres_answers() { private_psql postgres -Atc 'SELECT 1' >/dev/null 2>&1; }

# private_psql DATABASE ARGUMENT… ; the password goes by environment: arguments are visible to everyone.
private_psql() {
    local database=$1
    shift
    PGPASSWORD=$(cat "$STATE/postgres.password") PGCONNECT_TIMEOUT=5 PGOPTIONS='--client-min-messages=warning' \
        "$PG_BIN/psql" -X -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$(cat "$STATE/ports/postgres")" -U waypost -d "$database" "$@"
}

# apply_migrations DATABASE : the SQL files in order, each in a transaction, into a fresh database. For compiling
# against (`query!`) only: what serves is migrated by `waypost-api migrate`, which keeps account of what it did.
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
    find_redis || die "Redis $REDIS_VERSION_MIN or newer is needed, and the package manager has none; set REDIS_URL to one that runs"
}

private_redis_url() {
    [[ -s $STATE/ports/redis ]] || return 1
    printf 'redis://127.0.0.1:%s/0' "$(cat "$STATE/ports/redis")"
}

# start_redis DEFAULT_PORT [ARGUMENT…] : the private server. No password: it listens on loopback only and holds
# nothing but hints (ids, counters), and Redis itself keeps the commands that reach beyond its data switched off.
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

# Without redis-cli, which other distributions package apart.
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

# wait_for_server NAME CHECK : until CHECK succeeds; fails when the process ended or took too long.
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

# Which servers development uses: those of the environment, or private ones. A URL that is the private server's own
# (somebody sourced .dev/env) means the private server, which may have to be started first; unless another server has
# taken its port, and then it means that one.
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
        say "==> Using the PostgreSQL of DATABASE_URL"
    fi
    if means_private_server redis "${REDIS_URL:-}" "$(private_redis_url || true)"; then
        is_running redis || step "Starting a private Redis" start_redis 6379 --appendonly yes
        REDIS_URL=$(private_redis_url)
    else
        require_reachable REDIS_URL "$REDIS_URL" 6379
        say "==> Using the Redis of REDIS_URL"
    fi
    unlock_servers
}

# ---------------------------------------------------------------------------------------------------------------
# Servers of one run

# scratch_open KIND : a state directory for this run alone (.dev/KIND/<pid>), removed at its end with all it started,
# whatever the end is. What a run left behind that was killed outright is cleared by the next one.
scratch_open() {
    local base=$ROOT/.dev/$1
    mkdir -p "$base"
    clear_interrupted "$base"
    STATE=$base/$$
    # The password itself, which never leaves the loopback interface: a SCRAM exchange takes an unoptimised client a
    # good part of a second, and tests open thousands of connections.
    POSTGRES_AUTHENTICATION=password
    state_open
    printf '%s %s\n' "$$" "$(start_time $$)" >"$STATE/owner"
    trap 'on_signal 130' INT
    trap 'on_signal 143' TERM HUP
    trap 'scratch_close' EXIT
}

# clear_interrupted BASE : stops and removes what runs below BASE (.dev/KIND) left behind whose script has ended.
clear_interrupted() {
    local STATE dir pid started # the functions called here see this STATE
    for dir in "$1"/*/; do
        dir=${dir%/}
        [[ -f $dir/owner ]] || continue
        read -r pid started <"$dir/owner" || continue
        [[ $(start_time "$pid" || true) != "$started" ]] || continue
        say "==> Clearing what an interrupted run left in $dir"
        STATE=$dir
        stop_all simulator recorder api worker scheduler postgres redis
        remove_data
        rm -rf -- "$dir"
    done
}

scratch_close() {
    trap '' INT TERM HUP
    stop_all simulator recorder api worker scheduler postgres redis
    remove_data
    rm -rf -- "$STATE"
}
