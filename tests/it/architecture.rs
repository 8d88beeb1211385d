//! The structure of the source tree, checked as an ordinary test: one home for each
//! dependency, the order of the layers, and the size of files.

mod homes;

use std::fs;
use std::path::{Path, PathBuf};

use waypost_tests::root;

use homes::HOMES;

/// The largest number of lines of a file.
const LINES_MAX: usize = 600;

/// The modules of `core`, from the bottom up. A module may use those of the layers below
/// it, and those to its left in its own layer; so there is no import circle.
const LAYERS: [(&str, &[&str]); 10] = [
    (
        "ground: knows nothing of mail",
        &[
            "clock",
            "ticks",
            "fault",
            "ids",
            "issue",
            "secret",
            "text",
            "page",
            "network",
            "permission",
            "process",
            "telemetry",
            "address",
            "crypto",
            "http",
            "dns",
            "batcher",
            "cache",
            "submission",
        ],
    ),
    (
        "servers: Postgres, Redis, the queue of jobs",
        &["db", "redis", "job_queue"],
    ),
    (
        "records that every subject writes or is kept by",
        &[
            "attachment",
            "audit",
            "idempotency",
            "metrics",
            "partition",
            "task_log",
            "reencrypt",
        ],
    ),
    ("providers and their protocols: no SQL", &["provider"]),
    (
        "settings and limits",
        &[
            "config",
            "startup",
            "retention",
            "organization",
            "limit",
            "auth",
            "account_limiter",
        ],
    ),
    ("people", &["user", "session", "member", "invitation"]),
    (
        "subjects",
        &[
            "event",
            "suppression",
            "unsubscribe",
            "template",
            "tracking",
            "routing",
            "message",
            "webhook",
        ],
    ),
    (
        "sending, and what it rests on",
        &[
            "delivery",
            "acceptance",
            "provider_account",
            "sender_domain",
            "import",
            "erasure",
            "diagnosis",
        ],
    ),
    (
        "what others report of messages",
        &["provider_event", "tracking_event"],
    ),
    ("what operators watch", &["monitoring", "health_server"]),
];

/// The crates that run in production.
const CRATES: [&str; 4] = ["core", "api", "worker", "scheduler"];

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    files(folder, "rs")
}

/// The files below a folder whose names have this extension.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

pub(crate) fn display(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap()
        .to_string_lossy()
        .into_owned()
}

pub(crate) fn production_files() -> Vec<PathBuf> {
    CRATES
        .iter()
        .flat_map(|name| rust_files(&root().join(name).join("src")))
        .collect()
}

fn all_files() -> Vec<PathBuf> {
    let tests = [
        "tests/src",
        "tests/it",
        "simulator/src",
        "bench/src",
        "chaos/src",
        "sdks/generator/src",
    ];
    let tests = tests
        .iter()
        .flat_map(|folder| rust_files(&root().join(folder)));
    production_files().into_iter().chain(tests).collect()
}

/// A file without its unit tests.
pub(crate) fn without_tests(text: &str) -> &str {
    let code = text.split("#[cfg(test)]\nmod tests {").next();
    code.unwrap_or_default()
}

/// The lines of a file that are code.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim_start()));
    lines.filter(|(_, line)| !line.starts_with("//"))
}

/// Whether `line` uses `name` itself, and not a module of Waypost with the same name.
fn names(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| {
            !c.is_alphanumeric() && c != '_' && (c != ':' || line[..at].ends_with(" ::"))
        })
    })
}

/// The mapping of a type to its column type is not a query.
fn without_type_mappings(line: &str) -> String {
    line.replace("sqlx::Type", "")
}

/// The reason is in `db::begin`.
#[test]
fn transactions_are_begun_in_one_place() {
    for path in production_files() {
        let (place, text) = (display(&path), fs::read_to_string(&path).unwrap());
        let dense: String = text.split_whitespace().collect();
        let begins = dense.contains("pool.begin()");
        assert_eq!(begins, place == "core/src/db/mod.rs", "{place}");
    }
}

