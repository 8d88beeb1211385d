//! The programs in `examples/`, run as a new user runs them: their message reaches the
//! provider once, and their receivers accept only genuine webhooks.

use std::path::PathBuf;
use std::process::{Output, Stdio};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};
use waypost_core::auth::Permission;
use waypost_core::clock::Clock;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, WAIT_MAX, root, wait_until};

const RECIPIENT: &str = "charles@example.org";
const BODY: &[u8] = br#"{"event":"OPENED","data":{"recipient":"eve@example.org"}}"#;
/// Older than receivers accept.
const STALE_SECONDS: i64 = 301;

#[tokio::test]
async fn the_curl_example_sends_a_message_once() {
    assert_sends_once(&["bash", "curl/send.sh"]).await;
}

#[tokio::test]
async fn the_python_example_sends_a_message_once() {
    assert_sends_once(&["python3", "python/send.py"]).await;
}

#[tokio::test]
async fn the_typescript_example_sends_a_message_once() {
    assert_sends_once(&["node", "typescript/send.mjs"]).await;
}

#[tokio::test]
async fn the_python_receiver_accepts_only_genuine_webhooks() {
    assert_receives_genuine(&["python3", "-u", "python/receiver.py"]).await;
}

#[tokio::test]
async fn the_typescript_receiver_accepts_only_genuine_webhooks() {
    assert_receives_genuine(&["node", "typescript/receiver.mjs"]).await;
}

#[tokio::test]
async fn the_curl_example_verifies_a_signature_by_hand() {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let verify = async |at: i64, signature: &str, body: &[u8]| {
        let mut process = example(&["bash", "curl/verify.sh"])
            .args([&at.to_string(), signature])
            .env("WAYPOST_WEBHOOK_SECRET", secret)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("bash is installed");
        let mut input = process.stdin.take().expect("the input is piped");
        // A stale request is rejected before the body is read.
        let _broken_pipe = input.write_all(body).await;
        drop(input);
        let output = tokio::time::timeout(WAIT_MAX, process.wait_with_output()).await;
        let output = output
            .expect("the example ends")
            .expect("it can be awaited");
        output.status.success()
    };
    let now = Clock::system().now().timestamp();
    let signature = sign(secret, now, BODY);
    assert!(verify(now, &signature, BODY).await);
    assert!(!verify(now, &signature, b"{}").await, "tampered");
    let stale = now - STALE_SECONDS;
    assert!(
        !verify(stale, &sign(secret, stale, BODY), BODY).await,
        "stale"
    );
}

/// Runs the program twice with the same order, like a caller that lost the first
/// response.
async fn assert_sends_once(program: &[&str]) {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let key = app.key(app.organization_id(), &[Permission::Send]).await;
    let mut answers = Vec::new();
    for _ in 0..2 {
        let mut command = example(program);
        command.args([RECIPIENT, "order-1042"]);
        let output = finish(command, &app, &key).await;
        let answer: Value = serde_json::from_slice(&output.stdout).expect("it prints the answer");
        answers.push(answer);
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0]["status"], "queued");
    app.drain().await;
    let mail = app.captured_once(RECIPIENT);
    assert_eq!(mail.subject, "Your receipt for order-1042");
    assert_eq!(mail.tags, ["receipts"]);
    let id = answers[0]["messageId"].as_str().expect("it has an id");
    assert_eq!(app.status(id).await, "SENT");
}

