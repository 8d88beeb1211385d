#!/usr/bin/env python3
"""Checks that the files by which Waypost is deployed agree with each other and with the programs. Called by
test-deploy.sh: check_deployment.py PULLED.json BUILT.json BASE.yaml EXAMPLE.yaml

PULLED and BUILT are what `docker compose config` makes of deploy/compose/compose.yml and docker-compose.yml; BASE and
EXAMPLE what `kubectl kustomize` makes of deploy/kubernetes. Prints every problem and fails if there is one.

It needs PyYAML. Whether the files are well-formed is the business of the tools that test-deploy.sh calls before.
"""

import json
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
UNITS = ROOT / "deploy/systemd"
PROGRAMS = {"waypost-api", "waypost-worker", "waypost-scheduler", "waypost-smtp"}
# How much longer than the program's own limit the system waits before it kills.
STOP_MARGIN_SECONDS = 5
# Files of a process that are not connections of clients.
OPEN_FILES_BESIDE_CONNECTIONS = 300

problems: list[str] = []


def require(holds: bool, problem: str) -> None:
    if not holds:
        problems.append(problem)


# ----------------------------------------------------------------------------------------------------------------------
# What the repository says of the programs

def settings() -> dict[str, str]:
    """The settings and their defaults, from the generated .env.example."""
    lines = (ROOT / ".env.example").read_text().splitlines()
    return dict(found.groups() for line in lines if (found := re.fullmatch(r"# ([A-Z][A-Z0-9_]*)=(.*)", line)))


def version() -> str:
    return re.search(r'^\[workspace\.package\]\nversion = "([^"]+)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]


def commands() -> set[str]:
    """The commands of waypost-api, from the enumeration that clap reads."""
    for source in sorted((ROOT / "api/src/operator").glob("*.rs")):
        if found := re.search(r"^(?:pub\S* )?enum Command \{\n(.*?)^\}", source.read_text(), re.M | re.S):
            names = re.findall(r"^    ([A-Z]\w+)", found[1], re.M)
            return {re.sub(r"(?<!^)([A-Z])", r"-\1", name).lower() for name in names}
    sys.exit("error: found no `enum Command` in api/src/operator")


def seconds(duration: str) -> float:
    """A duration as in the settings, in compose files (Go) or in units: 35s, 1m0s, 10min, 30."""
    units = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}
    parts = re.findall(r"([\d.]+)([a-z]*)", duration)
    return sum(float(number) * units[unit] for number, unit in parts)


SETTINGS = settings()
VERSION = version()
COMMANDS = commands()
SHUTDOWN_SECONDS = {
    "waypost-api": seconds(SETTINGS["WAYPOST_API_SHUTDOWN"]),
    "waypost-worker": seconds(SETTINGS["WAYPOST_WORKER_SHUTDOWN"]),
    "waypost-scheduler": 0.0,
    # It takes the settings of the API.
    "waypost-smtp": seconds(SETTINGS["WAYPOST_API_SHUTDOWN"]),
}
OPEN_FILES_MIN = {
    "waypost-api": int(SETTINGS["WAYPOST_API_CONNECTIONS_MAX"]) + OPEN_FILES_BESIDE_CONNECTIONS,
    "waypost-smtp": int(SETTINGS["WAYPOST_SUBMISSION_SESSIONS_MAX"]) + OPEN_FILES_BESIDE_CONNECTIONS,
}


def check_command(where: str, command: list[str]) -> None:
    program = command[0].rsplit("/", 1)[-1] if command else ""
    require(program in PROGRAMS, f"{where} runs {command}, which is none of {sorted(PROGRAMS)}")
    if program == "waypost-api":
        require(len(command) > 1 and command[1] in COMMANDS, f"{where} runs {command}: no such command")
    else:
        require(len(command) <= 1, f"{where} runs {command}, but {program} takes no arguments")


def check_settings(where: str, names) -> None:
    for name in names:
        require(name in SETTINGS, f"{where} sets {name}, which is no setting")


# ----------------------------------------------------------------------------------------------------------------------
# The image

