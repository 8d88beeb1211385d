//! The documents: their links are valid, and the installation in `README.md` works as printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use waypost_tests::{TestApp, WAIT_MAX, binaries, root, wait_until};

/// The shell commands of the installation without containers.
fn installation() -> String {
    let path = root().join("README.md");
    let document = fs::read_to_string(path).expect("the document is there");
    let (_, rest) = document
        .split_once("\n### Without containers\n")
        .expect("the document says how");
    let (_, rest) = rest.split_once("```sh\n").expect("there is a block");
    let (block, _) = rest.split_once("```").expect("the block ends");
    block.to_owned()
}

/// A folder in which `target/release` has the programs and `cargo` builds nothing.
fn built_checkout(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("waypost-{name}-{}", std::process::id()));
    fs::create_dir_all(folder.join("target")).expect("a folder can be made");
    fs::create_dir_all(folder.join("bin")).expect("a folder can be made");
    std::os::unix::fs::symlink(binaries(), folder.join("target/release"))
        .expect("a link can be made");
    std::os::unix::fs::symlink("/bin/true", folder.join("bin/cargo")).expect("a link can be made");
    folder
}

#[tokio::test]
async fn the_documented_installation_without_containers_works() {
    let builder = TestApp::builder().private_postgres().processes();
    let app = builder.start().await;
    // Otherwise `doctor` stops the installation.
    app.execute("ALTER SYSTEM SET fsync = on").await;
    app.execute("SELECT pg_reload_conf()").await;
    app.execute("CREATE DATABASE fresh").await;
    let mut database = url::Url::parse(&app.variables["DATABASE_URL"]).expect("a URL");
    database.set_path("/fresh");
    let folder = built_checkout("install");
    let path = format!(
        "{}:/usr/local/bin:/usr/bin:/bin",
        folder.join("bin").display()
    );
    let given = ["REDIS_URL", "WAYPOST_REDIS_PREFIX", "WAYPOST_LISTEN"];
    let given = given.map(|name| (name, app.variables[name].as_str()));
    let mut process = Command::new("bash")
        .args(["-c", &installation()])
        .current_dir(&folder)
        .env_clear()
        .envs(given)
        .env("DATABASE_URL", database.as_str())
        .env("PATH", path)
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("bash is there");
    let group = process.id().expect("it runs");
    let output = process.stdout.take().expect("its output is ours");
    let mut lines = BufReader::new(output).lines();
    let key = async {
        while let Some(line) = lines.next_line().await.expect("it can be read") {
            if line.starts_with("wp_live_") {
                return line;
            }
        }
        panic!("no key is printed")
    };
    let key = tokio::time::timeout(WAIT_MAX, key).await;
    let key = key.expect("a key is printed in time");
    let caller = app.caller().with_key(&key);
    wait_until("the API serves", async || {
        let address = app.variables["WAYPOST_LISTEN"].as_str();
        tokio::net::TcpStream::connect(address).await.is_ok()
    })
    .await;
    caller.get("/v1/messages").await.expect(200);
    let kept = fs::read_to_string(folder.join("waypost.env")).expect("its settings are kept");
    assert!(kept.contains("WAYPOST_ENCRYPTION_KEYS='1:"), "{kept}");
    let stopped = Command::new("kill")
        .args(["-TERM", "--", &format!("-{group}")])
        .status()
        .await;
    assert!(stopped.is_ok_and(|status| status.success()));
    fs::remove_dir_all(folder).expect("a folder can be removed");
}

/// Every document, from the root and the folders with documents.
fn documents() -> Vec<PathBuf> {
    let folders = [
        ".",
        "docs",
        "docs/decisions",
        "examples",
        "simulator",
        "migrations",
    ];
    let mut found = Vec::new();
    for folder in folders {
        let entries = fs::read_dir(root().join(folder)).expect("the folder is there");
        let paths = entries.map(|entry| entry.expect("it can be listed").path());
        found.extend(paths.filter(|path| path.extension().is_some_and(|name| name == "md")));
    }
    found
}

/// The text without its code blocks.
fn prose(text: &str) -> String {
    let parts = text.split("\n```").step_by(2);
    parts.collect::<Vec<_>>().join("\n")
}

/// The anchors of a document's headings, as GitHub creates them.
fn anchors(text: &str) -> Vec<String> {
    let prose = prose(text);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let titles = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let kept = |title: String| -> String {
        let letters = title.chars().map(|c| if c == ' ' { '-' } else { c });
        letters
            .filter(|c| c.is_alphanumeric() || ['-', '_'].contains(c))
            .collect()
    };
    titles.map(kept).collect()
}

/// Why a link of the document is broken.
fn broken(document: &Path, link: &str) -> Option<String> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => document.to_owned(),
        path => document.parent().expect("it lies in a folder").join(path),
    };
    let is_broken = if anchor.is_empty() {
        !target.exists()
    } else {
        let text = fs::read_to_string(&target).unwrap_or_default();
        !anchors(&text).contains(&anchor.to_owned())
    };
    is_broken.then(|| format!("{}: {link}", document.display()))
}

#[test]
fn every_relative_link_is_valid() {
    let mut found = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).expect("it can be read");
        let prose = prose(&text);
        let links = prose
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split_once(')'));
        let relative = links.filter(|(link, _)| !link.contains(':'));
        found.extend(relative.filter_map(|(link, _)| broken(&document, link)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