#[test]
fn every_dependency_has_one_home() {
    let mut strays = Vec::new();
    for path in production_files() {
        let (place, text) = (display(&path), fs::read_to_string(&path).unwrap());
        for home in &HOMES {
            let is_store = home.library == "sqlx" && place.ends_with("/store.rs");
            let lives_here = home.places.iter().any(|own| {
                if own.ends_with('/') {
                    place.starts_with(own)
                } else {
                    place == *own
                }
            });
            if is_store || lives_here {
                continue;
            }
            for (number, line) in code_lines(&text) {
                let line = without_type_mappings(line);
                if home.names.iter().any(|name| names(&line, name)) {
                    strays.push(format!(
                        "{place}:{number} uses {}: {}",
                        home.library,
                        line.trim()
                    ));
                }
            }
        }
    }
    assert!(strays.is_empty(), "{}", strays.join("\n"));
}

/// The names of the dependencies in a manifest, including dev dependencies.
fn dependencies(manifest: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(manifest)).unwrap();
    let mut names = Vec::new();
    let mut within = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            within = line.contains("dependencies");
        } else if within && !line.is_empty() && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            names.push(name.trim_matches('"').to_owned());
        }
    }
    names
}

#[test]
fn the_programs_depend_on_the_core_and_never_on_each_other() {
    for name in ["api", "worker", "scheduler"] {
        let ours = dependencies(&format!("{name}/Cargo.toml"));
        let ours: Vec<&String> = ours
            .iter()
            .filter(|dependency| dependency.starts_with("waypost"))
            .collect();
        assert_eq!(ours, ["waypost-core"], "{name}");
    }
}

#[test]
fn the_core_and_the_simulator_depend_on_no_waypost_crate() {
    for manifest in ["core/Cargo.toml", "simulator/Cargo.toml"] {
        let ours = dependencies(manifest);
        assert!(
            !ours
                .iter()
                .any(|dependency| dependency.starts_with("waypost")),
            "{manifest}: {ours:?}"
        );
    }
}

/// The modules of `core` that a file of `core` uses.
fn modules_used(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code: Vec<&str> = code_lines(text).map(|(_, line)| line).collect();
    let code = code.join("\n");
    let mut used = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let name: String = rest
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        assert!(!name.is_empty(), "`use crate::{{…}}` hides what it uses");
        used.push(name);
    }
    used
}

#[test]
fn the_modules_of_the_core_use_only_those_below_them() {
    let order: Vec<&str> = LAYERS
        .iter()
        .flat_map(|(_, names)| *names)
        .copied()
        .collect();
    let source = root().join("core/src");
    let mut strays = Vec::new();
    for path in rust_files(&source) {
        let place = path.strip_prefix(&source).unwrap().to_string_lossy();
        let own = place
            .split(['/', '.'])
            .next()
            .unwrap_or_default()
            .to_owned();
        if own == "lib" {
            continue;
        }
        let own_height = order.iter().position(|name| *name == own);
        let own_height = own_height.unwrap_or_else(|| panic!("{own} is in no layer"));
        for name in modules_used(&fs::read_to_string(&path).unwrap()) {
            // A macro is at the root of the crate, whatever module defines it.
            let height = order.iter().position(|known| *known == name);
            let is_macro = name == "warn_seldom";
            if !is_macro && height.is_none_or(|height| height > own_height) {
                strays.push(format!("{own} uses {name}, which is not below it: {place}"));
            }
        }
    }
    assert!(strays.is_empty(), "{}", strays.join("\n"));
}

#[test]
fn the_manifests_keep_the_homes_too() {
    for (library, homes) in [
        ("poem", &["api"][..]),
        ("poem-openapi", &["api"]),
        ("sqlx", &["core"]),
        ("reqwest", &["core"]),
        ("redis", &["core"]),
        ("deadpool", &["core"]),
        ("apalis", &["worker"]),
        ("apalis-core", &["core"]),
        ("clap", &["api", "worker", "scheduler"]),
        ("governor", &["core"]),
    ] {
        for name in CRATES {
            let has = dependencies(&format!("{name}/Cargo.toml"))
                .iter()
                .any(|dependency| dependency == library);
            assert!(!has || homes.contains(&name), "{name} depends on {library}");
        }
    }
}

#[test]
fn every_module_starts_with_its_description() {
    let silent: Vec<String> = all_files()
        .iter()
        .filter(|path| !fs::read_to_string(path).unwrap().starts_with("//! "))
        .map(|path| display(path))
        .collect();
    assert!(silent.is_empty(), "{silent:?}");
}

