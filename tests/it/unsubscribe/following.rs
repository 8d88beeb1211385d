//! Following links: once, repeatedly, by one click, undoing, concurrently, and with invalid
//! tokens.

use std::time::Duration;

use chrono::TimeDelta;
use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use waypost_tests::{Caller, Reply, TestApp, event_types, redis_connection, to_hash, wait_until};

use super::{
    SUPPRESSIONS, assert_unsubscribed, count, follow, follow_at, group, link_of, linked,
    message_in, path_of, sending, suppressions, undo,
};

pub(super) const ADA: &str = "ada@example.org";
pub(super) const UNSUBSCRIBED: &str = "events WHERE event_type = 'UNSUBSCRIBED'";

pub(super) async fn head(caller: &Caller, link: &str) -> Reply {
    caller
        .anonymous()
        .call(Method::HEAD, path_of(link), |request| request)
        .await
}

/// Asserts that nothing has changed since the messages were sent.
pub(super) async fn assert_untouched(app: &TestApp) {
    assert_eq!(suppressions(app).await, []);
    assert_eq!(count(app, UNSUBSCRIBED).await, 0);
    assert_eq!(
        count(app, "audit_logs WHERE actor_type = 'recipient'").await,
        0
    );
}

/// Requests a link with one more header. An empty name adds none.
pub(super) async fn with_header(
    app: &TestApp,
    method: Method,
    link: &str,
    name: &str,
    value: &str,
) -> Reply {
    let caller = app.caller().anonymous();
    let call = |request: reqwest::RequestBuilder| request.header(name, value);
    caller.call(method, path_of(link), call).await
}

#[tokio::test]
async fn opening_a_link_unsubscribes_people_and_one_click_unsubscribes_always() {
    let app = sending().await;
    let news = group(&app, "News").await;
    for (method, name) in [
        (
            Method::GET,
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
        ),
        (
            Method::GET,
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 GSA/400.0",
        ),
        (
            Method::GET,
            "Mozilla/5.0 (Linux; Android 14; SM-S918B; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/129.0.0.0 Mobile Safari/537.36 [FB_IAB/FB4A]",
        ),
        (Method::POST, "curl/8.5.0"),
        (Method::POST, ""),
        (
            Method::POST,
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        ),
    ] {
        let (_, link) = linked(&app, &news, ADA).await;
        let reply = with_header(&app, method, &link, "User-Agent", name).await;
        assert_unsubscribed(&reply);
        assert_eq!(undo(&app, &link).await.status, 200);
    }
}

#[tokio::test]
async fn head_requests_and_prefetches_do_nothing() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let (_, link) = linked(&app, &news, ADA).await;
    let reply = head(app.caller(), &link).await;
    assert_eq!((reply.status, reply.text.as_str()), (200, ""), "{reply:?}");
    assert_eq!(head(app.caller(), &format!("{link}x")).await.status, 400);
    // These requests are not page visits.
    for (name, value) in [
        ("Sec-Purpose", "prefetch;prerender"),
        ("Purpose", "prefetch"),
        ("X-Moz", "prefetch"),
        ("X-Purpose", "preview"),
        ("Sec-Fetch-Dest", "empty"),
        ("Sec-Fetch-Dest", "image"),
        ("User-Agent", ""),
        ("User-Agent", "Mozilla/5.0"),
        (
            "User-Agent",
            "Mozilla/5.0 (compatible; Proofpoint URL Defense)",
        ),
        ("User-Agent", "BarracudaCentral/1.0"),
        ("User-Agent", "Mimecast"),
        (
            "User-Agent",
            "Mozilla/5.0 (Windows NT 6.1; WOW64) AppleWebKit/534+ (KHTML, like Gecko) BingPreview/1.0b",
        ),
        (
            "User-Agent",
            "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
        ),
        ("User-Agent", "facebookexternalhit/1.1"),
        ("User-Agent", "curl/8.5.0"),
        ("User-Agent", "Wget/1.21.4"),
        ("User-Agent", "python-requests/2.32.3"),
        ("User-Agent", "Go-http-client/1.1"),
    ] {
        for (link, status) in [(link.clone(), 200), (format!("{link}x"), 400)] {
            let reply = with_header(&app, Method::GET, &link, name, value).await;
            assert_eq!(reply.status, status, "{name} {value}: {reply:?}");
            let has_button = reply.text.contains("<form method=\"post\" action=");
            assert_eq!(has_button, status == 200, "{reply:?}");
            assert_eq!(reply.text.contains("<bdi>News</bdi>"), status == 200);
        }
    }
    assert_untouched(&app).await;
    assert_unsubscribed(&follow(&app, &link).await);
    assert_eq!(head(app.caller(), &link).await.status, 200);
    assert_eq!(suppressions(&app).await.len(), 1);
}

