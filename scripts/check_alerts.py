#!/usr/bin/env python3
"""Checks alert rules, dashboard and documents against the metrics that exist: for `make test-alerts`.

check_alerts.py files DIRECTORY      checks the files alone; writes the queries of the dashboard to DIRECTORY, for promtool
check_alerts.py series PROMETHEUS    checks that a running Prometheus has the metrics, labels and values that are named, and
                                     evaluates every rule and every query of the dashboard
check_alerts.py table                writes the table of docs/metrics.md

The metrics are those of core/src/telemetry/instruments.rs. The files are read as text where that is enough, because Python
has no parser of YAML without a package.
"""

import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INSTRUMENTS = ROOT / "core/src/telemetry/instruments.rs"
RULES = ROOT / "deploy/prometheus/alerts.yml"
RULES_TEST = ROOT / "deploy/prometheus/alerts_test.yml"
PROMETHEUS = ROOT / "deploy/prometheus/prometheus.yml"
DASHBOARD = ROOT / "deploy/grafana/waypost.json"
OPERATIONS = ROOT / "docs/operations.md"
METRICS = ROOT / "docs/metrics.md"
# Where metrics are named in running text.
TEXTS = [OPERATIONS, METRICS, *sorted((ROOT / "deploy").rglob("*.y*ml"))]

RUNBOOKS = "https://github.com/waypost/waypost/blob/main/docs/operations.md#"
TABLE_BEGIN, TABLE_END = "<!-- metrics:begin -->", "<!-- metrics:end -->"
# Labels that Prometheus adds to every series.
ADDED_LABELS = {"job", "instance", "__name__"}
# What Prometheus itself records.
OWN_SERIES = {"up": set(), "ALERTS": {"alertname", "alertstate", "severity"}}
CRATES = {"waypost_core", "waypost_api", "waypost_worker", "waypost_scheduler"}
GRID_WIDTH = 24

PROBLEMS = []


def problem(text: str) -> None:
    PROBLEMS.append(text)


# ---------------------------------------------------------------------------------------------------------------
# What exists


class Instrument:
    def __init__(self, kind: str, name: str, labels: list, text: str):
        self.kind, self.name, self.labels, self.help = kind, name, labels, text

    def row(self) -> str:
        return f"| `{self.name}` | {', '.join(self.labels) or '–'} | {self.help} |"


def instruments() -> list:
    declared = re.search(r"^instruments! \{\n(.*?)^\}", INSTRUMENTS.read_text(), re.MULTILINE | re.DOTALL)
    pattern = r'[A-Z_]+ = (\w+) "(\w+)" \[([^\]]*)\]\s*"((?:[^"\\]|\\.)*)";'
    found = [
        Instrument(kind, name, re.findall(r'"(\w+)"', labels), text)
        for kind, name, labels, text in re.findall(pattern, declared[1])
    ]
    if len(found) != declared[1].count(";\n"):
        sys.exit(f"error: {INSTRUMENTS} has {declared[1].count(chr(59) + chr(10))} instruments; could read {len(found)}")
    return found


def series_labels() -> dict:
    """The labels of each series of Waypost: a histogram has three."""
    labels = {name: set(of) for name, of in OWN_SERIES.items()}
    for instrument in instruments():
        if instrument.kind == "Histogram":
            for suffix in ("_bucket", "_sum", "_count"):
                labels[instrument.name + suffix] = set(instrument.labels)
            labels[instrument.name + "_bucket"].add("le")
        else:
            labels[instrument.name] = set(instrument.labels)
    return labels


# ---------------------------------------------------------------------------------------------------------------
# What is named


class Query:
    """An expression of PromQL: what it selects, and by what it groups."""

    def __init__(self, where: str, text: str):
        self.where, self.text = where, text
        selector = r"\b((?:waypost|process)_\w+|up\b|ALERTS\b)(?:\{([^}]*)\})?"
        self.selectors = [
            (name, re.findall(r'(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"', matchers or ""))
            for name, matchers in re.findall(selector, text)
        ]
        groups = re.findall(r"\b(?:by|on|without)\s*\(([^)]*)\)", text)
        self.groups = {label for group in groups for label in re.findall(r"\w+", group)}


def alert_blocks() -> dict:
    """The text of each rule, by the name of its alert."""
    blocks = re.split(r"^ +- alert: (\w+)\n", RULES.read_text(), flags=re.MULTILINE)[1:]
    return dict(zip(blocks[::2], blocks[1::2]))


def rule_queries() -> list:
    queries = []
    for alert, block in alert_blocks().items():
        expression = re.search(r"^ +expr: (?:\|\n((?: {10,}.*\n)+)|(.*)\n)", block, re.MULTILINE)
        queries.append(Query(alert, expression[1] or expression[2]))
    return queries


def panels() -> list:
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


def dashboard_queries() -> list:
    return [
        Query(f"the panel '{panel['title']}'", target["expr"])
        for panel in panels()
        for target in panel["targets"]
    ]


