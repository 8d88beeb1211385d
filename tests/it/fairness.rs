//! Fairness between organizations: one organization's backlog or slow provider does not
//! delay another's messages. The tests check the order of arrival at the providers; they
//! only print times, since builds share the machine.

use std::time::Instant;

use chrono::TimeDelta;
use futures_util::future::join_all;
use serde_json::{Value, json};
use waypost_core::delivery::job::send_queue;
use waypost_core::job_queue::{Depth, QueueSettings};
use waypost_core::provider::kind::ProviderType;
use waypost_core::redis::Redis;
use waypost_core::secret::Secret;
use waypost_simulator::{Fault, Provider};
use waypost_tests::{
    Caller, Tenant, TestApp, credentials, message_to, redis_connection, wait_until,
};

/// Messages per batch.
const BATCH: usize = 1_000;
/// The default concurrency of a worker.
const SLOTS: usize = 256;

fn latency(provider: Provider, milliseconds: u64) -> Fault {
    Fault {
        provider: Some(provider),
        ..Fault::slow_sends(milliseconds)
    }
}

/// The busy organization's recipients, in the order of acceptance.
fn busy(number: usize) -> String {
    format!("busy{number}@example.org")
}

async fn send_batches(caller: &Caller, count: usize) {
    for batch in 0..count {
        let from = batch * BATCH;
        let messages: Vec<Value> = (from..from + BATCH)
            .map(|number| message_to(&busy(number)))
            .collect();
        let body = json!({ "messages": messages });
        caller.post("/v1/emails/batch", &body).await.expect(200);
    }
}

/// Another organization, with a provider of another type.
async fn other_organization(app: &TestApp) -> Tenant {
    let tenant = app.tenant("Stranger").await;
    let account = json!({
        "providerType": ProviderType::Postmark,
        "displayName": "An account",
        "credentials": credentials(ProviderType::Postmark),
    });
    let reply = tenant.caller.post("/v1/providers", &account).await;
    reply.expect(201);
    tenant
}

/// Sends the other organization's message and waits for it; returns how many messages of
/// the busy organization arrived between its acceptance and its arrival.
async fn overtaken_by(app: &TestApp, other_organization: &Tenant, address: &str) -> u64 {
    let message = message_to(address);
    let sent = Instant::now();
    other_organization
        .caller
        .post("/v1/send", &message)
        .await
        .expect(202);
    let before = app.simulator().captured_count();
    wait_until("the other organization's message has arrived", async || {
        !app.captured(address).is_empty()
    })
    .await;
    let overtaking = app.captured_once(address).sequence.saturating_sub(before);
    println!(
        "Another organization's message arrived {:?} after its request began, {overtaking} others before it",
        sent.elapsed()
    );
    overtaking
}

async fn depth(app: &TestApp) -> Depth {
    let url = app.variables["REDIS_URL"].clone();
    let redis = Redis::new(&Secret::from(url), &app.variables["WAYPOST_REDIS_PREFIX"]).unwrap();
    let queue = send_queue(&redis, app.clock.clone());
    queue.depth().await.unwrap()
}

async fn number(app: &TestApp, query: &str) -> i64 {
    app.value(query).await.unwrap().parse().unwrap()
}

#[tokio::test]
async fn messages_do_not_wait_for_another_organizations_backlog() {
    const BATCHES: usize = 20;
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let other_organization = other_organization(&app).await;
    app.simulator().set_fault(latency(Provider::SendGrid, 500));
    let callers: Vec<_> = (0..4).map(|_| app.caller()).collect();
    join_all(
        callers
            .into_iter()
            .map(|caller| send_batches(caller, BATCHES / 4)),
    )
    .await;
    let queued = number(&app, "SELECT count(*) FROM outbox").await;
    assert!(queued > 10_000, "only {queued} are left");
    let overtaking = overtaken_by(&app, &other_organization, "other@example.org").await;
    let most = QueueSettings::default().quota + SLOTS;
    assert!(overtaking <= most as u64, "{overtaking} overtook it");
    app.leave_work();
}

