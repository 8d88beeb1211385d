//! Rate limits: the documented defaults, which requests share a limit, and that Redis is
//! not required.
//!
//! Limits refill as time passes, so the number of accepted requests is compared with the
//! elapsed time: on a slow machine more requests are accepted, and the tests still pass.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream;
use http::Method;
use serde_json::json;
use uuid::Uuid;
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{AppBuilder, Caller, Reply, TestApp, message_to, wait_until};

const SENDS: &str = "WAYPOST_RATE_LIMIT_SEND_MAX";
const OTHERS: &str = "WAYPOST_RATE_LIMIT_OTHER_MAX";
const STRANGERS: &str = "WAYPOST_RATE_LIMIT_ANONYMOUS_PER_MINUTE";

fn quiet() -> AppBuilder {
    TestApp::builder().without_worker().without_scheduler()
}

/// With the documented default limits.
fn by_the_contract() -> AppBuilder {
    let quiet = quiet().setting(SENDS, "100").setting(OTHERS, "1000");
    quiet.setting(STRANGERS, "20")
}

/// A send that is counted and then rejected as invalid.
async fn empty_send(caller: &Caller) -> Reply {
    caller.post("/v1/send", &json!({})).await
}

async fn unknown_path(caller: &Caller) -> Reply {
    caller.get("/v1/nothing").await
}

async fn unknown_path_from(caller: &Caller, forwarded: &str) -> Reply {
    let from = |request: reqwest::RequestBuilder| request.header("x-forwarded-for", forwarded);
    caller.call(Method::GET, "/v1/nothing", from).await
}

fn limit_of(reply: &Reply) -> u32 {
    reply.rate().unwrap().0
}

/// Asserts that the response rejects a request at a limit of `limit`, with a
/// `Retry-After` of at most `wait_max` seconds.
fn expect_rejection(reply: &Reply, limit: u32, wait_max: u32) {
    let error = reply.expect_error(429, "RATE_LIMIT_EXCEEDED");
    assert!(error.get("details").is_none(), "{error}");
    let (told, left, reset) = reply.rate().unwrap();
    assert_eq!((told, left), (limit, 0));
    let wait: u32 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=wait_max).contains(&wait), "{reply:?}");
    assert!(reset >= wait, "{reply:?}");
}

/// Calls until a request is rejected; returns the rejection and the number of accepted
/// requests.
async fn until_rejected(call: impl AsyncFn() -> Reply) -> (Reply, u32) {
    for passed in 0..1_000 {
        let reply = call().await;
        if reply.status == 429 {
            return (reply, passed);
        }
    }
    panic!("nothing was refused");
}

