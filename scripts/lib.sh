# shellcheck shell=bash
# Functions for the scripts of the Makefile: messages, background processes, ports, building. The private PostgreSQL and
# Redis are in servers.sh.
#
# All files are in one state directory, $STATE (`.dev` for `make up`, `.dev/test/<pid>` for a test run):
#
#   run/NAME.pid   a process that the scripts started: pid, start time, fingerprint. Only these are ever signalled.
#   log/NAME.log   its output; log/NAME.log.1 is the output of the start before
#   ports/NAME     its port, so that the next start gets the same
#   data-dir       the directory of the servers' data (see data_root)
#
# This file is sourced. It needs bash 4.4 or newer, because with `set -u` older versions treat an empty array as unbound.
# The scripts set `set -euo pipefail` themselves.

if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
    printf 'error: bash 4.4 or newer is needed, and this is %s (macOS: brew install bash)\n' "$BASH_VERSION" >&2
    exit 1
fi

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
STATE="${STATE:-$ROOT/.dev}"

readonly PORTS_TRIED_MAX=200
readonly STOP_SECONDS_MAX=45 # longer than a worker waits for its calls in flight (WAYPOST_WORKER_SHUTDOWN)

# Ports that this run has chosen and that may not be in use yet.
RESERVED_PORTS=()
# Names of the processes that this run started, in order; see stop_what_this_run_started.
STARTED=()

# ---------------------------------------------------------------------------------------------------------------
# Messages. They go to stderr, so that stdout contains only the result of a script.

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

# step MESSAGE COMMAND… : prints the message, runs the command, prints how long it took.
step() {
    local message=$1 since
    shift
    since=$(now_ms)
    say "==> $message"
    # Not in a condition (`"$@" || …`): bash would disable `set -e` for everything that the command calls.
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

# The version that Vite needs.
require_node() {
    have npm || die "Node.js 20.19 or newer and npm are needed (Debian, Ubuntu: apt-get install nodejs npm)"
    node -e 'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)' ||
        die "Node.js 20.19 or newer is needed; this is $(node --version)"
}

# random_hex BYTES
random_hex() { od -An -vtx1 -N "$1" /dev/urandom | tr -d ' \n'; }

# write_secret FILE : writes stdin to FILE atomically, readable by its owner only.
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
    # The servers' user (see service_user) must be able to enter; secret files inside are 0600.
    (
        umask 022
        mkdir -p "$STATE"/{run,log,ports}
    )
}

# only_one NAME : fails if another run of the same kind is active in this checkout. The lock ends with the process.
only_one() {
    have flock || return 0
    exec 9>"$STATE/run/$1.lock"
    flock --nonblock 9 || die "another '$1' is running in this checkout"
}

# lock_servers, unlock_servers : only one script at a time starts the servers of a state directory; the others wait.
lock_servers() {
    have flock || return 0
    exec 8>"$STATE/run/servers.lock"
    flock --timeout 120 8 || die "another script has been starting the servers for two minutes"
}
unlock_servers() { exec 8>&-; }

# ---------------------------------------------------------------------------------------------------------------
# Background processes

# start_time PID : prints a value that distinguishes the process from later ones with the same pid; fails if there is no
# such process.
start_time() {
    local pid=$1 stat
    if [[ -d /proc/self ]]; then
        stat=$(cat "/proc/$pid/stat" 2>/dev/null) || return 1
        stat=${stat##*) } # the process name before it may contain any character
        # The fields from here: 1 is the state, 20 the start in ticks since boot. A zombie has ended.
        # shellcheck disable=SC2086
        set -- $stat
        [[ $1 != Z && $1 != X ]] || return 1
        printf '%s-%s' "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)" "${20}"
    else
        stat=$(ps -o lstart= -p "$pid" 2>/dev/null) || return 1
        printf '%s' "${stat// /-}"
    fi
}

# pid_of NAME : prints the pid of the process started under this name, if it still runs.
pid_of() {
    local pid started
    [[ -r $STATE/run/$1.pid ]] || return 1
    { read -r pid && read -r started; } <"$STATE/run/$1.pid" || return 1
    [[ -n $pid && $(start_time "$pid") == "$started" ]] || return 1
    printf '%s' "$pid"
}

is_running() { pid_of "$1" >/dev/null; }

# runs_as NAME FINGERPRINT : the process runs and was started with this fingerprint.
runs_as() {
    is_running "$1" && [[ $(sed -n 3p "$STATE/run/$1.pid") == "$2" ]]
}

# spawn NAME FINGERPRINT COMMAND… : starts a process that outlives this script. It has a session of its own, so that
# Ctrl-C does not reach it; the script stops it if necessary.
spawn() {
    local name=$1 fingerprint=$2 log="$STATE/log/$1.log" pid
    shift 2
    [[ ! -s $log ]] || mv -f "$log" "$log.1"
    # While SPAWNING is true, on_signal defers the exit, so that the pid of a started process is always recorded.
    SPAWNING=true
    local -a session=(setsid)
    have setsid || session=(python3 -c 'import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])')
    (
        close_inherited_files
        cd / # do not keep a directory in use; all paths are absolute
        export NO_COLOR=1 # the output goes to a file
        exec "${session[@]}" "$@"
    ) </dev/null >"$log" 2>&1 &
    pid=$!
    printf '%s\n%s\n%s\n' "$pid" "$(start_time "$pid" || echo ended)" "$fingerprint" >"$STATE/run/$name.pid"
    STARTED+=("$name")
    SPAWNING=false
    [[ -z ${SIGNALLED:-} ]] || exit "$SIGNALLED"
}

# stop_on_failure : from here on, if the script fails or is interrupted, it stops the processes that it started.
stop_on_failure() {
    trap 'on_signal 130' INT
    trap 'on_signal 143' TERM HUP
    trap 'on_exit $?' EXIT
}

on_signal() {
    # `interruptible` runs its command in a process group of its own, which Ctrl-C does not reach.
    [[ -z ${INTERRUPTIBLE:-} ]] || kill -s TERM -- "-$INTERRUPTIBLE" 2>/dev/null || true
    if [[ ${SPAWNING:-false} == true ]]; then SIGNALLED=$1; else exit "$1"; fi
}

# interruptible COMMAND… : runs a long command so that Ctrl-C stops it at once. bash handles a signal only after the
# current command has ended, except during `wait`.
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
    trap '' INT TERM HUP # a second Ctrl-C must not interrupt the cleanup
    [[ $1 == 0 ]] || stop_what_this_run_started
}

