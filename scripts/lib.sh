# shellcheck shell=bash
# What the scripts behind the Makefile share: saying what happens, starting and stopping background processes, free
# ports, building. The private PostgreSQL and Redis are in servers.sh.
#
# Everything is kept below one state directory, $STATE (`.dev` for `make up`, `.dev/test/<pid>` for one test run):
#
#   run/NAME.pid   a process we started: pid, start time, fingerprint. Nothing else is ever signalled.
#   log/NAME.log   what it printed; log/NAME.log.1 is the start before
#   ports/NAME     the port it was given, so that the next start gets the same
#   data-dir       where the servers' data lies (see data_root)
#
# This file is sourced. It needs bash 4.4 or newer (in older ones an empty array is unbound to `set -u`); the scripts set
# `set -euo pipefail` themselves.

if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
    printf 'error: bash 4.4 or newer is needed, and this is %s (macOS: brew install bash)\n' "$BASH_VERSION" >&2
    exit 1
fi

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
STATE="${STATE:-$ROOT/.dev}"

readonly PORTS_TRIED_MAX=200
readonly STOP_SECONDS_MAX=45 # more than a worker waits for its calls in flight (WAYPOST_WORKER_SHUTDOWN)

# Ports handed out by this run whose owner may not listen yet.
RESERVED_PORTS=()
# Names of what this run started, in order; see stop_what_this_run_started.
STARTED=()

# ---------------------------------------------------------------------------------------------------------------
# Saying what happens. All of it goes to stderr, so that a script's stdout is only what its caller asked for.

say() { printf '%s\n' "$*" >&2; }
warn() { printf 'warning: %s\n' "$*" >&2; }
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

now_ms() {
    local stamp
    if [[ -n ${EPOCHREALTIME:-} ]]; then
        stamp=${EPOCHREALTIME/[.,]/}
        printf '%s' "$((stamp / 1000))"
    else
        printf '%s' "$(($(date +%s) * 1000))"
    fi
}

# elapsed SINCE_MS → "0.8 s" or "3 min 12 s"
elapsed() {
    local ms=$(($(now_ms) - $1))
    if ((ms < 60000)); then
        printf '%d.%d s' "$((ms / 1000))" "$((ms % 1000 / 100))"
    else
        printf '%d min %d s' "$((ms / 60000))" "$((ms % 60000 / 1000))"
    fi
}

# step MESSAGE COMMAND… : says what begins, runs it, says how long it took.
step() {
    local message=$1 since
    shift
    since=$(now_ms)
    say "==> $message"
    # Bare, so that a failure ends the script here: as part of a condition (`"$@" || …`) bash would switch `set -e`
    # off for everything the command calls.
    "$@"
    say "    done in $(elapsed "$since")"
}

have() { command -v "$1" >/dev/null 2>&1; }

require_python() {
    have python3 ||
        die "python3 is not installed (Debian, Ubuntu: apt-get install python3; Fedora, RHEL: dnf install python3; macOS: brew install python3)"
}

sha256() {
    if have sha256sum; then sha256sum | cut -d' ' -f1; else shasum -a 256 | cut -d' ' -f1; fi
}

# random_hex BYTES
random_hex() { od -An -vtx1 -N "$1" /dev/urandom | tr -d ' \n'; }

# write_secret FILE : keeps stdin in FILE, readable by its owner only, and whole or not at all.
write_secret() {
    local file=$1
    (
        umask 077
        cat >"$file.new"
    )
    mv "$file.new" "$file"
}

# ---------------------------------------------------------------------------------------------------------------
# The state directory

state_open() {
    # The server user (see service_user) must be able to pass through; what is secret inside is 0600.
    (
        umask 022
        mkdir -p "$STATE"/{run,log,ports}
    )
}

# only_one NAME : refuses to run beside another run of the same kind in this checkout. The lock goes with the process.
only_one() {
    have flock || return 0
    exec 9>"$STATE/run/$1.lock"
    flock --nonblock 9 || die "another '$1' is running in this checkout"
}

# lock_servers, unlock_servers : only one script at a time starts the servers of a state directory; others wait.
lock_servers() {
    have flock || return 0
    exec 8>"$STATE/run/servers.lock"
    flock --timeout 120 8 || die "another script has been starting the servers for two minutes"
}
unlock_servers() { exec 8>&-; }

# ---------------------------------------------------------------------------------------------------------------
# Background processes