/// Asserts that a limit of `limit` requests per `period` accepted its full size, and no
/// more than it refilled meanwhile.
fn assert_held(passed: u32, limit: u32, period: Duration, took: Duration) {
    let came_back = took.as_secs_f64() / period.as_secs_f64() * f64::from(limit);
    let max = f64::from(limit) + came_back.ceil();
    assert!(
        passed >= limit && f64::from(passed) <= max,
        "{passed} passed of {limit} in {period:?}; it took {took:?}"
    );
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

// --- defaults -------------------------------------------------------------------

#[tokio::test]
async fn every_response_names_the_limit_it_counts_against() {
    let app = by_the_contract().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let (limit, left, reset) = empty_send(app.caller()).await.rate().unwrap();
    assert_eq!((limit, left, reset), (100, 99, 1));
    let reply = app.post("/v1/send", &message_to("a@example.org")).await;
    reply.expect(202);
    assert_eq!(limit_of(&reply), 100);
    let none = app.key(app.organization_id(), &[]).await;
    let none = app.caller().with_key(&none);
    let raw = |kind: &'static str, body: &'static str| {
        app.caller().post_raw("/v1/providers", Some(kind), body)
    };
    let large = json!({ "displayName": "x".repeat(1 << 20) });
    let unverified = json!({ "name": "A rule", "providerAccountId": Uuid::nil() });
    for (reply, status) in [
        (app.get("/v1/messages").await, 200),
        (app.get("/v1/messages?page=0").await, 400),
        (none.get("/v1/messages").await, 403),
        (unknown_path(app.caller()).await, 404),
        (app.get("/v1/messages/nothing").await, 404),
        (app.get("/v1/send").await, 405),
        (app.post("/v1/providers", &large).await, 413),
        (raw("text/plain", "{}").await, 415),
        (app.post("/v1/routing-rules", &unverified).await, 422),
        // By the documentation a batch is not a send.
        (app.post("/v1/emails/batch", &json!({})).await, 400),
    ] {
        assert_eq!(reply.status, status, "{reply:?}");
        assert_eq!(limit_of(&reply), 1_000, "{reply:?}");
    }
    let anonymous = app.caller().anonymous();
    for (reply, status) in [
        (empty_send(&anonymous).await, 401),
        (unknown_path(&anonymous).await, 404),
        (anonymous.get("/v1/send").await, 405),
    ] {
        assert_eq!((reply.status, limit_of(&reply)), (status, 20), "{reply:?}");
    }
    app.leave_work();
}

#[tokio::test]
async fn the_remaining_count_falls_with_each_request_and_recovers() {
    let app = quiet().setting(STRANGERS, "20").start().await;
    let anonymous = app.caller().anonymous();
    let started = Instant::now();
    for nth in 1..=20 {
        let (limit, left, reset) = unknown_path(&anonymous).await.rate().unwrap();
        assert_eq!(limit, 20);
        assert!(reset <= nth * 3 && reset > 0, "{reset}");
        let came_back = u32::try_from(started.elapsed().as_secs() / 3).unwrap();
        assert!((20 - nth..=20 - nth + came_back).contains(&left), "{left}");
    }
}

#[tokio::test]
async fn a_hundred_sends_per_second_are_accepted_and_no_more() {
    let app = by_the_contract().start().await;
    let started = Instant::now();
    let sends = (0..400).map(|_| empty_send(app.caller()));
    let replies: Vec<Reply> = stream::iter(sends).buffer_unordered(64).collect().await;
    let took = started.elapsed();
    let (refused, passed): (Vec<&Reply>, Vec<&Reply>) =
        replies.iter().partition(|reply| reply.status == 429);
    assert!(passed.iter().all(|reply| reply.status == 400));
    assert_held(u32::try_from(passed.len()).unwrap(), 100, SECOND, took);
    for reply in refused {
        expect_rejection(reply, 100, 1);
    }
}

#[tokio::test]
async fn a_rejected_send_succeeds_after_the_wait_and_does_not_affect_other_requests() {
    let app = quiet()
        .setting(SENDS, "1")
        .setting(OTHERS, "500")
        .start()
        .await;
    let (refusal, _) = until_rejected(async || empty_send(app.caller()).await).await;
    expect_rejection(&refusal, 1, 1);
    app.get("/v1/messages").await.expect(200);
    app.post("/v1/emails/batch", &json!({ "messages": [{}] }))
        .await
        .expect(200);
    wait_until("a send passes again", async || {
        empty_send(app.caller()).await.status == 400
    })
    .await;
}

#[tokio::test]
async fn other_requests_have_a_limit_of_their_own() {
    let app = quiet()
        .setting(SENDS, "100")
        .setting(OTHERS, "2")
        .start()
        .await;
    let (refusal, _) = until_rejected(async || unknown_path(app.caller()).await).await;
    expect_rejection(&refusal, 2, 1);
    let (refusal, _) = until_rejected(async || app.get("/v1/messages").await).await;
    expect_rejection(&refusal, 2, 1);
    assert_eq!(empty_send(app.caller()).await.status, 400);
}

#[tokio::test]
async fn another_spelling_of_the_path_does_not_evade_the_limit_of_sends() {
    let app = by_the_contract().start().await;
    for path in [
        "/v1/%73end",
        "/v1/send/",
        "//v1/send",
        "/v1/./send",
        "/v1/send%2f",
        "/V1/SEND",
    ] {
        let reply = app.caller().post(path, &json!({})).await;
        // A path that is routed to the send counts as a send.
        assert!(
            reply.status == 404 || limit_of(&reply) == 100,
            "{path}: {reply:?}"
        );
    }
    let query = app.caller().post("/v1/send?x=1", &json!({})).await;
    assert_eq!((query.status, limit_of(&query)), (400, 100));
}

// --- organizations --------------------------------------------------------------

#[tokio::test]
async fn all_keys_of_an_organization_share_its_limits() {
    let app = quiet().setting(SENDS, "1").start().await;
    let other = app.tenant("Other").await;
    let key = app.key(app.organization_id(), &Permission::ALL).await;
    let colleague = app.caller().with_key(&key);
    let (refusal, _) = until_rejected(async || empty_send(app.caller()).await).await;
    expect_rejection(&refusal, 1, 1);
    assert_eq!(empty_send(&other.caller).await.status, 400);
    let (refusal, _) = until_rejected(async || {
        let own = empty_send(app.caller()).await;
        if own.status == 429 {
            empty_send(&colleague).await
        } else {
            own
        }
    })
    .await;
    expect_rejection(&refusal, 1, 1);
}

#[tokio::test]
async fn an_organizations_setting_is_soon_enforced_everywhere() {
    let app = by_the_contract().start().await;
    let other_api = app.start_another_api().await;
    let apis = [app.caller(), &other_api];
    for api in apis {
        assert_eq!(limit_of(&empty_send(api).await), 100);
    }
    let limits = |send: Option<u32>, other: Option<u32>| json!({ "rateLimits": { "sendPerSecond": send, "otherPerSecond": other } });
    for (send, other, told) in [
        (Some(3), Some(40), (3, 40)),
        (None, None, (100, 1_000)),
        (Some(100), Some(7), (100, 7)),
    ] {
        let settings = app.patch("/v1/settings", &limits(send, other)).await;
        settings.data(200);
        for api in apis {
            wait_until("the settings are enforced", async || {
                let found = (
                    limit_of(&empty_send(api).await),
                    limit_of(&unknown_path(api).await),
                );
                found == told
            })
            .await;
        }
    }
    let (refusal, _) = until_rejected(async || unknown_path(&other_api).await).await;
    expect_rejection(&refusal, 7, 1);
}

#[tokio::test]
async fn an_operators_limit_applies_to_earlier_settings() {
    let mut app = by_the_contract().start().await;
    let set = json!({ "rateLimits": { "sendPerSecond": 80, "otherPerSecond": 10 } });
    app.patch("/v1/settings", &set).await.data(200);
    for (name, value) in [(SENDS, "20"), (OTHERS, "200")] {
        app.variables.insert(name.to_owned(), value.to_owned());
    }
    let strict = app.start_another_api().await;
    assert_eq!(limit_of(&empty_send(&strict).await), 20);
    assert_eq!(limit_of(&unknown_path(&strict).await), 10);
}

// --- anonymous callers -------------------------------------------------------------

#[tokio::test]
async fn without_a_valid_key_an_address_has_twenty_requests_a_minute() {
    let app = by_the_contract().start().await;
    let anonymous = app.caller().anonymous();
    let wrong = anonymous.with_key(&format!("wp_live_{}", "x".repeat(32)));
    let other_wrong = anonymous.with_key("nonsense");
    let started = Instant::now();
    let nth = AtomicUsize::new(0);
    let (refusal, passed) = until_rejected(async || {
        let (caller, path, status) = match nth.fetch_add(1, Ordering::Relaxed) % 4 {
            0 => (&anonymous, "/v1/messages", 401),
            1 => (&wrong, "/v1/messages", 401),
            2 => (&other_wrong, "/v1/messages", 401),
            _ => (&anonymous, "/v1/nothing", 404),
        };
        let reply = caller.get(path).await;
        assert!([status, 429].contains(&reply.status), "{reply:?}");
        reply
    })
    .await;
    assert_held(passed, 20, MINUTE, started.elapsed());
    expect_rejection(&refusal, 20, 3);
    // Wrong keys do not evade it, and a request with a valid key is served.
    let (refusal, _) = until_rejected(async || wrong.get("/v1/messages").await).await;
    expect_rejection(&refusal, 20, 3);
    app.get("/v1/messages").await.expect(200);
    let fresh = app.key(app.organization_id(), &Permission::ALL).await;
    anonymous
        .with_key(&fresh)
        .get("/v1/messages")
        .await
        .expect(200);
}

#[tokio::test]
async fn public_paths_are_open_beyond_the_anonymous_limit() {
    let app = quiet().setting(STRANGERS, "1").start().await;
    let anonymous = app.caller().anonymous();
    until_rejected(async || unknown_path(&anonymous).await).await;
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs"] {
        for _ in 0..3 {
            let reply = anonymous.get(path).await;
            assert_eq!((reply.status, limit_of(&reply)), (200, 10_000), "{path}");
        }
    }
    // They used nothing of it, and a key makes no difference for them.
    assert_eq!(limit_of(&app.get("/healthz").await), 10_000);
    assert_eq!(limit_of(&unknown_path(&anonymous).await), 1);
}

