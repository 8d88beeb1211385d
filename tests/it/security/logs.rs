//! The logs of all operations at every level contain no personal data and no secrets.
//! Processes are real ones, and log with `WAYPOST_LOG=trace`.

use http::Method;
use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Answer, Process, Receiver, TestApp, wait_until};

use super::echo::Echo;
use super::leak_scan::Needle;

const RECIPIENT: &str = "canary.recipient@canary-mailbox.org";
const REFUSED: &str = "refuse+canary-refused@canary-mailbox.org";
const SUPPRESSED: &str = "canary.suppressed@canary-mailbox.org";
const SENDER: &str = "Canary Sender <canary.sender@example.com>";
const SUBJECT: &str = "canary subject of the letter";
const BODY: &str = "canary body of the letter";
const VARIABLE: &str = "canary value of a variable";
const METADATA: &str = "canary metadata value";
const TAG: &str = "canary-tag-of-a-message";
const IDEMPOTENCY_KEY: &str = "canary-idempotency-key";
const WRONG_KEY: &str = "wp_live_canaryWrongKeyCanaryWrongKey0000";
const SENDGRID_KEY: &str = "SG.canary-sendgrid-key";
const POSTMARK_TOKEN: &str = "canary-postmark-server-token";
const MAILGUN_KEY: &str = "canary-mailgun-api-key";
const SES_SECRET: &str = "canarySesSecretAccessKey/canary+canary00";
const SES_ID: &str = "AKIACANARYCANARY0000";
const SMTP_PASSWORD: &str = "canary-smtp-password";
const HOOK_TOKEN: &str = "canary-token-in-a-webhook-url";
const ENCRYPTION_KEY: &str = "Y2FuYXJ5IGtleSB0aGF0IHNlYWxzIGFuZCBzaWducyE=";

/// A scenario with a secret in every field that can hold one.
struct Story {
    app: TestApp,
    receiver: Receiver,
    echo: Echo,
    needles: Vec<Needle>,
}

impl Story {
    async fn begin(format: &str) -> Self {
        let echo = Echo::start().await;
        let app = TestApp::builder()
            .processes()
            .private_redis()
            .setting("WAYPOST_LOG", "trace")
            .setting("WAYPOST_LOG_FORMAT", format)
            .setting("WAYPOST_MAILGUN_BASE_URL", &echo.url)
            .setting("WAYPOST_ENCRYPTION_KEYS", &format!("7:{ENCRYPTION_KEY}"))
            .start()
            .await;
        let needles = [
            ("a recipient", RECIPIENT),
            ("a refused recipient", "canary-refused"),
            ("a suppressed address", SUPPRESSED),
            ("a sender", "canary.sender@example.com"),
            ("a sender's name", "Canary Sender"),
            ("a subject", SUBJECT),
            ("a body", BODY),
            ("a variable", VARIABLE),
            ("metadata", METADATA),
            ("a tag", TAG),
            ("an idempotency key", IDEMPOTENCY_KEY),
            ("a wrong API key", WRONG_KEY),
            ("SendGrid's key", SENDGRID_KEY),
            ("Postmark's token", POSTMARK_TOKEN),
            ("Mailgun's key", MAILGUN_KEY),
            ("the secret of SES", SES_SECRET),
            ("the key id of SES", SES_ID),
            ("an SMTP password", SMTP_PASSWORD),
            ("a webhook's token", HOOK_TOKEN),
            ("the encryption key", ENCRYPTION_KEY),
        ];
        let needles = needles.map(|(what, text)| Needle::new(what, text));
        Self {
            app,
            receiver: Receiver::start().await,
            echo,
            needles: needles.into(),
        }
    }

    fn hide(&mut self, what: &str, text: &str) {
        self.needles.push(Needle::new(what, text));
    }

    /// Keys: valid, wrong, and in wrong places.
    async fn keys(&mut self) {
        let app = &self.app;
        let key = app.key(app.organization_id(), &Permission::ALL).await;
        let caller = app.caller().with_key(&key);
        caller.get("/v1/messages").await.expect(200);
        let made = json!({ "name": "A key", "permissions": ["SEND"] });
        let made = caller.post("/v1/api-keys", &made).await.data(201);
        let wrong = caller.with_key(WRONG_KEY);
        wrong.get("/v1/messages").await;
        for path in [
            format!("/v1/messages?api_key={key}&search={SUBJECT}"),
            format!("/v1/{key}/nothing"),
            format!("/v1/provider-events/{}", &key[8..30]),
            format!("/v1/unsubscribe/{key}"),
            format!("/v1/t/c/{key}"),
        ] {
            caller.anonymous().get(&path).await;
        }
        let odd = caller.call(Method::POST, "/v1/send", |request| {
            request
                .header("authorization", format!("Basic {key}"))
                .header("cookie", format!("session={key}"))
                .header("user-agent", RECIPIENT)
                .body(format!("{{\"to\": \"{RECIPIENT}\", \"subject\": {SUBJECT}"))
        });
        odd.await;
        self.hide("an API key", &key);
        self.hide("an API key that was made", made["key"].as_str().unwrap());
    }