#[tokio::test]
async fn following_a_link_again_in_any_way_changes_nothing() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let id = app
        .send(&message_in(&news, &["bob@example.org", ADA]))
        .await;
    app.drain().await;
    let link = link_of(&app.captured_once(ADA));
    app.advance(TimeDelta::minutes(5));
    let first = follow(&app, &link).await;
    assert_unsubscribed(&first);
    app.advance(TimeDelta::minutes(5));
    let caller = app.caller().anonymous();
    let path = path_of(&link);
    let form = Some("application/x-www-form-urlencoded");
    for reply in [
        follow(&app, &link).await,
        caller
            .post_raw(path, form, "List-Unsubscribe=One-Click")
            .await,
        caller.post_empty(path).await,
    ] {
        assert_eq!((reply.status, &reply.text), (200, &first.text));
    }
    assert_eq!(suppressions(&app).await.len(), 1);
    assert_eq!(
        app.events(&id).await,
        ["QUEUED", "SENT", "SENT", "UNSUBSCRIBED"]
    );
    let recipients = app.recipients(&id).await;
    assert_eq!(event_types(&recipients[0]), ["QUEUED", "SENT"]);
    assert_eq!(
        event_types(&recipients[1]),
        ["QUEUED", "SENT", "UNSUBSCRIBED"]
    );
    assert_eq!(recipients[1]["status"], "SENT");
    assert_eq!(app.status(&id).await, "SENT");
    assert_eq!(
        count(&app, "audit_logs WHERE actor_type = 'recipient'").await,
        1
    );
    let entries = "SELECT entries FROM suppression_filters";
    assert_eq!(app.value(entries).await.as_deref(), Some("1"));
}

#[tokio::test]
async fn one_click_accepts_any_body() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let caller = app.caller().anonymous();
    let bodies: [(Option<&str>, &[u8]); 6] = [
        (
            Some("application/x-www-form-urlencoded"),
            b"List-Unsubscribe=One-Click",
        ),
        (
            Some("multipart/form-data; boundary=x"),
            b"--x\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--x--\r\n",
        ),
        (Some("application/json"), b"{"),
        (Some("no content type at all"), b"\xff\xfe"),
        (None, b""),
        (None, &[b'x'; 100_000]),
    ];
    for (number, (kind, body)) in bodies.into_iter().enumerate() {
        let (_, link) = linked(&app, &news, &format!("r{number}@example.org")).await;
        let reply = caller.post_raw(path_of(&link), kind, body).await;
        assert_unsubscribed(&reply);
        assert_eq!(suppressions(&app).await.len(), number + 1);
    }
}

#[tokio::test]
async fn an_unsubscribe_and_its_undo_are_audited() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let (message, link) = linked(&app, &news, ADA).await;
    let caller = app.caller().anonymous();
    let reply = caller
        .call(Method::GET, path_of(&link), |request| {
            request.header("user-agent", "A mail program")
        })
        .await;
    assert_unsubscribed(&reply);
    let suppression = app.get(SUPPRESSIONS).await.data(200);
    let suppression = suppression[0]["id"].as_str().unwrap();
    let undone = undo(&app, &link).await;
    let entries = app.get("/v1/audit-logs?limit=2").await.data(200);
    let entry = |place: usize, action: &str, reply: &Reply, user_agent: Value| {
        json!({
            "id": entries[place]["id"],
            "organizationId": app.organization_id().to_string(),
            "action": action,
            "occurredAt": entries[place]["occurredAt"],
            "actor": { "type": "recipient", "id": null, "name": null },
            "target": { "type": "suppression", "id": suppression },
            "context": { "ip": "127.0.0.1", "userAgent": user_agent, "requestId": reply.header("x-request-id").unwrap() },
            "metadata": { "source": "UNSUBSCRIBE", "unsubscribeGroupId": news, "messageId": message },
        })
    };
    let agent = json!("A mail program");
    assert_eq!(
        entries[0],
        entry(0, "suppression.deleted", &undone, Value::Null)
    );
    assert_eq!(entries[1], entry(1, "suppression.created", &reply, agent));
}

#[tokio::test]
async fn an_unsubscribe_can_be_undone_and_repeated() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let (id, link) = linked(&app, &news, ADA).await;
    // Undo before the unsubscribe, and twice after it.
    for times in 0..3 {
        if times == 1 {
            assert_unsubscribed(&follow(&app, &link).await);
        }
        let reply = undo(&app, &link).await;
        assert_eq!(reply.status, 200);
        assert!(reply.text.contains("You are subscribed again"), "{reply:?}");
        assert_eq!(suppressions(&app).await, []);
    }
    assert_eq!(
        count(&app, "audit_logs WHERE actor_type = 'recipient'").await,
        2
    );
    linked(&app, &news, ADA).await;
    assert_unsubscribed(&follow(&app, &link).await);
    assert_eq!(suppressions(&app).await.len(), 1);
    assert_eq!(
        app.events(&id).await,
        ["QUEUED", "SENT", "UNSUBSCRIBED", "UNSUBSCRIBED"]
    );
    let message = message_in(&news, &[ADA]);
    let reply = app.post("/v1/send", &message).await.expect(202);
    assert_eq!(reply["status"], "suppressed");
}