/// The fields of a type need no documentation if their names are sufficient.
#[test]
fn public_items_are_documented() {
    let kinds = [
        "fn", "async fn", "const fn", "struct", "enum", "trait", "type", "const", "static",
    ];
    let mut silent = Vec::new();
    for path in production_files() {
        let text = fs::read_to_string(&path).unwrap();
        let text = without_tests(&text);
        let mut above = "";
        let mut in_attribute = false;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_start();
            in_attribute |= line.starts_with("#[");
            let is_public = line.strip_prefix("pub ").is_some_and(|rest| {
                kinds
                    .iter()
                    .any(|kind| rest.starts_with(&format!("{kind} ")))
            });
            // A macro documents what it makes where it is used.
            let is_made = line.contains("$name");
            if is_public && !is_made && !above.starts_with("///") {
                silent.push(format!("{}:{} {line}", display(&path), number + 1));
            }
            // Attributes may come between.
            if !in_attribute {
                above = line;
            }
            in_attribute &= !line.ends_with(']');
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<String> = all_files()
        .iter()
        .map(|path| {
            (
                display(path),
                fs::read_to_string(path).unwrap().lines().count(),
            )
        })
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(path, lines)| format!("{path} has {lines} lines"))
        .collect();
    assert!(long.is_empty(), "{long:?}");
}

#[test]
fn lints_are_expected_with_a_reason_and_never_allowed() {
    let allowed = concat!("#[", "allow");
    let strays: Vec<String> = all_files()
        .iter()
        .filter(|path| fs::read_to_string(path).unwrap().contains(allowed))
        .map(|path| display(path))
        .collect();
    assert!(strays.is_empty(), "{strays:?}");
}

#[test]
fn merged_code_has_no_todo() {
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
    ];
    for path in all_files() {
        let text = fs::read_to_string(&path).unwrap();
        for mark in marks {
            assert!(!text.contains(mark), "{} says {mark}", display(&path));
        }
    }
}

#[test]
fn tests_wait_for_states_and_never_sleep() {
    let sleeps = [concat!("time::", "sleep"), concat!("thread::", "sleep")];
    // Two subjects have their own harness.
    let own = ["tests/src/wait.rs", "tests/it/queue", "tests/it/adapters"];
    let files = ["tests/src", "tests/it"]
        .iter()
        .flat_map(|folder| rust_files(&root().join(folder)));
    for path in files.filter(|path| !own.iter().any(|own| display(path).starts_with(own))) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            !sleeps.iter().any(|sleep| text.contains(sleep)),
            "{} sleeps",
            display(&path)
        );
    }
}

/// The names of secrets and their proofs in comparisons.
const SECRETS: [&str; 8] = [
    "expose_secret",
    "to_plaintext",
    "password",
    "signature",
    "secret",
    "hmac",
    "key_hash",
    "api_key",
];

/// Comparisons that do not decide about access.
const HARMLESS: [&str; 4] = [
    // Whether an owner's PATCH changes the stored value.
    "self.to_plaintext() == other.to_plaintext()",
    // How idempotency keys are grouped; these are hashes of the owner's own keys.
    "(claim.organization_id, claim.key_hash) == key",
    // The kind of a token; its signature is verified on the same line.
    "[VERSION] != version || !self.signer.has_signed(",
    // A length.
    ".len() ==",
];

#[test]
fn proofs_of_secrets_are_compared_in_constant_time() {
    let mut strays = Vec::new();
    for path in production_files() {
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code_lines(text) {
            let compares = [" == ", " != "]
                .iter()
                .any(|operator| line.contains(operator));
            let is_secret = SECRETS.iter().any(|name| line.contains(name));
            let is_harmless = HARMLESS.iter().any(|known| line.contains(known));
            if compares && is_secret && !is_harmless {
                strays.push(format!("{}:{number}: {}", display(&path), line.trim()));
            }
        }
    }
    assert!(strays.is_empty(), "{}", strays.join("\n"));
}

#[test]
fn migrations_are_dated_and_commented() {
    for entry in fs::read_dir(root().join("migrations")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "README.md" {
            continue;
        }
        let (date, subject) = name.split_once('_').unwrap_or_else(|| panic!("{name}"));
        assert!(
            date.len() == 14 && date.bytes().all(|byte| byte.is_ascii_digit()),
            "{name}"
        );
        assert!(subject.ends_with(".sql"), "{name}");
        assert!(
            fs::read_to_string(&path).unwrap().starts_with("-- "),
            "{name} begins without a comment"
        );
    }
}