stop_what_this_run_started() {
    local -a names=()
    local name
    for name in ${STARTED[@]+"${STARTED[@]}"}; do
        ! is_running "$name" || names=("$name" "${names[@]+"${names[@]}"}")
    done
    ((${#names[@]} > 0)) || return 0
    say "Stopping the started processes: ${names[*]}"
    stop_all "${names[@]}"
}

# A server that inherited a pipe of the caller of `make` would keep the caller waiting for its end.
close_inherited_files() {
    local path fd
    for path in /proc/self/fd/* /dev/fd/*; do
        fd=${path##*/}
        if [[ $fd =~ ^[0-9]+$ ]] && ((fd > 2)); then exec {fd}>&-; fi
    done
}

# stop_all NAME… : stops the running processes and waits for them. Stops PostgreSQL and Redis (postgres*, redis*) last.
stop_all() {
    local name servers=()
    for name in "$@"; do
        case $name in
        postgres* | redis*) servers+=("$name") ;;
        *) signal "$name" TERM ;;
        esac
    done
    for name in "$@"; do
        [[ $name == postgres* || $name == redis* ]] || await_end "$name" KILL
    done
    for name in ${servers[@]+"${servers[@]}"}; do
        # For Postgres, INT means: disconnect all clients and shut down (TERM would wait for them); QUIT: exit at once.
        if [[ $name == postgres* ]]; then signal "$name" INT; else signal "$name" TERM; fi
    done
    for name in ${servers[@]+"${servers[@]}"}; do
        if [[ $name == postgres* ]]; then await_end "$name" QUIT; else await_end "$name" KILL; fi
    done
}

# stop_everything : stops all processes of the state directory.
stop_everything() {
    local file
    local -a names=()
    for file in "$STATE"/run/*.pid; do
        [[ ! -e $file ]] || names+=("$(basename "$file" .pid)")
    done
    stop_all ${names[@]+"${names[@]}"}
}

# signal NAME SIGNAL : sends a signal to the process started under this name, if it still runs.
signal() {
    local pid
    pid=$(pid_of "$1") || return 0
    kill -s "$2" "$pid" 2>/dev/null || true
}

# await_end NAME LAST_SIGNAL : waits until the process has ended; sends LAST_SIGNAL if that takes too long.
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

# port_taken PORT : a process listens on the port (a listener on all addresses answers on loopback too).
port_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# choose_port NAME DEFAULT : sets CHOSEN_PORT to the port of the last start, else the default, else the next free one
# above, and stores it. The result is a variable, because RESERVED_PORTS would be lost in a subshell.
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

# require_reachable NAME URL DEFAULT_PORT : fails if an external server does not answer.
require_reachable() {
    local name=$1 host port
    read -r host port < <(url_host_port "$2" "$3")
    (exec 3<>"/dev/tcp/${host:-127.0.0.1}/$port") 2>/dev/null ||
        die "$name is set, but nothing answers at ${host:-127.0.0.1}:$port; start that server or unset $name"
}

# ---------------------------------------------------------------------------------------------------------------
# Building

# require_build_tools : fails if a build tool is missing. Scripts call it before they start anything.
require_build_tools() {
    have cargo || die "cargo is not installed; Waypost needs Rust 1.95 or newer (rustup.rs)"
    [[ -n ${CC:-} ]] || have cc ||
        die "no C compiler (cc) is installed (Debian, Ubuntu: apt-get install build-essential; Fedora, RHEL: dnf install gcc; macOS: xcode-select --install)"
}

# build_cargo ARGUMENT… : runs cargo with the committed query data (.sqlx) and without DATABASE_URL: sqlx would check the
# queries against that database, which may be empty or older than the code. Builds into target_dir, whatever
# build.target-dir in cargo's configuration is.
build_cargo() {
    require_build_tools
    (cd "$ROOT" && env -u DATABASE_URL SQLX_OFFLINE=true CARGO_TARGET_DIR="$(target_dir)" cargo "$@")
}

# target_dir : prints the directory that build_cargo builds into.
target_dir() {
    local dir=${CARGO_TARGET_DIR:-target}
    case $dir in
    /*) printf '%s' "$dir" ;;
    *) printf '%s/%s' "$ROOT" "$dir" ;;
    esac
}