    /// Accounts with all five providers, and with wrong credentials.
    async fn accounts(&mut self) -> Vec<(ProviderType, String)> {
        let simulator = self.app.simulator();
        simulator.register_ses_credential(SES_ID, SES_SECRET);
        let mut accounts = Vec::new();
        for (kind, credentials) in [
            (ProviderType::Sendgrid, json!({ "apiKey": SENDGRID_KEY })),
            (
                ProviderType::Postmark,
                json!({ "serverToken": POSTMARK_TOKEN }),
            ),
            (
                ProviderType::Mailgun,
                json!({ "apiKey": MAILGUN_KEY, "domain": "example.com" }),
            ),
            (
                ProviderType::Ses,
                json!({ "accessKeyId": SES_ID, "secretAccessKey": SES_SECRET, "region": "eu-central-1" }),
            ),
            (
                ProviderType::Smtp,
                json!({ "host": "smtp.example.com", "username": "canary-user", "password": SMTP_PASSWORD }),
            ),
        ] {
            let id = self.app.connect_with(kind, &credentials).await;
            let account = self.app.get(&format!("/v1/providers/{id}")).await.data(200);
            if let Some(url) = account["webhookUrl"].as_str() {
                let token = url.rsplit('/').next().unwrap();
                self.hide("the token of an account", token);
            }
            accounts.push((kind, id));
        }
        for credentials in [
            json!({ "apiKey": format!("{SENDGRID_KEY}-invalid") }),
            json!({ "apiKey": format!("{SENDGRID_KEY}\r\nX: y") }),
        ] {
            let body = json!({ "providerType": "SENDGRID", "displayName": "Wrong", "credentials": credentials });
            let answer = self.app.post("/v1/providers", &body).await;
            assert!([400, 422].contains(&answer.status), "{answer:?}");
        }
        accounts
    }

    /// A rule for each account, so that each sends.
    async fn rules(&self, accounts: &[(ProviderType, String)]) {
        for (kind, id) in accounts {
            let rule = json!({ "name": format!("{kind}"), "providerAccountId": id, "tags": [kind.as_str()] });
            self.app.post("/v1/routing-rules", &rule).await.data(201);
            let path = format!("/v1/providers/{id}/event-webhook");
            self.app.caller().post_empty(&path).await;
        }
    }

    async fn webhooks(&mut self) {
        let url = format!("{}?token={HOOK_TOKEN}", self.receiver.url());
        let endpoint = json!({ "url": url, "events": ["QUEUED", "SENT", "DROPPED", "DELIVERED"] });
        let path = "/v1/webhook-endpoints";
        let made = self.app.post(path, &endpoint).await.data(201);
        self.hide("a webhook's secret", made["secret"].as_str().unwrap());
        let id = made["id"].as_str().unwrap();
        self.app
            .caller()
            .post_empty(&format!("{path}/{id}/test"))
            .await
            .expect(200);
        let nowhere = format!("http://127.0.0.1:1/{HOOK_TOKEN}");
        let nowhere = json!({ "url": nowhere, "events": ["SENT"] });
        self.app
            .post(path, &nowhere)
            .await
            .expect_error(422, "VALIDATION_ERROR");
        self.receiver.answer(Answer::Status(500));
    }

    /// A template, a group, and messages with them through every account.
    async fn mail(&mut self) {
        let app = &self.app;
        let text = |value: &Value| value["id"].as_str().unwrap().to_owned();
        let group = json!({ "name": "News" });
        let group = text(&app.post("/v1/unsubscribe-groups", &group).await.data(201));
        let template = json!({ "name": "Letter" });
        let template = text(&app.post("/v1/templates", &template).await.data(201));
        let html = format!(
            "<p>{BODY} {{{{word}}}} <a href=\"https://example.org/canary-target\">x</a></p>"
        );
        let version = json!({ "htmlContent": html, "textContent": BODY });
        let path = format!("/v1/templates/{template}/versions");
        app.post(&path, &version).await.data(201);
        for kind in ProviderType::ALL {
            for to in [
                RECIPIENT,
                REFUSED,
                "timeout-once+canary-refused@canary-mailbox.org",
            ] {
                let message = json!({
                    "from": SENDER, "to": format!("Canary Name <{to}>"), "subject": SUBJECT,
                    "templateId": template, "variables": { "word": VARIABLE },
                    "metadata": { "canary": METADATA }, "tags": [kind.as_str(), TAG],
                    "unsubscribeGroupId": group, "replyTo": "canary.recipient@canary-mailbox.org",
                });
                let key = format!("{IDEMPOTENCY_KEY}-{kind}-{to}");
                let sent = app.caller().call(Method::POST, "/v1/send", |request| {
                    request.header("idempotency-key", key).json(&message)
                });
                sent.await.expect(202);
            }
        }
        let batch =
            json!({ "messages": [{ "to": RECIPIENT }, { "to": format!("{RECIPIENT}\r\n") }] });
        app.post("/v1/emails/batch", &batch).await.expect(200);
        let suppression = json!({ "email": SUPPRESSED, "unsubscribeGroupId": group });
        app.post("/v1/suppressions", &suppression).await.data(201);
        app.post("/v1/suppressions", &suppression)
            .await
            .expect_error(409, "CONFLICT");
        let import =
            json!({ "emails": [SUPPRESSED, RECIPIENT.replace("recipient", "suppressed")] });
        app.post("/v1/suppressions/import", &import)
            .await
            .expect(200);
        wait_until("mail has arrived", async || {
            app.captured(RECIPIENT).len() >= 4
        })
        .await;
    }