def check_dockerfile() -> str:
    """Returns the user of the image."""
    text = (ROOT / "Dockerfile").read_text()
    stages = re.findall(r"^FROM \S+ AS (\S+)", text, re.M)
    require(stages[-1] == "waypost", "the last stage of the Dockerfile is not waypost")
    last = text[text.rindex(" AS waypost"):]
    linked = re.search(r'for program in ([a-z ]+); do ln -s waypost "/programs/waypost-\$program"', text)
    linked = {f"waypost-{name}" for name in linked[1].split()} if linked else set()
    require(linked == PROGRAMS, f"the image has {sorted(linked)} and not {sorted(PROGRAMS)}")
    require("COPY --from=build /programs/ /usr/local/bin/" in last, "the image has no programs")
    user = re.search(r"^USER (\d+):(\d+)$", text, re.M)
    require(user is not None and user[1] != "0", "the image's user is not a number other than 0")
    require("HEALTHCHECK" in last and '"waypost-api", "healthcheck"' in last, "the image has no health check")
    members = re.search(r"^members = \[(.*?)\]", (ROOT / "Cargo.toml").read_text(), re.M | re.S)[1]
    for member in re.findall(r'"([^"]+)"', members):
        require(f"COPY {member}/Cargo.toml {member}/\n" in text, f"the Dockerfile does not copy {member}/Cargo.toml")
        require(text.count(f" {member};") + text.count(f" {member} ") > 0, f"the Dockerfile makes no source for {member}")
        ignored = (ROOT / ".dockerignore").read_text().splitlines()
        require(f"!{member}" in ignored, f".dockerignore keeps {member} from the build")
    return user[1] if user else ""


# ----------------------------------------------------------------------------------------------------------------------
# Compose

def check_compose(pulled: dict, built: dict) -> str:
    """Returns the image that the pulling file uses by default."""
    require(pulled["services"].keys() == built["services"].keys(), "the compose files have different services")
    for name, service in built["services"].items():
        others = dict(pulled["services"].get(name, {}))
        own = {key: value for key, value in service.items() if key not in ("build", "image")}
        is_ours = is_of_waypost(others)
        if is_ours:
            del others["image"]
        else:
            own["image"] = service["image"]
        require(own == others, f"compose service {name} is not the same in both files")
        require(("build" in service) == is_ours, f"docker-compose.yml does not build {name}, or builds what is not ours")
        context = Path(service.get("build", {}).get("context", "/"))
        require(not is_ours or (context / "docker-compose.yml").exists(), f"docker-compose.yml builds {name} in {context}")
    images = {name: service["image"] for name, service in pulled["services"].items() if is_of_waypost(service)}
    for name in pulled["services"].keys() & images.keys():
        check_compose_service(name, pulled["services"][name])
    simulator = images.pop("simulator", "")
    require(len(set(images.values())) == 1, f"compose services of Waypost have different images: {images}")
    image = images["api"]
    require(image.endswith(f":{VERSION}"), f"compose pulls {image}, and this is version {VERSION}")
    wanted = image.replace(":", "-simulator:")
    require(simulator == wanted, f"compose pulls the simulator {simulator} and not {wanted}")
    return image


def is_of_waypost(service: dict) -> bool:
    return "/waypost" in service.get("image", "")


