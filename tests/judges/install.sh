#!/usr/bin/env bash
# Installs a judge's packages, once for each state of its lock file. Sourced by the judges' run.sh, which set `here` to
# their own folder.

# install_once FILE COMMAND : runs COMMAND unless FILE is unchanged since COMMAND last succeeded.
install_once() {
    cmp -s "$here/$1" "$JUDGE_HOME/installed-$1" && return
    "$2"
    cp "$here/$1" "$JUDGE_HOME/installed-$1"
}

install_python() {
    python3 -m venv --clear "$JUDGE_HOME/venv"
    "$JUDGE_HOME/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
}

# Copies .npmrc too, if the judge has one. What npm prints goes to stderr, as stdout is the judge's result.
install_node() {
    cp "$here/package.json" "$here/package-lock.json" "$JUDGE_HOME"
    [[ ! -e $here/.npmrc ]] || cp "$here/.npmrc" "$JUDGE_HOME"
    (cd "$JUDGE_HOME" && npm ci --silent --no-audit --no-fund "$@" >&2)
}
