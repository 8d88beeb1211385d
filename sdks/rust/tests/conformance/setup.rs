//! Making a client, and its log.

use std::env;
use std::io;
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;
use waypost::{Error, Waypost, serde_json};

use crate::support::{Proxied, RUN, mail, refusal};

/// The variable in which this test, run again as a process of its own, finds what to print.
const ALONE: &str = "CONFORMANCE_ALONE";

/// Since a test must not change the environment of those beside it, the program runs itself without the variable.
#[test]
fn c01_a_missing_key_or_address_fails_at_construction() {
    if env::var_os(ALONE).is_some() {
        println!("{}", Waypost::from_env().unwrap_err());
        return;
    }
    for name in ["WAYPOST_API_KEY", "WAYPOST_URL"] {
        let mut again = Command::new(env::current_exe().unwrap());
        again.args(["c01_", "--nocapture"]).env(ALONE, "1").env_remove(name);
        let output = again.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(&format!("set {name}.")), "{said}");
    }
    for address in ["mail.example.com", "ftp://example.com", "http://", "https://example.com/?a=b"] {
        let error = Waypost::new("key", address).unwrap_err();
        assert!(matches!(&error, Error::Usage(text) if text.contains("https://")), "{address}: {error}");
    }
}

#[tokio::test]
async fn c02_the_environment_is_enough() {
    let settings = Waypost::from_env().unwrap().settings().get().await.unwrap();
    assert!(!settings.unverified_domains.as_str().is_empty());
}

#[test]
fn c03_a_key_with_a_line_break_is_refused_and_not_shown() {
    for key in ["wp_live_secret\n", "wp_live secret", "wp_live_secrét"] {
        let error = Waypost::new(key, "https://mail.example.com").unwrap_err();
        assert!(error.to_string().contains("API key") && !format!("{error:?}").contains("wp_live"), "{error}");
    }
    let client = Waypost::new("wp_live_secret", "https://mail.example.com").unwrap();
    assert!(!format!("{:?} {:?}", client, client.settings().get()).contains("secret"));
}

#[tokio::test]
async fn c80_the_log_has_nothing_private() {
    let log = Log::default();
    let proxied = Proxied::new(json!([refusal(503, "SERVICE_UNAVAILABLE", json!({}))])).await;
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false);
    let guard = tracing::subscriber::set_default(subscriber.with_writer(log.clone()).finish());
    let private = mail().subject("A private subject");
    let key = format!("private-{}", *RUN);
    proxied.client.messages().send(&private).idempotency_key(key).await.unwrap();
    proxied.client.messages().list().recipient("ada@example.org").await.unwrap();
    drop(guard);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("waypost: ")).collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].contains("waypost: POST /v1/send") && lines[0].contains("status=503"), "{}", lines[0]);
    assert!(lines[0].contains("request_id=\"request-1\"") && lines[0].contains("retry_in="), "{}", lines[0]);
    for line in lines {
        let private = ["ada@", "ada-", "private", "wp_live", "Hello"].iter().find(|word| line.contains(**word));
        assert_eq!(private, None, "{line}");
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