def check_compose_service(name: str, service: dict) -> None:
    where = f"compose service {name}"
    require(service.get("read_only") is True, f"{where} may write to its root file system")
    require(service.get("cap_drop") == ["ALL"] and not service.get("cap_add"), f"{where} keeps capabilities")
    require("no-new-privileges:true" in service.get("security_opt", []), f"{where} may gain privileges")
    require(not service.get("privileged") and not service.get("user"), f"{where} is privileged or has another user")
    for port in service.get("ports", []):
        require(port.get("host_ip") == "127.0.0.1", f"{where} publishes {port['published']} on all addresses")
        require(port["target"] != 8081, f"{where} publishes its health listener")
    environment = service.get("environment", {})
    if name == "simulator":
        known = set(re.findall(r'env = "(\w+)"', (ROOT / "simulator/src/main.rs").read_text()))
        require(environment.keys() <= known, f"{where} sets {sorted(environment.keys() - known)}, which it does not know")
        return
    check_settings(where, environment)
    check_command(where, service["command"])
    stop = seconds(service["stop_grace_period"])
    least = SHUTDOWN_SECONDS[service["command"][0]] + STOP_MARGIN_SECONDS
    require(stop >= least, f"{where} is killed after {stop} s; it may take {least} s to stop")
    needed = OPEN_FILES_MIN.get(service["command"][0], 0) if name != "migrate" else 0
    if needed:
        files = service.get("ulimits", {}).get("nofile")
        least = files.get("soft", 0) if isinstance(files, dict) else files or 0
        require(least >= needed, f"{where} may open {files} files; its connections need {needed}")
    if name == "api":
        require(environment["WAYPOST_LISTEN"].endswith(":8080"), f"{where} does not listen on the published port")
    elif name != "migrate":
        require(environment["WAYPOST_LISTEN"] == environment["WAYPOST_HEALTH_LISTEN"],
                f"the health check of {where} does not ask its health listener")
    if name == "smtp":
        targets = {f":{port['target']}" for port in service["ports"]}
        listen = environment["WAYPOST_SUBMISSION_LISTEN"]
        require(any(listen.endswith(target) for target in targets), f"{where} does not listen on the published port")


# ----------------------------------------------------------------------------------------------------------------------
# Kubernetes

def check_kubernetes(objects: list[dict], image: str, user: str, is_complete: bool) -> None:
    """Checks what an overlay or the base renders to. Only an overlay is complete: the base has no Secret."""
    by_kind: dict[str, list[dict]] = {}
    for item in objects:
        by_kind.setdefault(item["kind"], []).append(item)
    workloads = by_kind["Deployment"] + by_kind["Job"]
    settings_of_pods = {}
    for item in by_kind["ConfigMap"] + by_kind.get("Secret", []):
        check_settings(f"{item['kind']} {item['metadata']['name']}", item["data"])
        settings_of_pods |= item["data"]
    sources = {item["metadata"]["name"] for kind in ("ConfigMap", "Secret") for item in by_kind.get(kind, [])}
    for workload in workloads:
        check_workload(workload, image, user)
        for container in containers(workload):
            for source in container["envFrom"]:
                name = next(iter(source.values()))["name"]
                require(name in sources or (not is_complete and name == "waypost-secrets"),
                        f"{named(workload)} takes settings from {name}, which does not exist")
    ports = check_ports(by_kind["Deployment"], settings_of_pods)
    check_services(by_kind, ports)
    check_selectors(by_kind)
    if is_complete:
        for name in ("DATABASE_URL", "WAYPOST_ENCRYPTION_KEYS", "WAYPOST_PUBLIC_URL"):
            require(name in settings_of_pods, f"the Kubernetes overlay does not set {name}")


def named(item: dict) -> str:
    return f"{item['kind']} {item['metadata']['name']}"


def pod(workload: dict) -> dict:
    return workload["spec"]["template"]["spec"]


def containers(workload: dict) -> list[dict]:
    return pod(workload)["containers"] + pod(workload).get("initContainers", [])


def check_workload(workload: dict, image: str, user: str) -> None:
    where, spec = named(workload), pod(workload)
    security = spec.get("securityContext", {})
    require(security.get("runAsNonRoot") is True, f"{where} may run as root")
    require(str(security.get("runAsUser")) == user, f"{where} does not run as {user}, the image's user")
    require(security.get("seccompProfile", {}).get("type") == "RuntimeDefault", f"{where} has no seccomp profile")
    require(spec.get("automountServiceAccountToken") is False, f"{where} gets a token for Kubernetes")
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        require(key not in spec, f"{where} has {key}")
    for volume in spec.get("volumes", []):
        require(volume.keys() == {"name", "secret"}, f"{where} has a volume that is no Secret: {volume['name']}")
    for container in containers(workload):
        check_container(f"{where}, container {container['name']}", container, image)
    if workload["kind"] == "Deployment":
        program = spec["containers"][0]["command"][0]
        least = SHUTDOWN_SECONDS.get(program, 0) + STOP_MARGIN_SECONDS
        grace = spec["terminationGracePeriodSeconds"]
        require(grace >= least, f"{where} is killed after {grace} s; it may take {least} s to stop")
        waits = [container["command"] for container in spec.get("initContainers", [])]
        require(["waypost-api", "wait-for-migrations"] in waits, f"{where} does not wait for the migrations")