#[tokio::test]
async fn an_unknown_path_below_a_public_one_counts_as_anonymous() {
    for (method, path) in [
        (Method::GET, "/v1/t/x/y/z"),
        (Method::DELETE, "/v1/unsubscribe/x"),
        (Method::GET, "/v1/provider-events/x"),
        (Method::HEAD, "/v1/t/o/x"),
    ] {
        let app = quiet().setting(STRANGERS, "1").start().await;
        let anonymous = app.caller().anonymous();
        let reply = anonymous.call(method, path, |request| request).await;
        assert_ne!(reply.status, 429, "{path}");
        assert_eq!(unknown_path(&anonymous).await.status, 429, "{path}");
    }
}

#[tokio::test]
async fn addresses_are_limited_separately_and_ipv6_by_its_network() {
    let app = quiet()
        .setting(STRANGERS, "1")
        .setting("WAYPOST_TRUSTED_PROXIES", "127.0.0.1")
        .start()
        .await;
    let anonymous = app.caller().anonymous();
    for (first, same, another) in [
        ("198.51.100.1", "1.1.1.1, 198.51.100.1", "198.51.100.2"),
        ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.2"),
        (
            "2001:db8:0:1::1",
            "2001:db8:0:1:ffff:ffff:ffff:ffff",
            "2001:db8:0:2::1",
        ),
    ] {
        assert_eq!(unknown_path_from(&anonymous, first).await.status, 404);
        let refusal = unknown_path_from(&anonymous, same).await;
        expect_rejection(&refusal, 1, 60);
        assert_eq!(unknown_path_from(&anonymous, another).await.status, 404);
    }
}