#[tokio::test]
async fn undo_keeps_suppressions_of_other_sources() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let (id, link) = linked(&app, &news, ADA).await;
    let grouped = json!({ "email": ADA, "unsubscribeGroupId": news, "source": "MANUAL" });
    let _done = app.post(SUPPRESSIONS, &grouped).await.data(201);
    // The recipient sees the same page, but cannot undo a suppression of another source.
    let page = follow(&app, &link).await;
    assert_unsubscribed(&page);
    assert!(!page.text.contains("<form"), "{page:?}");
    assert_eq!(app.events(&id).await, ["QUEUED", "SENT"]);
    let held = undo(&app, &link).await;
    assert_eq!(held.status, 200);
    assert!(
        held.text.contains("You will still not receive messages"),
        "{held:?}"
    );
    let manual = (to_hash(ADA), json!(news), "MANUAL".to_owned());
    assert_eq!(suppressions(&app).await, [manual]);
    // The same with a suppression for all mail.
    let (_, link) = linked(&app, &news, "bob@example.org").await;
    assert_unsubscribed(&follow(&app, &link).await);
    let bounce = json!({ "email": "bob@example.org", "source": "BOUNCE" });
    let _done = app.post(SUPPRESSIONS, &bounce).await.data(201);
    let held = undo(&app, &link).await;
    assert!(
        held.text.contains("You will still not receive messages"),
        "{held:?}"
    );
    let left = suppressions(&app).await;
    let bounce = (to_hash("bob@example.org"), Value::Null, "BOUNCE".to_owned());
    assert!(left.len() == 2 && left.contains(&bounce), "{left:?}");
}

#[tokio::test]
async fn concurrent_requests_to_two_api_processes_unsubscribe_once() {
    let app = sending().await;
    let other = app.start_another_api().await.anonymous();
    let own = app.caller().anonymous();
    let news = group(&app, "News").await;
    let (id, link) = linked(&app, &news, ADA).await;
    let (link, path) = (link.as_str(), path_of(&link));
    for _ in 0..3 {
        let calls = (0..24).map(|number| {
            let caller = [&own, &other][number % 2];
            async move {
                if number % 3 == 0 {
                    caller.post_empty(path).await
                } else {
                    follow_at(caller, link).await
                }
            }
        });
        join_all(calls).await.iter().for_each(assert_unsubscribed);
    }
    assert_eq!(suppressions(&app).await.len(), 1);
    assert_eq!(app.events(&id).await, ["QUEUED", "SENT", "UNSUBSCRIBED"]);
    let recorded = "audit_logs WHERE actor_type = 'recipient'";
    assert_eq!(count(&app, recorded).await, 1);
    let entries = "SELECT entries FROM suppression_filters";
    assert_eq!(app.value(entries).await.as_deref(), Some("1"));
    let undone = join_all((0..12).map(|number| {
        let caller = [&own, &other][number % 2];
        let path = format!("{path}/undo");
        async move { caller.post_empty(&path).await }
    }));
    for reply in undone.await {
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    assert_eq!(suppressions(&app).await, []);
    assert_eq!(count(&app, recorded).await, 2);
    assert_eq!(app.value(entries).await.as_deref(), Some("0"));
}

#[tokio::test]
async fn a_group_removed_while_its_links_are_followed_leaves_one_suppression_per_recipient() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let all: Vec<String> = (0..20).map(|n| format!("r{n}@example.org")).collect();
    let to: Vec<&str> = all.iter().map(String::as_str).collect();
    app.send(&message_in(&news, &to)).await;
    app.drain().await;
    let links: Vec<String> = to
        .iter()
        .map(|to| link_of(&app.captured_once(to)))
        .collect();
    let path = format!("/v1/unsubscribe-groups/{news}");
    let follow_all = || join_all(links.iter().map(|link| follow(&app, link)));
    let (pages, removed) = futures_util::join!(follow_all(), app.delete(&path));
    removed.expect(200);
    pages.iter().for_each(assert_unsubscribed);
    // The group's suppressions were removed with it. Following a link again suppresses for all mail.
    follow_all().await.iter().for_each(assert_unsubscribed);
    let found = suppressions(&app).await;
    assert_eq!(found.len(), 20);
    assert!(found.iter().all(|row| row.1.is_null()), "{found:?}");
    let entries = "SELECT entries FROM suppression_filters";
    assert_eq!(app.value(entries).await.as_deref(), Some("20"));
}