# ---------------------------------------------------------------------------------------------------------------
# The files


def check_queries(queries: list, labels: dict) -> None:
    for query in queries:
        if not query.selectors:
            problem(f"{query.where}: no metric of Waypost in {query.text!r}")
        known = set(ADDED_LABELS)
        for name, matchers in query.selectors:
            # What a process says of itself is known from a scrape alone.
            if name not in labels and not name.startswith("process_"):
                problem(f"{query.where}: there is no metric {name}")
            of = labels.get(name, set()) | ADDED_LABELS
            known |= of
            for label, _, _ in matchers:
                if label not in of:
                    problem(f"{query.where}: {name} has no label {label}")
        for label in query.groups - known:
            problem(f"{query.where}: none of its metrics has the label {label}, by which it groups")


def check_alerts() -> None:
    blocks = alert_blocks()
    tests = RULES_TEST.read_text()
    headings = re.findall(r"^### (Waypost\w+)$", OPERATIONS.read_text(), re.MULTILINE)
    for alert, block in blocks.items():
        if not re.search(r"^ +severity: (page|ticket)$", block, re.MULTILINE):
            problem(f"{alert}: its severity is neither page nor ticket")
        for annotation in ("summary", "description"):
            if not re.search(rf"^ +{annotation}: \S", block, re.MULTILINE):
                problem(f"{alert}: it has no {annotation}")
        if f" runbook_url: {RUNBOOKS}{alert.lower()}\n" not in block:
            problem(f"{alert}: runbook_url must be {RUNBOOKS}{alert.lower()}")
        if headings.count(alert) != 1:
            problem(f"{alert}: docs/operations.md must have one section '### {alert}'")
        if not re.search(rf'alertname="{alert}".*\bvalue: ', tests):
            problem(f"{alert}: alerts_test.yml has no test in which it fires")
    for heading in set(headings) - set(blocks):
        problem(f"docs/operations.md has a section on {heading}, which is no alert")
    documented = re.findall(r"^\| \[(Waypost\w+)\]", OPERATIONS.read_text(), re.MULTILINE)
    if sorted(documented) != sorted(blocks):
        differ = ", ".join(sorted(set(documented) ^ set(blocks)))
        problem(f"the table of alerts in docs/operations.md differs from alerts.yml in {differ}")


def check_dashboard() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    everything = dashboard["panels"]
    ids = [panel["id"] for panel in everything]
    if len(set(ids)) != len(ids):
        problem("the dashboard has two panels with one id")
    cells = {}
    for panel in everything:
        title, at = panel["title"], panel["gridPos"]
        if at["x"] + at["w"] > GRID_WIDTH:
            problem(f"the panel '{title}' is wider than the dashboard")
        for cell in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
            if cells.setdefault(cell, title) != title:
                problem(f"the panels '{cells[cell]}' and '{title}' overlap")
                break
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", DASHBOARD.read_text())) - {"__rate_interval", "__all"}
    for variable in used ^ variables:
        problem(f"the dashboard's variable {variable} is not declared, or not used")
    for panel in panels():
        where = f"the panel '{panel['title']}'"
        if not panel["fieldConfig"]["defaults"].get("unit"):
            problem(f"{where} has no unit")
        if not panel.get("description"):
            problem(f"{where} has no description")
        for target in panel["targets"]:
            query = Query(where, target["expr"])
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                if label not in query.groups | ADDED_LABELS:
                    problem(f"{where}: its legend names {label}, by which the query does not group")


def check_documents(labels: dict) -> None:
    names = set(labels) | {instrument.name for instrument in instruments()}
    for path in TEXTS:
        for name in sorted(set(re.findall(r"\bwaypost_[a-z_]+[a-z]\b", path.read_text())) - CRATES):
            if name not in names:
                problem(f"{path.relative_to(ROOT)} names {name}, which does not exist")
    if table() != current_table():
        problem("the table of docs/metrics.md is out of date: run scripts/check_alerts.py table")


def check_alternatives(directory: Path) -> None:
    """Writes a configuration for each commented alternative of prometheus.yml. Debian's Prometheus does not know Kubernetes."""
    head, _, rest = PROMETHEUS.read_text().partition("scrape_configs:\n")
    alternatives = re.findall(r"^  # (?:Docker Compose|Kubernetes).*\n((?:  #.*\n)+)", rest, re.MULTILINE)
    if len(alternatives) != 2:
        problem("prometheus.yml has no alternatives for Docker Compose and Kubernetes")
    for number, lines in enumerate(alternatives):
        jobs = re.sub(r"^  # ", "  ", lines, flags=re.MULTILINE)
        jobs = jobs.replace("kubernetes_sd_configs: [{ role: pod }]", "static_configs: [{ targets: [pod] }]")
        head = head.replace("[alerts.yml]", f"[{RULES}]")
        (directory / f"prometheus-{number}.yml").write_text(f"{head}scrape_configs:\n{jobs}")


