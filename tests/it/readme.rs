//! The README's own example: its receiver runs as it stands there, and verifies what
//! Waypost posts to it.

use std::process::Stdio;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, WAIT_MAX, root, wait_until};

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