def check_container(where: str, container: dict, image: str) -> None:
    security = container.get("securityContext", {})
    require(security.get("readOnlyRootFilesystem") is True, f"{where} may write to its root file system")
    require(security.get("allowPrivilegeEscalation") is False, f"{where} may gain privileges")
    require(security.get("capabilities") == {"drop": ["ALL"]}, f"{where} keeps capabilities")
    require(not security.get("privileged") and "runAsUser" not in security, f"{where} is privileged or has another user")
    require(container["image"] == image, f"{where} has the image {container['image']}; compose has {image}")
    check_settings(where, [variable["name"] for variable in container.get("env", [])])
    check_command(where, container["command"])
    resources = container.get("resources", {})
    require(resources.get("requests", {}).keys() >= {"cpu", "memory"}, f"{where} requests no CPU or no memory")
    require("memory" in resources.get("limits", {}), f"{where} has no limit of memory")


def check_ports(deployments: list[dict], values: dict[str, str]) -> dict[str, dict[str, int]]:
    """Returns the ports of each Deployment, by name."""
    found = {}
    for deployment in deployments:
        where, container = named(deployment), pod(deployment)["containers"][0]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        found[deployment["metadata"]["name"]] = ports
        own = {variable["name"]: variable["value"] for variable in container.get("env", [])}
        listens = {"health": values["WAYPOST_HEALTH_LISTEN"], "http": values["WAYPOST_LISTEN"],
                   "submission": own.get("WAYPOST_SUBMISSION_LISTEN", ""),
                   "submissions": own.get("WAYPOST_SUBMISSION_TLS_LISTEN", "")}
        for name, port in ports.items():
            require(listens[name].endswith(f":{port}"), f"{where} declares port {name} {port} and listens on {listens[name]}")
        for probe in ("livenessProbe", "readinessProbe"):
            asked = container.get(probe, {}).get("httpGet", {})
            require(asked.get("path") == "/healthz" and asked.get("port") in ports, f"{where} has no {probe} of its ports")
        notes = deployment["spec"]["template"]["metadata"]["annotations"]
        require(notes["prometheus.io/port"] == str(ports["health"]), f"Prometheus would not ask the health listener of {where}")
    return found


