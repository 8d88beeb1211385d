//! Unsubscribe links in sent mail, and the result of following them.

mod bodies;
mod following;
mod pages;
mod tokens;

use chrono::TimeDelta;
use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::Captured;
use waypost_tests::{Caller, Reply, TestApp, message_to, to_hash, wait_until};

const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0";
const GROUPS: &str = "/v1/unsubscribe-groups";
const SUPPRESSIONS: &str = "/v1/suppressions";

async fn sending() -> TestApp {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    app
}

async fn group(app: &TestApp, name: &str) -> String {
    let group = app.post(GROUPS, &json!({ "name": name })).await.data(201);
    group["id"].as_str().unwrap().to_owned()
}

fn message_in(group: &str, to: &[&str]) -> Value {
    let mut message = message_to("");
    message["to"] = json!(to);
    message["unsubscribeGroupId"] = json!(group);
    message
}

/// Sends a message in a group to one recipient and advances the clock by a second. Returns the
/// message's id and its link.
async fn linked(app: &TestApp, group: &str, to: &str) -> (String, String) {
    let id = app.send(&message_in(group, &[to])).await;
    app.drain().await;
    // Events must be later than the sending.
    app.advance(TimeDelta::seconds(1));
    let copies = app.captured(to);
    (id, link_of(copies.last().unwrap()))
}

/// The link in the headers of a mail.
fn link_of(copy: &Captured) -> String {
    let header = &copy.headers["List-Unsubscribe"];
    let link = header
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'));
    link.unwrap_or_else(|| panic!("{header}")).to_owned()
}

/// The path of a link, for the harness.
fn path_of(link: &str) -> &str {
    let start = link.find("/v1/").unwrap_or_else(|| panic!("{link}"));
    &link[start..]
}

async fn follow(app: &TestApp, link: &str) -> Reply {
    follow_at(app.caller(), link).await
}

/// Follows a link with the headers of a browser.
async fn follow_at(caller: &Caller, link: &str) -> Reply {
    let caller = caller.anonymous();
    let call = |request: reqwest::RequestBuilder| request.header("user-agent", BROWSER);
    caller.call(Method::GET, path_of(link), call).await
}

async fn undo(app: &TestApp, link: &str) -> Reply {
    let path = format!("{}/undo", path_of(link));
    let caller = app.caller().anonymous();
    let form = Some("application/x-www-form-urlencoded");
    caller.post_raw(&path, form, "").await
}

/// All suppressions: the hash of the address, the group, the source.
async fn suppressions(app: &TestApp) -> Vec<(String, Value, String)> {
    let rows = app
        .get(&format!("{SUPPRESSIONS}?limit=100"))
        .await
        .data(200);
    let rows = rows.as_array().unwrap().iter().map(|row| {
        (
            row["emailHash"].as_str().unwrap().to_owned(),
            row["unsubscribeGroupId"].clone(),
            row["source"].as_str().unwrap().to_owned(),
        )
    });
    rows.collect()
}

/// The result of a `count(*)` query.
async fn count(app: &TestApp, of: &str) -> u64 {
    let count = app.value(&format!("SELECT count(*) FROM {of}")).await;
    count.unwrap().parse().unwrap()
}

/// Asserts that a page confirms an unsubscribe.
fn assert_unsubscribed(reply: &Reply) {
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.text.contains("You are unsubscribed"), "{reply:?}");
}