#[tokio::test]
async fn messages_do_not_wait_for_another_organizations_provider() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let other_organization = other_organization(&app).await;
    app.simulator()
        .set_fault(latency(Provider::SendGrid, 20_000));
    send_batches(app.caller(), 1).await;
    let open = "SELECT count(*) FROM send_attempts WHERE outcome IS NULL";
    wait_until("the busy one has its share of the worker", async || {
        number(&app, open).await == SLOTS as i64 * 3 / 4
    })
    .await;
    for nth in 0..20 {
        let address = format!("other{nth}@example.org");
        let overtaking = overtaken_by(&app, &other_organization, &address).await;
        assert_eq!(overtaking, 0);
    }
    app.simulator().clear_faults();
    app.leave_work();
}

#[tokio::test]
async fn an_organizations_messages_are_sent_roughly_in_order() {
    const BATCHES: usize = 3;
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    app.simulator().set_fault(latency(Provider::SendGrid, 50));
    send_batches(app.caller(), BATCHES).await;
    app.drain().await;
    // A batch is accepted in parallel parts, so its own order is not defined.
    let mut furthest = 0;
    for number in 0..BATCHES * BATCH {
        let arrived = app.captured_once(&busy(number)).sequence;
        let first = (number / BATCH * BATCH) as u64;
        let last = first + BATCH as u64 - 1;
        let early = first.saturating_sub(arrived);
        furthest = furthest.max(early).max(arrived.saturating_sub(last));
    }
    println!("The furthest was {furthest} places outside its batch");
    assert!(furthest <= 2 * SLOTS as u64);
}

#[tokio::test]
async fn messages_queued_when_redis_was_emptied_are_sent_once() {
    let app = TestApp::builder().private_redis().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let other_organization = other_organization(&app).await;
    app.simulator().set_fault(latency(Provider::SendGrid, 100));
    send_batches(app.caller(), 2).await;
    app.redis.as_ref().unwrap().flush().await;
    app.simulator().clear_faults();
    overtaken_by(&app, &other_organization, "other@example.org").await;
    app.advance(TimeDelta::seconds(2));
    app.drain().await;
    for number in 0..2 * BATCH {
        app.captured_once(&busy(number));
    }
}

#[tokio::test]
async fn a_backlog_is_not_pushed_again_and_hides_no_lost_job_of_others() {
    let app = TestApp::builder()
        .without_worker()
        .private_redis()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    let other_organization = other_organization(&app).await;
    send_batches(app.caller(), 2).await;
    let all = 2 * BATCH as u64;
    wait_until("the backlog is in Redis", async || {
        depth(&app).await.waiting == all
    })
    .await;
    // The other organization's job is pushed and lost.
    let message = message_to("other@example.org");
    other_organization
        .caller
        .post("/v1/send", &message)
        .await
        .expect(202);
    wait_until("the other organization's job is in Redis", async || {
        depth(&app).await.waiting == all + 1
    })
    .await;
    lose_jobs_of(&app, &other_organization).await;
    let accepted = app.clock.now();

    app.simulator()
        .set_fault(latency(Provider::SendGrid, 20_000));
    app.start_worker();
    app.advance(TimeDelta::minutes(5));
    wait_until("the lost job was found", async || {
        !app.captured("other@example.org").is_empty()
    })
    .await;
    let pushed_again = format!(
        "SELECT count(*) FROM outbox WHERE organization_id = '{}' AND wake_at > '{}'",
        app.organization_id(),
        (accepted + TimeDelta::minutes(1)).to_rfc3339(),
    );
    assert_eq!(number(&app, &pushed_again).await, 0);
    wait_until("Redis holds the backlog, once", async || {
        let depth = depth(&app).await;
        depth.waiting + depth.fetched == all
    })
    .await;
    app.leave_work();
}

/// Deletes an organization's jobs from the stream, as if they had never been pushed.
async fn lose_jobs_of(app: &TestApp, tenant: &Tenant) {
    let mut redis = redis_connection(&app.redis.as_ref().unwrap().url())
        .await
        .unwrap();
    let stream = format!("{{{}:send}}:s", app.variables["WAYPOST_REDIS_PREFIX"]);
    let mut entries = redis::cmd("XRANGE");
    entries.arg(&stream).arg("-").arg("+");
    let entries: Vec<(String, Vec<String>)> = entries.query_async(&mut redis).await.unwrap();
    let key = tenant.organization_id.to_string();
    let lost = entries.iter().filter(|(_, fields)| fields.contains(&key));
    for (id, _) in lost {
        let mut delete = redis::cmd("XDEL");
        delete.arg(&stream).arg(id);
        delete.query_async::<()>(&mut redis).await.unwrap();
    }
}