/// Subscribes the receiver with `subscribe.sh`, sends a message, and posts forgeries.
async fn assert_receives_genuine(program: &[&str]) {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let mut receiver = ExampleReceiver::start(program).await;
    let now = app.clock.now().timestamp();
    // Without a secret nothing is genuine, not even a webhook signed with an empty key.
    let unsigned = receiver.post(now, &sign("", now, BODY), BODY).await;
    assert_eq!(unsigned, 401);

    let mut subscribe = example(&["bash", "curl/subscribe.sh"]);
    subscribe.arg(receiver.url());
    let key = app
        .key(app.organization_id(), &[Permission::SettingsWrite])
        .await;
    let output = finish(subscribe, &app, &key).await;
    let secret = String::from_utf8(output.stdout).expect("a secret is text");
    receiver.keep_secret(&secret);
    let secret = secret.trim();

    app.send_to(RECIPIENT).await;
    let mut seen = [receiver.next_line().await, receiver.next_line().await];
    seen.sort();
    for (line, event) in seen.iter().zip(["QUEUED", "SENT"]) {
        let beginning = format!("{event} {RECIPIENT} ");
        assert!(line.starts_with(&beginning), "{seen:?}");
    }
    app.drain().await;

    let signature = sign(secret, now, BODY);
    assert_eq!(receiver.post(now, &signature, b"{}").await, 401, "tampered");
    let stale = now - STALE_SECONDS;
    let old = sign(secret, stale, BODY);
    assert_eq!(receiver.post(stale, &old, BODY).await, 401, "stale");
    // The rejections above have these reasons only.
    assert_eq!(receiver.post(now, &signature, BODY).await, 204);
    let line = receiver.next_line().await;
    assert_eq!(line, "OPENED eve@example.org made-up");
}

/// A receiver of the examples, in its own folder. Dropping it ends it.
struct ExampleReceiver {
    _process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    folder: PathBuf,
    port: u16,
}

impl ExampleReceiver {
    async fn start(program: &[&str]) -> Self {
        let port = free_port().await;
        let name = format!("waypost-example-{}-{port}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).expect("a folder can be made");
        let mut process = example(program)
            .arg(port.to_string())
            .arg(folder.join("secret"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} is not installed: {error}", program[0]));
        let output = process.stdout.take().expect("the output is piped");
        wait_until("the receiver listens", async || {
            TcpStream::connect(("127.0.0.1", port)).await.is_ok()
        })
        .await;
        Self {
            _process: process,
            lines: BufReader::new(output).lines(),
            folder,
            port,
        }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    fn keep_secret(&self, secret: &str) {
        std::fs::write(self.folder.join("secret"), secret).expect("a file can be written");
    }

    /// Posts a webhook with this signature; returns the status.
    async fn post(&self, at: i64, signature: &str, body: &'static [u8]) -> u16 {
        let client = reqwest::Client::builder().no_proxy().build();
        let request = client
            .expect("an HTTP client can be made")
            .post(self.url())
            .header("X-Waypost-Timestamp", at.to_string())
            .header("X-Waypost-Signature", signature)
            .header("webhook-id", "made-up")
            .body(body);
        let answer = request.send().await.expect("the receiver answers");
        answer.status().as_u16()
    }

    async fn next_line(&mut self) -> String {
        let line = tokio::time::timeout(WAIT_MAX, self.lines.next_line()).await;
        let line = line.expect("the receiver prints a line in time");
        let line = line.expect("its output can be read");
        line.expect("the receiver still runs")
    }
}

impl Drop for ExampleReceiver {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir_all(&self.folder);
    }
}

/// A program of the examples: the interpreter with its options, then the file.
fn example(program: &[&str]) -> Command {
    let [interpreter, options @ .., file] = program else {
        panic!("an interpreter and a file are needed");
    };
    let mut command = Command::new(interpreter);
    command
        .args(options)
        .arg(root().join("examples").join(file))
        // The machine's proxy cannot reach this test's servers.
        .env("no_proxy", "*")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Runs it to its end against the app; it must succeed.
async fn finish(mut command: Command, app: &TestApp, key: &str) -> Output {
    command
        .env(
            "WAYPOST_URL",
            format!("http://{}", app.variables["WAYPOST_LISTEN"]),
        )
        .env("WAYPOST_API_KEY", key);
    let output = tokio::time::timeout(WAIT_MAX, command.output()).await;
    let output = output.expect("the example ends in time");
    let output = output.unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    assert!(output.status.success(), "{output:?}");
    output
}

/// The hexadecimal signature of a webhook.
fn sign(secret: &str, at: i64, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any key will do");
    mac.update(format!("{at}.").as_bytes());
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

async fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await;
    let listener = listener.expect("the loopback interface has free ports");
    listener
        .local_addr()
        .expect("a listener has an address")
        .port()
}