async fn everywhere_through(kind: ProviderType) {
    let app = TestApp::start().await;
    app.connect(kind).await;
    let (news, offers) = (group(&app, "News").await, group(&app, "Offers").await);
    let all = ["ada@example.org", "Bob <bob@example.org>"];
    app.send(&message_in(&news, &all)).await;
    app.drain().await;
    let (ada, bob) = (
        app.captured_once("ada@example.org"),
        app.captured_once("bob@example.org"),
    );
    for copy in [&ada, &bob] {
        let link = link_of(copy);
        assert_eq!(
            copy.headers["List-Unsubscribe-Post"],
            "List-Unsubscribe=One-Click"
        );
        let base = format!("http://{}/v1/unsubscribe/", app.variables["WAYPOST_LISTEN"]);
        assert!(link.starts_with(&base) && link.len() < 300, "{link}");
        let html = copy.html.as_deref().unwrap();
        assert!(html.starts_with("<p>Hello</p><p "), "{html}");
        assert!(
            html.contains(&format!("<a href=\"{link}\">Unsubscribe</a>")),
            "{html}"
        );
        let text = copy.text.as_deref().unwrap();
        assert_eq!(text.trim_end(), format!("Hello\n\nUnsubscribe: {link}"));
    }
    assert_ne!(link_of(&ada), link_of(&bob));
    assert_unsubscribed(&follow(&app, &link_of(&ada)).await);
    let expected = (
        to_hash("ada@example.org"),
        json!(news),
        "UNSUBSCRIBE".to_owned(),
    );
    assert_eq!(suppressions(&app).await, [expected]);
    let again = app.post("/v1/send", &message_in(&news, &all)).await;
    let again = again.expect(202);
    assert_eq!(
        (&again["suppressedCount"], &again["acceptedCount"]),
        (&json!(1), &json!(1))
    );
    app.send(&message_in(&offers, &["ada@example.org"])).await;
    app.drain().await;
    app.send_to("ada@example.org").await;
    app.drain().await;
    let copies = app.captured("ada@example.org");
    assert_eq!(
        (copies.len(), app.captured("bob@example.org").len()),
        (3, 2)
    );
    assert!(link_of(&copies[1]) != link_of(&ada));
    assert!(!copies[2].headers.contains_key("List-Unsubscribe"));
    assert!(!copies[2].headers.contains_key("List-Unsubscribe-Post"));
    assert_eq!(copies[2].html.as_deref(), Some("<p>Hello</p>"));
    assert_eq!(copies[2].text.as_deref(), Some("Hello"));
}

#[tokio::test]
async fn a_link_in_mail_through_sendgrid_suppresses_its_recipient_in_its_group() {
    everywhere_through(ProviderType::Sendgrid).await;
}

#[tokio::test]
async fn a_link_in_mail_through_postmark_suppresses_its_recipient_in_its_group() {
    everywhere_through(ProviderType::Postmark).await;
}

#[tokio::test]
async fn a_link_in_mail_through_mailgun_suppresses_its_recipient_in_its_group() {
    everywhere_through(ProviderType::Mailgun).await;
}

#[tokio::test]
async fn a_link_in_mail_through_ses_suppresses_its_recipient_in_its_group() {
    everywhere_through(ProviderType::Ses).await;
}

#[tokio::test]
async fn a_link_in_mail_through_smtp_suppresses_its_recipient_in_its_group() {
    everywhere_through(ProviderType::Smtp).await;
}

#[tokio::test]
async fn a_group_of_another_organization_is_refused() {
    let app = sending().await;
    let to = ["ada@example.org"];
    let theirs = app.tenant("Other").await.caller;
    let theirs = theirs.post(GROUPS, &json!({ "name": "Theirs" })).await;
    let theirs = theirs.data(201)["id"].as_str().unwrap().to_owned();
    for unknown in ["0193a1b2-0000-7000-8000-000000000000", &theirs] {
        let error = app
            .post("/v1/send", &message_in(unknown, &to))
            .await
            .expect_issues(422, &["unsubscribeGroupId"]);
        assert_eq!(error["details"]["reason"], "UNKNOWN_UNSUBSCRIBE_GROUP");
    }
    for malformed in [json!("no id"), json!(""), json!(7), json!([])] {
        let mut message = message_to(to[0]);
        message["unsubscribeGroupId"] = malformed;
        app.post("/v1/send", &message)
            .await
            .expect_issues(400, &["unsubscribeGroupId"]);
    }
    // Even if all recipients are suppressed.
    let _done = app
        .post(SUPPRESSIONS, &json!({ "email": to[0] }))
        .await
        .data(201);
    app.post("/v1/send", &message_in(&theirs, &to))
        .await
        .expect_issues(422, &["unsubscribeGroupId"]);
    let own = group(&app, "Own").await;
    let messages = [
        message_in(&theirs, &["bob@example.org"]),
        message_in(&own, &["bob@example.org"]),
    ];
    let body = json!({ "messages": messages });
    let body = app.post("/v1/emails/batch", &body).await.expect(200);
    let error = body["results"][0]["error"].as_str().unwrap();
    assert!(error.contains("unsubscribeGroupId"), "{error}");
    assert_eq!(body["results"][1]["status"], "queued");
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 1);
}

#[tokio::test]
async fn a_removed_group_is_refused_immediately_and_soon_by_other_api_processes() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let other = app.start_another_api().await;
    let news = group(&app, "News").await;
    let message = message_in(&news, &["ada@example.org"]);
    for caller in [app.caller(), &other] {
        caller.post("/v1/send", &message).await.expect(202);
    }
    let _removed = app.delete(&format!("{GROUPS}/{news}")).await.expect(200);
    app.post("/v1/send", &message)
        .await
        .expect_issues(422, &["unsubscribeGroupId"]);
    wait_until("the other API has noticed", async || {
        other.post("/v1/send", &message).await.status == 422
    })
    .await;
    app.leave_work();
}