def without_variables(query: str) -> str:
    return query.replace("$__rate_interval", "5m").replace("$job", ".*").replace("$instance", ".*")


def write_dashboard_queries(directory: Path) -> None:
    """Writes the queries of the dashboard as recording rules: promtool parses those."""
    rules = []
    for number, query in enumerate(dashboard_queries()):
        text = json.dumps(without_variables(query.text))
        rules.append(f"      - record: dashboard:query:{number}\n        expr: {text}\n")
    content = "groups:\n  - name: dashboard\n    rules:\n" + "".join(rules)
    (directory / "dashboard.yml").write_text(content)


# ---------------------------------------------------------------------------------------------------------------
# The table of docs/metrics.md


def table() -> str:
    return "\n".join(["| name | labels | meaning |", "|---|---|---|", *(instrument.row() for instrument in instruments())])


def current_table() -> str:
    return METRICS.read_text().partition(TABLE_BEGIN + "\n")[2].partition("\n" + TABLE_END)[0]


def write_table() -> None:
    before, _, rest = METRICS.read_text().partition(TABLE_BEGIN + "\n")
    after = rest.partition("\n" + TABLE_END)[2]
    METRICS.write_text(f"{before}{TABLE_BEGIN}\n{table()}\n{TABLE_END}{after}")


# ---------------------------------------------------------------------------------------------------------------
# A running Prometheus


def check_series(prometheus: str) -> None:
    queries = rule_queries() + dashboard_queries()
    labels = series_labels()
    seen = {}
    for query in queries:
        for name, matchers in query.selectors:
            if name not in seen:
                seen[name] = series(prometheus, name)
                if name not in OWN_SERIES:
                    check_labels(name, seen[name], labels)
            if not seen[name] and name.startswith("process_"):
                problem(f"{query.where}: no process has the metric {name}")
            for label, operator, value in matchers:
                check_value(query.where, name, seen[name], (label, operator, value))


def series(prometheus: str, name: str) -> list:
    return ask(prometheus, "series", {"match[]": name})["data"]


def check_evaluation(prometheus: str) -> None:
    for group in ask(prometheus, "rules", {})["data"]["groups"]:
        for rule in group["rules"]:
            if rule["health"] != "ok":
                problem(f"{rule['name']}: Prometheus cannot evaluate it: {rule.get('lastError')}")
    for query in dashboard_queries():
        answer = ask(prometheus, "query", {"query": without_variables(query.text)})
        if answer["status"] != "success":
            problem(f"{query.where}: {answer['error']}")


def ask(prometheus: str, what: str, parameters: dict) -> dict:
    url = f"{prometheus}/api/v1/{what}?" + urllib.parse.urlencode(parameters)
    try:
        with urllib.request.urlopen(url, timeout=30) as response:
            return json.load(response)
    except urllib.error.HTTPError as refusal:
        return json.load(refusal)


def check_labels(name: str, found: list, labels: dict) -> None:
    for label in {label for one in found for label in one} - labels.get(name, set()) - ADDED_LABELS:
        problem(f"{name} has the label {label}, which instruments.rs does not declare")


def check_value(where: str, name: str, found: list, matcher: tuple) -> None:
    label, operator, value = matcher
    if "$" in value:
        return
    values = {one.get(label, "") for one in found} | declared_values(name)
    for alternative in alternatives_of(value) if operator in ("=~", "!~") else [re.escape(value)]:
        if not any(re.fullmatch(alternative, one) for one in values):
            problem(f"{where}: no series of {name} has {label} {value!r}, or one like {alternative!r}")


def alternatives_of(pattern: str) -> list:
    """`a|b` has two, and `waypost-(a|b)` too."""
    before, group, after = re.fullmatch(r"([^(|]*)(?:\(([^)]*)\))?(.*)", pattern).groups()
    if group is None:
        return pattern.split("|")
    return [before + one + after for one in group.split("|")]


def declared_values(name: str) -> set:
    """Values that a help text lists, in backquotes."""
    base = re.sub(r"_(bucket|sum|count)$", "", name)
    texts = [one.help for one in instruments() if one.name in (name, base)]
    return {value for text in texts for value in re.findall(r"`([^`]+)`", text)}


def main() -> int:
    command = sys.argv[1]
    if command == "table":
        write_table()
    elif command == "files":
        labels = series_labels()
        check_queries(rule_queries() + dashboard_queries(), labels)
        check_alerts()
        check_dashboard()
        check_documents(labels)
        check_alternatives(Path(sys.argv[2]))
        write_dashboard_queries(Path(sys.argv[2]))
    elif command == "series":
        check_series(sys.argv[2])
        check_evaluation(sys.argv[2])
    for text in PROBLEMS:
        print(f"error: {text}", file=sys.stderr)
    return 1 if PROBLEMS else 0


if __name__ == "__main__":
    sys.exit(main())