#[tokio::test]
async fn forwarded_addresses_of_untrusted_clients_are_ignored() {
    let app = quiet().setting(STRANGERS, "1").start().await;
    let anonymous = app.caller().anonymous();
    assert_eq!(unknown_path_from(&anonymous, "192.0.2.1").await.status, 404);
    let refusal = unknown_path_from(&anonymous, "192.0.2.2").await;
    expect_rejection(&refusal, 1, 60);
}

#[tokio::test]
async fn a_key_used_outside_its_networks_counts_as_anonymous() {
    let app = by_the_contract().start().await;
    let key = json!({ "name": "Elsewhere", "permissions": ["METRICS_READ"], "allowedIps": ["192.0.2.1"] });
    let key = app.post("/v1/api-keys", &key).await.data(201);
    let caller = app.caller().with_key(key["key"].as_str().unwrap());
    let reply = caller.get("/v1/messages").await;
    reply.expect_error(401, "AUTHENTICATION_ERROR");
    assert_eq!(limit_of(&reply), 20);
}

#[tokio::test]
async fn many_wrong_keys_do_not_block_a_valid_one() {
    let app = quiet().setting(STRANGERS, "20").start().await;
    let anonymous = app.caller().anonymous();
    let guesses = (0..400).map(async |nth| {
        let caller = anonymous.with_key(&format!("wp_live_{nth:032}"));
        caller.get("/v1/messages").await.status
    });
    let fresh = app.key(app.organization_id(), &Permission::ALL).await;
    let fresh = anonymous.with_key(&fresh);
    let (guessed, served) = tokio::join!(
        stream::iter(guesses)
            .buffer_unordered(100)
            .collect::<Vec<u16>>(),
        fresh.get("/v1/messages")
    );
    served.expect(200);
    assert!(guessed.iter().all(|status| [401, 429].contains(status)));
    assert!(
        guessed.contains(&401) && guessed.contains(&429),
        "{guessed:?}"
    );
}

#[tokio::test]
async fn while_postgres_is_down_no_caller_counts_as_anonymous() {
    let app = quiet()
        .setting(STRANGERS, "1")
        .setting(
            "DATABASE_URL",
            "postgres://nobody:nothing@127.0.0.1:1/nowhere",
        )
        .start()
        .await;
    let replies = join_all((0..5).map(|_| app.get("/v1/messages"))).await;
    for reply in replies {
        reply.expect_error(503, "SERVICE_UNAVAILABLE");
        assert_eq!(limit_of(&reply), 10_000);
    }
}