    /// Follows the links in the received messages.
    async fn links(&mut self) {
        let copy = self.app.captured(RECIPIENT).remove(0);
        let html = copy.html.unwrap();
        let links: Vec<String> = html
            .split('"')
            .chain(copy.headers["List-Unsubscribe"].split(['<', '>']))
            .filter_map(|part| Some(part[part.find("/v1/")?..].to_owned()))
            .collect();
        assert!(links.len() >= 3, "{html}");
        for link in links {
            let anonymous = self.app.caller().anonymous();
            anonymous.get(&link).await;
            anonymous.get(&format!("{link}x")).await;
            let token = link.rsplit('/').next().unwrap();
            self.hide("the token of a link", token);
        }
    }

    /// Providers that repeat everything, forged posts, and servers that are down or
    /// broken.
    async fn trouble(&mut self, accounts: &[(ProviderType, String)]) {
        self.echo.reject_everything();
        for (kind, id) in accounts {
            let account = self.app.get(&format!("/v1/providers/{id}")).await.data(200);
            let caller = self.app.caller();
            caller
                .post_empty(&format!("/v1/providers/{id}/validate"))
                .await;
            let domain = json!({ "domain": "canary-domain.example.com" });
            self.app
                .post(&format!("/v1/providers/{id}/domains"), &domain)
                .await;
            let Some(url) = account["webhookUrl"].as_str() else {
                continue;
            };
            let path = &url[url.find("/v1/").unwrap()..];
            let forged =
                json!({ "email": RECIPIENT, "kind": kind, "signature": WRONG_KEY }).to_string();
            caller
                .anonymous()
                .post_raw(path, Some("application/json"), forged)
                .await;
        }
        let body = json!({
            "providerType": "MAILGUN", "displayName": "Told", "credentials": { "apiKey": MAILGUN_KEY, "domain": "example.com" },
        });
        self.app
            .post("/v1/providers", &body)
            .await
            .expect_error(503, "SERVICE_UNAVAILABLE");
        self.app
            .execute("ALTER TABLE message_bodies RENAME TO bodies_away")
            .await;
        let message = json!({ "from": SENDER, "to": RECIPIENT, "subject": SUBJECT, "html": BODY, "tags": ["SMTP"] });
        self.app
            .post("/v1/send", &message)
            .await
            .expect_error(500, "INTERNAL_ERROR");
        self.app
            .execute("ALTER TABLE bodies_away RENAME TO message_bodies")
            .await;
        self.app.redis.as_mut().unwrap().stop().await;
        self.app.post("/v1/send", &message).await.expect(202);
        self.app.redis.as_mut().unwrap().resume().await;
        wait_until("it is sent all the same", async || {
            self.app.captured(RECIPIENT).len() >= 5
        })
        .await;
    }
}

/// Runs the scenario at trace level and searches the logs.
async fn assert_logs_leak_nothing(format: &str) {
    let mut story = Story::begin(format).await;
    let mut all: Vec<Process> = vec![
        story.app.spawn_api().await,
        story.app.spawn_worker(),
        story.app.spawn_scheduler(),
    ];
    story.keys().await;
    let accounts = story.accounts().await;
    story.rules(&accounts).await;
    story.webhooks().await;
    story.mail().await;
    story.links().await;
    story.trouble(&accounts).await;
    story.app.leave_work();
    for process in &mut all {
        process.terminate().await;
    }
    let logs: Vec<String> = all.iter().map(Process::log).collect();
    // The processes did log at this level.
    assert!(logs[0].contains("DEBUG"), "{}", logs[0]);
    assert!(logs.iter().all(|log| log.contains("Stopping")));
    assert!(logs[0].contains("Answering 500") && logs[0].contains("Answering 503"));
    let found: Vec<String> = story
        .needles
        .iter()
        .flat_map(|needle| logs.iter().flat_map(|log| needle.found_in(log)))
        .collect();
    let shown: Vec<String> = found
        .iter()
        .take(40)
        .map(|line| line.chars().take(400).collect())
        .collect();
    assert!(
        found.is_empty(),
        "{} lines tell:\n{}",
        found.len(),
        shown.join("\n")
    );
}

#[tokio::test]
async fn trace_logs_contain_no_personal_data_and_no_secrets() {
    assert_logs_leak_nothing("text").await;
}

#[tokio::test]
async fn json_trace_logs_contain_no_personal_data_and_no_secrets() {
    assert_logs_leak_nothing("json").await;
}