def check_services(by_kind: dict, ports: dict[str, dict[str, int]]) -> None:
    services = {}
    for service in by_kind["Service"]:
        where = named(service)
        for port in service["spec"]["ports"]:
            of_target = ports[service["metadata"]["name"]]
            require(port["targetPort"] in of_target, f"{where} leads to {port['targetPort']}, which is no port")
            require(port["targetPort"] != "health", f"{where} leads to the health listener")
            services[service["metadata"]["name"], port["name"]] = where
    for ingress in by_kind.get("Ingress", []):
        for rule in ingress["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                backend = path["backend"]["service"]
                require((backend["name"], backend["port"]["name"]) in services, f"{named(ingress)} leads to no Service")
    every = {port for of_one in ports.values() for port in of_one.values()}
    health = {of_one["health"] for of_one in ports.values()}
    for policy in by_kind["NetworkPolicy"]:
        for rule in policy["spec"].get("ingress", []):
            opened = {port["port"] for port in rule.get("ports", [])}
            require(bool(opened) and opened <= every, f"{named(policy)} opens {sorted(opened)}, and there are {sorted(every)}")
            require(bool(rule.get("from")), f"{named(policy)} opens {sorted(opened)} to everyone")
            selected = [of.get("namespaceSelector", {}).get("matchLabels", {}) for of in rule.get("from", [])]
            callers = [labels.get("kubernetes.io/metadata.name", "") for labels in selected]
            require(not opened & health or callers == ["monitoring"], f"{named(policy)} opens the health listener to {callers}")


def check_selectors(by_kind: dict) -> None:
    labels = {item["metadata"]["name"]: item["spec"]["template"]["metadata"]["labels"] for item in by_kind["Deployment"]}

    def matched(selector: dict) -> list[str]:
        return [name for name, own in labels.items() if selector.items() <= own.items()]

    for kind, key in (("Deployment", "matchLabels"), ("PodDisruptionBudget", "matchLabels"), ("Service", None)):
        for item in by_kind[kind]:
            selector = item["spec"]["selector"]
            found = matched(selector[key] if key else selector)
            require(found == [item["metadata"]["name"]], f"{named(item)} selects {found}")
    for kind in ("PodDisruptionBudget",):
        covered = {item["metadata"]["name"] for item in by_kind[kind]}
        require(covered == labels.keys(), f"there is no {kind} for {sorted(labels.keys() - covered)}")
    for scaler in by_kind["HorizontalPodAutoscaler"]:
        target = scaler["spec"]["scaleTargetRef"]["name"]
        require(target in labels, f"{named(scaler)} scales {target}, which does not exist")
        scaled = [item for item in by_kind["Deployment"] if item["metadata"]["name"] == target and "replicas" in item["spec"]]
        require(not scaled, f"each `kubectl apply` would undo what {named(scaler)} did: {target} has replicas")
    every = next(item for item in by_kind["NetworkPolicy"] if item["metadata"]["name"] == "waypost")
    pods = by_kind["Deployment"] + by_kind["Job"]
    for item in pods:
        own = item["spec"]["template"]["metadata"]["labels"]
        require(every["spec"]["podSelector"]["matchLabels"].items() <= own.items(), f"{named(item)} is under no NetworkPolicy")


# ----------------------------------------------------------------------------------------------------------------------
# systemd

def check_units() -> None:
    listeners: dict[str, str] = {}
    started = set()
    for path in sorted(UNITS.glob("*.service")):
        lines = [line.split("=", 1) for line in path.read_text().splitlines() if re.match(r"\w+=", line)]
        unit = {key: value for key, value in lines}
        command = unit["ExecStart"].split()
        require(command[0].startswith("/usr/local/bin/"), f"{path.name} starts {command[0]}")
        check_command(path.name, command)
        started.add(command[0].rsplit("/", 1)[-1])
        variables = dict(part.split("=", 1) for part in unit.get("Environment", "").split())
        check_settings(path.name, variables)
        if unit.get("Type") == "oneshot":
            continue
        program = command[0].rsplit("/", 1)[-1]
        least = SHUTDOWN_SECONDS[program] + STOP_MARGIN_SECONDS
        require(seconds(unit["TimeoutStopSec"]) >= least, f"{path.name} is killed before {least} s, which it may take to stop")
        require(unit.get("Restart") == "always", f"{path.name} is not started again after a crash")
        require(unit.get("WantedBy") == "waypost.target", f"{path.name} does not belong to waypost.target")
        health = variables.get("WAYPOST_HEALTH_LISTEN", "")
        require(health.startswith("127.0.0.1:"), f"{path.name}: the health listener is reachable from elsewhere")
        for address in {health, variables.get("WAYPOST_LISTEN", health)}:
            require(address not in listeners, f"{path.name} and {listeners.get(address)} both listen on {address}")
            listeners[address] = path.name
        if needed := OPEN_FILES_MIN.get(program):
            require(int(unit["LimitNOFILE"]) >= needed, f"{path.name} may open {unit['LimitNOFILE']} files")
    require(started == PROGRAMS, f"the units start {sorted(started)}")


def main() -> int:
    pulled, built = (json.loads(Path(path).read_text()) for path in sys.argv[1:3])
    base, example = (list(yaml.safe_load_all(Path(path).read_text())) for path in sys.argv[3:5])
    user = check_dockerfile()
    image = check_compose(pulled, built)
    check_kubernetes(base, image, user, is_complete=False)
    check_kubernetes(example, image, user, is_complete=True)
    check_units()
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
