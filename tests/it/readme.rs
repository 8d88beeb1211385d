//! The README's own examples, as they stand there: its receiver verifies what Waypost posts
//! to it, and its installation without containers ends with a key that works.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, WAIT_MAX, binaries, root, wait_until};

/// The port in the example.
const PORT: &str = "8099";

/// The example's program, as the README has it.
fn receiver() -> String {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("the README is there");
    let (_, rest) = readme
        .split_once("```python\n")
        .expect("the README has a receiver");
    let (program, _) = rest.split_once("```").expect("its block ends");
    assert!(program.contains(PORT));
    program.to_owned()
}

#[tokio::test]
async fn the_readmes_receiver_verifies_a_messages_life() {
    let app = TestApp::start().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    app.post(
        &format!("/v1/providers/{account}/event-webhook"),
        &json!({}),
    )
    .await
    .expect(200);

    let port = free_port();
    let folder = std::env::temp_dir().join(format!("waypost-readme-{}-{port}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder can be made");
    let program = receiver().replace(PORT, &port.to_string());
    std::fs::write(folder.join("receiver.py"), program).expect("a file can be written");
    let mut process = Command::new("python3")
        .args(["-u", "receiver.py"])
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("python3 is there");
    let output = process.stdout.take().expect("its output is ours");
    wait_until("the receiver listens", async || {
        tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .is_ok()
    })
    .await;

    let wanted = json!({
        "url": format!("http://127.0.0.1:{port}/"),
        "events": ["QUEUED", "SENT", "DELIVERED"],
    });
    let endpoint = app.post("/v1/webhook-endpoints", &wanted).await.data(201);
    let secret = endpoint["secret"].as_str().expect("a secret");
    std::fs::write(folder.join("secret"), secret).expect("a file can be written");

    let id = app.send_to("charles@example.org").await;
    let lines = async {
        let mut lines = BufReader::new(output).lines();
        let mut seen = Vec::new();
        while seen.len() < 3 {
            seen.push(lines.next_line().await.unwrap().expect("the receiver runs"));
        }
        seen.sort();
        seen
    };
    let seen = tokio::time::timeout(WAIT_MAX, lines)
        .await
        .expect("three events come");
    assert_eq!(
        seen,
        [
            "DELIVERED charles@example.org",
            "QUEUED charles@example.org",
            "SENT charles@example.org"
        ]
    );
    assert_eq!(app.status(&id).await, "DELIVERED");
    app.drain().await;
    std::fs::remove_dir_all(folder).expect("a folder can be removed");
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    listener.local_addr().expect("it has an address").port()
}

/// The block by which the README installs without containers, without its indentation.
fn installation() -> String {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("the README is there");
    let (_, rest) = readme
        .split_once("Without containers")
        .expect("the README says how");
    let (_, rest) = rest.split_once("```sh\n").expect("there is a block");
    let (block, _) = rest.split_once("```").expect("the block ends");
    let lines = block
        .lines()
        .map(|line| line.strip_prefix("   ").unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// A folder in which `target/release` holds the programs and `cargo` builds nothing.
fn built_checkout(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("waypost-{name}-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("target")).expect("a folder can be made");
    std::fs::create_dir_all(folder.join("bin")).expect("a folder can be made");
    std::os::unix::fs::symlink(binaries(), folder.join("target/release"))
        .expect("a link can be made");
    std::os::unix::fs::symlink("/bin/true", folder.join("bin/cargo")).expect("a link can be made");
    folder
}

#[tokio::test]
async fn the_readmes_installation_without_containers_works_as_it_is_pasted() {
    let builder = TestApp::builder().without_migrations().processes();
    let app = builder.start().await;
    let folder = built_checkout("install");
    let path = format!(
        "{}:/usr/local/bin:/usr/bin:/bin",
        folder.join("bin").display()
    );
    let given = [
        "DATABASE_URL",
        "REDIS_URL",
        "WAYPOST_REDIS_PREFIX",
        "WAYPOST_LISTEN",
    ];
    let given = given.map(|name| (name, app.variables[name].as_str()));
    let mut process = Command::new("bash")
        .args(["-c", &installation()])
        .current_dir(&folder)
        .env_clear()
        .envs(given)
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
    let kept = std::fs::read_to_string(folder.join("waypost.env")).expect("its settings are kept");
    assert!(kept.contains("WAYPOST_ENCRYPTION_KEYS='1:"), "{kept}");
    let stopped = Command::new("kill")
        .args(["-TERM", "--", &format!("-{group}")])
        .status()
        .await;
    assert!(stopped.is_ok_and(|status| status.success()));
    std::fs::remove_dir_all(folder).expect("a folder can be removed");
}
