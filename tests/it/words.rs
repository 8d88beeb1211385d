//! The names in product code: the field's words, and each with one meaning.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use waypost_tests::root;

use crate::architecture::{display, files, production_files, without_tests};

/// Words that were names here and mean something else, or nothing, to an engineer who knows
/// mail, queues or PostgreSQL; with the word that took their place.
const RETIRED: [(&str, &str); 42] = [
    ("bell", "wakeup"),
    ("board", "states, log"),
    ("bury", "dead-letter"),
    ("clerk", "sync"),
    ("clue", "match key"),
    ("copies", "recipients"),
    ("crowd", "batch_min"),
    ("desk", "in flight, account state"),
    ("door", "cached account"),
    ("fare", "endpoint health"),
    ("foreseen", "predicted"),
    ("foresight", "prediction"),
    ("gates", "account limiter"),
    ("happening", "event kind"),
    ("keeper", "maintenance"),
    ("lane", "flush, fairness key, endpoint deliverer"),
    ("lanes", "flushes"),
    ("ledger", "store"),
    ("leisure", "background"),
    ("news", "notification, batch of events"),
    ("office", "shared state"),
    ("parked", "dead"),
    ("patience", "timeout, wait"),
    ("puller", "fallback poller"),
    ("pulse", "liveness"),
    ("reseal", "re-encrypt"),
    ("settle", "record"),
    ("settlement", "outcome record"),
    ("sift", "bisect"),
    ("sighting", "tracking hit"),
    ("standing", "state, context"),
    ("stranger", "anonymous, another organization"),
    ("suspect", "quarantined"),
    ("suspects", "quarantine"),
    ("tally", "counts"),
    ("teller", "event source"),
    ("tenure", "worker lease"),
    ("tenures", "worker lease"),
    ("told", "reported"),
    ("trunk", "producer connection"),
    ("usher", "dispatcher"),
    ("workshop", "render pool"),
];

/// Type names that stand twice, and why.
const TWICE: [(&str, &str); 2] = [
    (
        "Settings",
        "the configuration of a process; and a schema of the API, whose name customers see",
    ),
    (
        "WebhookAttempt",
        "the engine's row; and a schema of the API, whose name customers see",
    ),
];

/// Product code without its unit tests.
fn sources() -> Vec<(String, String)> {
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (display(&path), without_tests(&text).to_owned())
    };
    let sources = production_files().into_iter().map(read);
    sources
        .filter(|(place, _)| !place.ends_with("/tests.rs") && !place.contains("/tests/"))
        .collect()
}

/// Code without comments and without the texts in quotes.
fn without_prose(code: &str) -> String {
    let mut left = String::with_capacity(code.len());
    for line in code.lines() {
        let line = match line.find("//") {
            Some(at) => &line[..at],
            None => line,
        };
        // Every second part is between quotes.
        left.extend(line.split('"').step_by(2));
        left.push('\n');
    }
    left
}

/// The names in code, each with its words: those between underscores and capitals.
fn names(code: &str) -> BTreeMap<&str, Vec<String>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let names = code
        .split(|c: char| !is_part(c))
        .filter(|name| !name.is_empty());
    let words = |name: &str| -> Vec<String> {
        let mut words = vec![String::new()];
        let mut before_is_lower = false;
        for c in name.chars() {
            if c == '_' || c.is_uppercase() && before_is_lower {
                words.push(String::new());
            }
            before_is_lower = c.is_lowercase();
            if c != '_'
                && let Some(word) = words.last_mut()
            {
                word.extend(c.to_lowercase());
            }
        }
        words
    };
    names.map(|name| (name, words(name))).collect()
}

#[test]
fn retired_words_name_nothing() {
    let mut found = Vec::new();
    for (place, code) in sources() {
        let code = without_prose(&code);
        for (name, words) in names(&code) {
            for (retired, instead) in RETIRED {
                if words.iter().any(|word| word == retired) {
                    found.push(format!("{place}: {name}; say {instead}"));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn retired_words_name_no_table_column_or_function() {
    let mut found = Vec::new();
    for path in files(&root().join("migrations"), "sql") {
        let text = fs::read_to_string(&path).unwrap();
        let code: Vec<&str> = text
            .lines()
            .map(|line| line.split("--").next().unwrap_or_default())
            .collect();
        let code = code.join("\n");
        for (name, words) in names(&code) {
            for (retired, instead) in RETIRED {
                if words.iter().any(|word| word == retired) {
                    found.push(format!("{}: {name}; say {instead}", path.display()));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_type_name_stands_once() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (place, code) in sources() {
        for line in code.lines() {
            let line = line.strip_prefix("pub ").unwrap_or(line);
            let line = match line.strip_prefix("pub(") {
                Some(rest) => rest.split_once(") ").map_or("", |(_, rest)| rest),
                None => line,
            };
            let kinds = ["struct ", "enum ", "trait ", "type ", "union "];
            let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) else {
                continue;
            };
            let name = rest.split(|c: char| !c.is_alphanumeric()).next();
            let name = name.unwrap_or_default().to_owned();
            places.entry(name).or_default().insert(place.clone());
        }
    }
    let twice: Vec<String> = places
        .iter()
        .filter(|(name, places)| {
            places.len() > 1 && !TWICE.iter().any(|(allowed, _)| allowed == name)
        })
        .map(|(name, places)| format!("{name}: {places:?}"))
        .collect();
    assert!(twice.is_empty(), "{}", twice.join("\n"));
}