#[tokio::test]
async fn a_recipient_who_unsubscribes_while_a_message_waits_is_not_sent_to() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let (news, offers) = (group(&app, "News").await, group(&app, "Offers").await);
    let to = ["ada@example.org", "bob@example.org"];
    let waiting = app.send(&message_in(&news, &to)).await;
    let other = app.send(&message_in(&offers, &to)).await;
    let suppressed = json!({ "email": to[0], "unsubscribeGroupId": news });
    let _done = app.post(SUPPRESSIONS, &suppressed).await.data(201);
    app.start_worker();
    app.drain().await;
    let recipients = app.recipients(&waiting).await;
    assert_eq!(
        (&recipients[0]["status"], &recipients[1]["status"]),
        (&json!("FAILED"), &json!("SENT"))
    );
    assert_eq!(app.status(&other).await, "SENT");
    assert_eq!(app.captured(to[0]).len(), 1);
}

#[tokio::test]
async fn a_link_of_a_removed_group_suppresses_for_all_mail() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let (news, offers) = (group(&app, "News").await, group(&app, "Offers").await);
    let id = app.send(&message_in(&news, &["ada@example.org"])).await;
    let _removed = app.delete(&format!("{GROUPS}/{news}")).await.expect(200);
    app.start_worker();
    app.drain().await;
    assert_eq!(app.status(&id).await, "SENT");
    let link = link_of(&app.captured_once("ada@example.org"));
    for _ in 0..2 {
        let page = follow(&app, &link).await;
        assert_unsubscribed(&page);
        assert!(
            page.text
                .contains("You will no longer receive messages from"),
            "{page:?}"
        );
        assert!(page.text.contains("Undo"), "{page:?}");
    }
    let expected = (
        to_hash("ada@example.org"),
        Value::Null,
        "UNSUBSCRIBE".to_owned(),
    );
    assert_eq!(suppressions(&app).await, [expected]);
    let message = message_in(&offers, &["ada@example.org"]);
    let reply = app.post("/v1/send", &message).await.expect(202);
    assert_eq!(reply["status"], "suppressed");
    assert!(undo(&app, &link).await.text.contains("subscribed again"));
    assert_eq!(suppressions(&app).await, []);
    app.send(&message).await;
    app.drain().await;
}

#[tokio::test]
async fn links_use_the_public_url_with_its_path() {
    let app = TestApp::builder()
        .setting("WAYPOST_PUBLIC_URL", "https://Mail.Example.com/waypost/")
        .start()
        .await;
    app.connect(ProviderType::Postmark).await;
    let news = group(&app, "News").await;
    let (_, link) = linked(&app, &news, "ada@example.org").await;
    assert!(
        link.starts_with("https://mail.example.com/waypost/v1/unsubscribe/"),
        "{link}"
    );
    let page = follow(&app, &link).await;
    assert_unsubscribed(&page);
    // The URL is relative to the page, so that it keeps the path of the public URL.
    let token = link.rsplit('/').next().unwrap();
    let form = format!("action=\"{token}/undo\"");
    assert!(page.text.contains(&form), "{page:?}");
    let again = undo(&app, &link).await;
    assert!(
        again.text.contains(&format!("action=\"../{token}\"")),
        "{again:?}"
    );
}

#[tokio::test]
async fn each_recipient_of_a_large_send_has_its_own_link() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let addresses: Vec<String> = (0..250).map(|n| format!("r{n}@example.org")).collect();
    let to: Vec<&str> = addresses.iter().map(String::as_str).collect();
    app.send(&message_in(&news, &to)).await;
    app.drain().await;
    let links = to.iter().map(|to| link_of(&app.captured_once(to)));
    let links: std::collections::HashSet<String> = links.collect();
    assert_eq!(links.len(), 250);
    let wanted = ["r7@example.org", "r107@example.org", "r249@example.org"];
    let followed = wanted.map(|to| link_of(&app.captured_once(to)));
    let pages = join_all(followed.iter().map(|link| follow(&app, link))).await;
    pages.iter().for_each(assert_unsubscribed);
    let mut found: Vec<String> = suppressions(&app)
        .await
        .into_iter()
        .map(|row| row.0)
        .collect();
    let mut expected = wanted.map(to_hash);
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}
