//! What an operator watches: metrics and traces of the running programs.

mod collector;
mod metrics;
mod traces;

use std::collections::HashMap;

use waypost_tests::{Process, Program, TestApp, wait_until};

/// A program with its health listener.
struct Watched {
    _process: Process,
    /// The URL of the health listener.
    url: String,
}

impl Watched {
    /// Starts a program and waits until its health listener answers.
    async fn start(app: &TestApp, program: Program, extra: &[(&str, &str)]) -> Self {
        let port = waypost_tests::free_port();
        let mut variables: HashMap<String, String> = app.variables.clone();
        let listen = format!("127.0.0.1:{port}");
        variables.insert("WAYPOST_HEALTH_LISTEN".to_owned(), listen.clone());
        for (name, value) in extra {
            variables.insert((*name).to_owned(), (*value).to_owned());
        }
        let arguments: &[&str] = match program {
            Program::Api => &["serve"],
            Program::Worker | Program::Scheduler | Program::Smtp => &[],
        };
        let watched = Self {
            _process: program.spawn(arguments, &variables),
            url: format!("http://{listen}"),
        };
        wait_until("the program is ready", async || {
            let reply = reqwest::get(format!("{}/readyz", watched.url)).await;
            reply.is_ok_and(|reply| reply.status() == 200)
        })
        .await;
        watched
    }

    /// Its metrics, as text.
    async fn metrics(&self) -> String {
        let reply = reqwest::get(format!("{}/metrics", self.url)).await;
        let reply = reply.expect("the health listener answers");
        assert_eq!(reply.status(), 200);
        let content_type = reply.headers()["content-type"].to_str().unwrap();
        assert!(content_type.starts_with("text/plain; version=0.0.4"));
        reply.text().await.expect("metrics are text")
    }
}