// --- Redis ----------------------------------------------------------------------

#[tokio::test]
async fn all_api_processes_share_one_limit() {
    let app = quiet()
        .setting(SENDS, "10")
        .setting(STRANGERS, "20")
        .start()
        .await;
    let apis = [app.caller().clone(), app.start_another_api().await];
    let started = Instant::now();
    let sends = (0..200).map(|nth| empty_send(&apis[nth % 2]));
    let replies: Vec<Reply> = stream::iter(sends).buffer_unordered(32).collect().await;
    let passed = replies.iter().filter(|reply| reply.status == 400).count();
    let took = started.elapsed();
    assert_held(u32::try_from(passed).unwrap(), 10, SECOND, took);
    let strangers = apis.map(|api| api.anonymous());
    let started = Instant::now();
    let calls = (0..60).map(|nth| unknown_path(&strangers[nth % 2]));
    let replies: Vec<Reply> = stream::iter(calls).buffer_unordered(32).collect().await;
    let passed = replies.iter().filter(|reply| reply.status == 404).count();
    let took = started.elapsed();
    assert_held(u32::try_from(passed).unwrap(), 20, MINUTE, took);
}

#[tokio::test]
async fn an_emptied_redis_resets_the_limits_and_continues() {
    let app = quiet()
        .setting(STRANGERS, "5")
        .private_redis()
        .start()
        .await;
    let redis = app.redis.as_ref().unwrap();
    let anonymous = app.caller().anonymous();
    let started = Instant::now();
    let (_, passed) = until_rejected(async || unknown_path(&anonymous).await).await;
    assert_held(passed, 5, MINUTE, started.elapsed());
    for _ in 0..2 {
        redis.forget_scripts().await;
        expect_rejection(&unknown_path(&anonymous).await, 5, 12);
        redis.flush().await;
        redis.forget_scripts().await;
        let started = Instant::now();
        let (_, passed) = until_rejected(async || unknown_path(&anonymous).await).await;
        assert_held(passed, 5, MINUTE, started.elapsed());
    }
}

#[tokio::test]
async fn while_redis_is_down_requests_are_served_and_limited_in_process() {
    let mut app = quiet()
        .setting(SENDS, "1000")
        .setting(OTHERS, "1")
        .setting(STRANGERS, "5")
        .private_redis()
        .start()
        .await;
    let apis = [app.caller().clone(), app.start_another_api().await];
    for api in &apis {
        assert_eq!(empty_send(api).await.status, 400);
    }
    app.redis.as_mut().unwrap().stop().await;
    let started = Instant::now();
    for api in &apis {
        for _ in 0..20 {
            let reply = empty_send(api).await;
            assert_eq!((reply.status, limit_of(&reply)), (400, 1_000));
        }
        let anonymous = api.anonymous();
        let (refusal, passed) = until_rejected(async || unknown_path(&anonymous).await).await;
        assert_held(passed, 5, MINUTE, started.elapsed());
        expect_rejection(&refusal, 5, 12);
    }
    app.redis.as_mut().unwrap().resume().await;
    // When both use Redis again, they share one limit: that of an organization that
    // neither has seen before.
    wait_until("both share a limit again", async || {
        let tenant = app.tenant("New").await;
        let key = app.key(tenant.organization_id, &[Permission::Send]).await;
        let [one, other] = [&apis[0], &apis[1]].map(|api| api.with_key(&key));
        unknown_path(&one).await.status == 404 && unknown_path(&other).await.status == 429
    })
    .await;
}

#[tokio::test]
async fn a_hanging_redis_delays_requests_once_and_not_each() {
    let app = quiet()
        .setting(STRANGERS, "1")
        .private_redis()
        .start()
        .await;
    let redis = app.redis.as_ref().unwrap();
    app.get("/v1/settings").await.expect(200);
    redis.stall().await;
    let started = Instant::now();
    for _ in 0..100 {
        app.get("/v1/settings").await.expect(200);
    }
    // If each request waited for Redis, that would take ten seconds.
    let took = started.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    let anonymous = app.caller().anonymous();
    until_rejected(async || unknown_path(&anonymous).await).await;
    redis.wake().await;
    // Redis has not counted those.
    wait_until("Redis keeps the limits again", async || {
        unknown_path(&anonymous).await.status == 404
    })
    .await;
}