#[tokio::test]
async fn without_postgres_a_page_asks_to_try_again() {
    let mut app = sending().await;
    let news = group(&app, "News").await;
    let (_, link) = linked(&app, &news, ADA).await;
    app.variables.insert(
        "DATABASE_URL".to_owned(),
        "postgres://nobody:canary-password@127.0.0.1:1/nowhere".to_owned(),
    );
    let cut_off = app.start_another_api().await.anonymous();
    let undo = format!("{}/undo", path_of(&link));
    for reply in [
        follow_at(&cut_off, &link).await,
        cut_off.post_empty(&undo).await,
    ] {
        assert_eq!(reply.status, 503, "{reply:?}");
        assert!(reply.header("retry-after").is_some(), "{reply:?}");
        let kind = reply.header("content-type").unwrap();
        assert!(kind.starts_with("text/html"), "{kind}");
        assert!(!reply.text.contains("canary"), "{reply:?}");
    }
    // HEAD requests and invalid tokens need no Postgres.
    assert_eq!(head(&cut_off, &link).await.status, 200);
    assert_eq!(cut_off.get("/v1/unsubscribe/x").await.status, 400);
    assert_untouched(&app).await;
}

#[tokio::test]
async fn an_unsubscribe_is_added_to_the_filter_in_redis() {
    let app = TestApp::builder().private_redis().start().await;
    app.connect(waypost_core::provider::kind::ProviderType::Sendgrid)
        .await;
    let news = group(&app, "News").await;
    let (_, link) = linked(&app, &news, ADA).await;
    let many: Vec<String> = (0..3_000).map(|n| format!("r{n}@example.org")).collect();
    let many = json!({ "emails": many });
    let _done = app
        .post(&format!("{SUPPRESSIONS}/import"), &many)
        .await
        .data(200);
    let connection = redis_connection(&app.variables["REDIS_URL"]).await.unwrap();
    let key = format!(
        "{}:suppressions:{{{}}}",
        app.variables["WAYPOST_REDIS_PREFIX"],
        app.organization_id()
    );
    // Header words: additions and completeness.
    let word = async |number: usize| -> i64 {
        let words: Vec<i64> = redis::cmd("BITFIELD_RO")
            .arg(&key)
            .arg(&["GET", "i64", &format!("#{number}")])
            .query_async(&mut connection.clone())
            .await
            .unwrap();
        words[0]
    };
    // More recipients than the INSERT checks itself.
    let crowd: Vec<String> = (0..101).map(|n| format!("r{n}@example.org")).collect();
    let crowd: Vec<&str> = crowd.iter().map(String::as_str).collect();
    let message = message_in(&news, &crowd);
    wait_until("the filter is built", async || {
        let reply = app.post("/v1/send", &message).await.expect(202);
        assert_eq!(reply["status"], "suppressed");
        word(2).await == 1
    })
    .await;
    assert_eq!(word(1).await, 0);
    assert_unsubscribed(&follow(&app, &link).await);
    assert_unsubscribed(&follow(&app, &link).await);
    assert_eq!(word(1).await, 1);
    let crowd: Vec<&str> = crowd.into_iter().chain([ADA]).collect();
    let reply = app.post("/v1/send", &message_in(&news, &crowd)).await;
    assert_eq!(reply.expect(202)["status"], "suppressed");
}

#[tokio::test]
async fn tokens_and_addresses_stay_out_of_the_logs() {
    let app = TestApp::builder()
        .processes()
        .setting("WAYPOST_LOG", "debug")
        .start()
        .await;
    let api = app.spawn_api().await;
    let worker = app.spawn_worker();
    app.connect(waypost_core::provider::kind::ProviderType::Sendgrid)
        .await;
    let news = group(&app, "News").await;
    app.send(&message_in(&news, &[ADA])).await;
    app.drain_within(Duration::from_secs(30)).await;
    let link = link_of(&app.captured_once(ADA));
    let token = link.rsplit('/').next().unwrap();
    assert_unsubscribed(&follow(&app, &link).await);
    assert_eq!(follow(&app, &format!("{link}x")).await.status, 400);
    assert_eq!(undo(&app, &link).await.status, 200);
    assert_eq!(app.delete(path_of(&link)).await.status, 405);
    for log in [api.log(), worker.log()] {
        assert!(log.len() > 100, "{log}");
        assert!(!log.contains(&token[..40]), "{log}");
        assert!(!log.contains(&token[token.len() - 40..]), "{log}");
        assert!(!log.contains(ADA), "{log}");
    }
}