# start_time PID : a value that no later process with the same pid can have; fails when there is no such process.
start_time() {
    local pid=$1 stat
    if [[ -d /proc/self ]]; then
        stat=$(cat "/proc/$pid/stat" 2>/dev/null) || return 1
        stat=${stat##*) } # the name before it may contain anything
        # Fields from here: 1 is the state, 20 the start in ticks since boot. A zombie has ended.
        # shellcheck disable=SC2086
        set -- $stat
        [[ $1 != Z && $1 != X ]] || return 1
        printf '%s-%s' "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)" "${20}"
    else
        stat=$(ps -o lstart= -p "$pid" 2>/dev/null) || return 1
        printf '%s' "${stat// /-}"
    fi
}

# pid_of NAME : the pid of the process we started under this name, if it still runs.
pid_of() {
    local pid started
    [[ -r $STATE/run/$1.pid ]] || return 1
    { read -r pid && read -r started; } <"$STATE/run/$1.pid" || return 1
    [[ -n $pid && $(start_time "$pid") == "$started" ]] || return 1
    printf '%s' "$pid"
}

is_running() { pid_of "$1" >/dev/null; }

# runs_as NAME FINGERPRINT : it runs, and was started the way it would be started now.
runs_as() {
    is_running "$1" && [[ $(sed -n 3p "$STATE/run/$1.pid") == "$2" ]]
}

# spawn NAME FINGERPRINT COMMAND… : starts a process that outlives this script, in a session of its own, so that
# Ctrl-C reaches it only through the script's own cleaning up.
spawn() {
    local name=$1 fingerprint=$2 log="$STATE/log/$1.log" pid
    shift 2
    [[ ! -s $log ]] || mv -f "$log" "$log.1"
    # A signal must not fall between the start and the note of its pid: on_signal waits for the end of SPAWNING.
    SPAWNING=true
    local -a session=(setsid)
    have setsid || session=(python3 -c 'import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])')
    (
        close_inherited_files
        cd / # never keep a directory busy; every path handed over is absolute
        export NO_COLOR=1 # the log is a file
        exec "${session[@]}" "$@"
    ) </dev/null >"$log" 2>&1 &
    pid=$!
    printf '%s\n%s\n%s\n' "$pid" "$(start_time "$pid" || echo ended)" "$fingerprint" >"$STATE/run/$name.pid"
    STARTED+=("$name")
    SPAWNING=false
    [[ -z ${SIGNALLED:-} ]] || exit "$SIGNALLED"
}

# stop_on_failure : from here on, whatever ends this script other than success stops what it started.
stop_on_failure() {
    trap 'on_signal 130' INT
    trap 'on_signal 143' TERM HUP
    trap 'on_exit $?' EXIT
}

on_signal() {
    # What `interruptible` runs is a process group of its own, which Ctrl-C does not reach.
    [[ -z ${INTERRUPTIBLE:-} ]] || kill -s TERM -- "-$INTERRUPTIBLE" 2>/dev/null || true
    if [[ ${SPAWNING:-false} == true ]]; then SIGNALLED=$1; else exit "$1"; fi
}

# interruptible COMMAND… : for what runs long. bash handles a signal only when the command before it has ended, unless
# that is a `wait`; and a hanging test must not keep Ctrl-C from stopping it, cargo and all.
interruptible() {
    local status=0
    set -m # a process group of its own
    "$@" &
    set +m
    INTERRUPTIBLE=$!
    wait "$INTERRUPTIBLE" || status=$?
    INTERRUPTIBLE=
    return "$status"
}

on_exit() {
    trap '' INT TERM HUP # a second Ctrl-C must not leave half of it running
    [[ $1 == 0 ]] || stop_what_this_run_started
}

stop_what_this_run_started() {
    local -a names=()
    local name
    for name in ${STARTED[@]+"${STARTED[@]}"}; do
        ! is_running "$name" || names=("$name" "${names[@]+"${names[@]}"}")
    done
    ((${#names[@]} > 0)) || return 0
    say "Stopping what was started: ${names[*]}"
    stop_all "${names[@]}"
}

# A server that kept the pipe of whoever ran `make` would keep that caller waiting for its end.
close_inherited_files() {
    local path fd
    for path in /proc/self/fd/* /dev/fd/*; do
        fd=${path##*/}
        if [[ $fd =~ ^[0-9]+$ ]] && ((fd > 2)); then exec {fd}>&-; fi
    done
}

# stop_all NAME… : ends those that run and waits for them. The servers go last, when nobody uses them any more.
stop_all() {
    local name servers=()
    for name in "$@"; do
        case $name in
        postgres | redis) servers+=("$name") ;;
        *) signal "$name" TERM ;;
        esac
    done
    for name in "$@"; do
        [[ $name == postgres || $name == redis ]] || await_end "$name" KILL
    done
    for name in ${servers[@]+"${servers[@]}"}; do
        # To Postgres INT means: disconnect everyone and shut down (TERM would wait for them); QUIT: at once.
        if [[ $name == postgres ]]; then signal postgres INT; else signal "$name" TERM; fi
    done
    for name in ${servers[@]+"${servers[@]}"}; do
        if [[ $name == postgres ]]; then await_end postgres QUIT; else await_end "$name" KILL; fi
    done
}

# signal NAME SIGNAL : to the process we started under this name, if it still runs.
signal() {
    local pid
    pid=$(pid_of "$1") || return 0
    kill -s "$2" "$pid" 2>/dev/null || true
}

# await_end NAME LAST_SIGNAL : until it has ended; sends LAST_SIGNAL if that takes too long.
await_end() {
    local name=$1 last_signal=$2 deadline
    deadline=$(($(now_ms) + STOP_SECONDS_MAX * 1000))
    while is_running "$name"; do
        if (($(now_ms) > deadline)); then
            warn "$name did not stop within $STOP_SECONDS_MAX s; sending $last_signal"
            signal "$name" "$last_signal"
            deadline=$(($(now_ms) + STOP_SECONDS_MAX * 1000))
        fi
        sleep 0.05
    done
    rm -f "$STATE/run/$name.pid"
}

show_log_tail() {
    local log="$STATE/log/$1.log"
    [[ -s $log ]] || return 0
    say "--- the end of $log"
    tail -n 25 "$log" >&2
    say "---"
}

# ---------------------------------------------------------------------------------------------------------------
# Ports

# port_taken PORT : something answers there (a listener on all addresses answers on loopback too).
port_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# choose_port NAME DEFAULT : sets CHOSEN_PORT: the one remembered, else the default, else the next free one above;
# remembers it. The result is a variable, not output: a subshell would lose what has been reserved.
choose_port() {
    local name=$1 default=$2 port
    for port in $(cat "$STATE/ports/$name" 2>/dev/null) $(seq "$default" $((default + PORTS_TRIED_MAX))); do
        [[ " ${RESERVED_PORTS[*]-} " != *" $port "* ]] || continue
        ! port_taken "$port" || continue
        RESERVED_PORTS+=("$port")
        printf '%s\n' "$port" >"$STATE/ports/$name"
        # shellcheck disable=SC2034 # for the caller
        CHOSEN_PORT=$port
        return 0
    done
    die "no free port between $default and $((default + PORTS_TRIED_MAX)) for $name"
}

# url_host_port URL DEFAULT_PORT → "host port" of scheme://[user[:password]@]host[:port][/…]
url_host_port() {
    local rest=${1#*://} port=$2 host
    rest=${rest%%[/?]*}
    rest=${rest##*@}
    host=${rest%:*}
    [[ $rest != *:* ]] || port=${rest##*:}
    printf '%s %s\n' "$host" "$port"
}

# require_reachable NAME URL DEFAULT_PORT : for servers that are not ours; says so instead of failing later.
require_reachable() {
    local name=$1 host port
    read -r host port < <(url_host_port "$2" "$3")
    (exec 3<>"/dev/tcp/${host:-127.0.0.1}/$port") 2>/dev/null ||
        die "$name is set, but nothing answers at ${host:-127.0.0.1}:$port; start that server or unset $name"
}

# ---------------------------------------------------------------------------------------------------------------
# Building

# require_build_tools : for a script to say at once what is missing, before it starts anything.
require_build_tools() {
    have cargo || die "cargo is not installed; Waypost needs Rust 1.95 or newer (rustup.rs)"
    [[ -n ${CC:-} ]] || have cc ||
        die "no C compiler (cc) is installed (Debian, Ubuntu: apt-get install build-essential; Fedora, RHEL: dnf install gcc; macOS: xcode-select --install)"
}

# build_cargo ARGUMENT… : cargo with the committed query data (.sqlx), never with whatever database DATABASE_URL
# names: sqlx would check the queries against that one, which may be empty or older than the code. And into target_dir,
# whatever directory cargo's own configuration names (build.target-dir).
build_cargo() {
    require_build_tools
    (cd "$ROOT" && env -u DATABASE_URL SQLX_OFFLINE=true CARGO_TARGET_DIR="$(target_dir)" cargo "$@")
}

# target_dir : where build_cargo puts what it builds.
target_dir() {
    local dir=${CARGO_TARGET_DIR:-target}
    case $dir in
    /*) printf '%s' "$dir" ;;
    *) printf '%s/%s' "$ROOT" "$dir" ;;
    esac
}
