//! The account limiter: when an account may be called, over all workers, with Redis and
//! without. A worker is one `AccountLimiter`; several share one Redis.
//!
//! Rates use the machine's clock, so the number of admitted calls is compared with the
//! elapsed time. Circuit breakers and pauses use the clock that the test moves.

#![expect(
    clippy::unwrap_used,
    reason = "in the helpers of tests, too, a panic is how a test fails"
)]

mod limits;
mod throttled;
mod trials;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use waypost_core::account_limiter::{
    AccountCall, AccountLimiter, AccountLimits, Acquired, Permit, Rejected, RejectedBy,
};
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::db;
use waypost_core::ids::{Ids, ProviderAccountId};
use waypost_core::provider::outcome::{AccountTrouble, Blame, SendOutcome};
use waypost_core::redis::Redis;
use waypost_tests::{RedisServer, TestApp, wait_until};

const NO_LIMITS: AccountLimits = AccountLimits {
    max_rate_per_second: None,
    max_concurrency: None,
};

/// Longer than a breaker stays open the first time.
const OPEN: TimeDelta = TimeDelta::seconds(7);

/// A Redis, and a clock that all workers share.
struct Fixture {
    server: RedisServer,
    clock: Clock,
    account: ProviderAccountId,
    stop: CancellationToken,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Fixture {
    async fn new() -> Self {
        Self {
            server: RedisServer::start().await,
            clock: Clock::manual(DateTime::from_timestamp(1_800_000_000, 0).unwrap()),
            account: Uuid::from_u128(7).into(),
            stop: CancellationToken::new(),
        }
    }

    /// A worker's limiter.
    fn worker(&self) -> Worker {
        self.worker_with_timeout("30s")
    }

    fn worker_with_timeout(&self, call_timeout: &str) -> Worker {
        let variables = [
            ("WAYPOST_PROVIDER_TIMEOUT", call_timeout),
            ("WAYPOST_ENV", "development"),
            ("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none"),
            ("REDIS_URL", &self.server.url()),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let settings = Settings::from_map(&variables.into()).unwrap();
        let limiter = AccountLimiter::start(
            Redis::new(&settings.redis_url, "test").unwrap(),
            &settings.sending,
            self.clock.clone(),
            Ids::new(self.clock.clone()),
            self.stop.clone(),
        );
        Worker {
            limiter,
            account: self.account,
        }
    }

    fn workers(&self) -> (Worker, Worker) {
        (self.worker(), self.worker())
    }
}

struct Worker {
    limiter: AccountLimiter,
    account: ProviderAccountId,
}

impl Worker {
    async fn acquire(&self, limits: AccountLimits) -> Result<Permit, Rejected> {
        self.acquire_with_revision(0, limits).await
    }

    /// The same for an account with this revision.
    async fn acquire_with_revision(
        &self,
        revision: u32,
        limits: AccountLimits,
    ) -> Result<Permit, Rejected> {
        let call = AccountCall {
            account: self.account,
            revision,
            limits,
            process_calls_max: None,
            domain: None,
        };
        self.acquire_for(call).await
    }

    async fn acquire_for(&self, call: AccountCall<'_>) -> Result<Permit, Rejected> {
        match self.limiter.acquire(call).await {
            Acquired::Granted(permit) => Ok(permit),
            Acquired::Rejected(refusal) => Err(refusal),
        }
    }

    /// A call of an SMTP account for a domain.
    fn call_for<'a>(&self, domain: &'a str) -> AccountCall<'a> {
        AccountCall {
            account: self.account,
            revision: 0,
            limits: NO_LIMITS,
            process_calls_max: None,
            domain: Some(domain),
        }
    }

    async fn permit(&self) -> Permit {
        self.acquire(NO_LIMITS).await.expect("a permit")
    }

    async fn rejected_by(&self) -> Option<RejectedBy> {
        self.acquire(NO_LIMITS)
            .await
            .err()
            .map(|refusal| refusal.by)
    }

    async fn call(&self, outcome: &SendOutcome) {
        self.permit().await.end(outcome);
    }

    async fn fail(&self, times: usize) {
        for _ in 0..times {
            self.call(&unavailable()).await;
        }
    }

    /// Waits until calls are rejected for this reason.
    async fn until_rejected_by(&self, by: RejectedBy) {
        wait_until("calls are rejected", async || {
            self.rejected_by().await == Some(by)
        })
        .await;
    }

    /// Waits until a call may be made.
    async fn next_permit(&self, limits: AccountLimits) -> Permit {
        let permit = RefCell::new(None);
        wait_until("a call is permitted", async || {
            let acquired = self.acquire(limits).await;
            *permit.borrow_mut() = acquired.ok();
            permit.borrow().is_some()
        })
        .await;
        permit.into_inner().expect("a permit, after waiting for it")
    }

    /// Waits until several calls may be made.
    async fn until_all_admitted(&self) {
        wait_until("several calls are permitted", async || {
            let acquired = (self.acquire(NO_LIMITS).await, self.acquire(NO_LIMITS).await);
            matches!(acquired, (Ok(_), Ok(_)))
        })
        .await;
    }
}

fn accepted() -> SendOutcome {
    SendOutcome::Accepted {
        provider_message_id: None,
    }
}

fn unavailable() -> SendOutcome {
    SendOutcome::Unavailable {
        retry_after: None,
        reason: "HTTP 500".to_owned(),
    }
}

fn throttled(seconds: u64) -> SendOutcome {
    SendOutcome::Throttled {
        retry_after: Some(Duration::from_secs(seconds)),
        reason: "HTTP 429".to_owned(),
    }
}

fn throttled_somehow() -> SendOutcome {
    SendOutcome::Throttled {
        retry_after: None,
        reason: "SMTP 421".to_owned(),
    }
}

fn deferred() -> SendOutcome {
    SendOutcome::Deferred {
        retry_after: None,
        reason: "SMTP 451".to_owned(),
    }
}

fn unusable() -> SendOutcome {
    SendOutcome::AccountUnusable {
        trouble: AccountTrouble::Permanent,
        retry_after: None,
        reason: "HTTP 401".to_owned(),
    }
}

fn rejected(blame: Blame) -> SendOutcome {
    SendOutcome::Rejected {
        reason: "HTTP 400".to_owned(),
        blame,
    }
}

fn concurrent(calls: u32) -> AccountLimits {
    AccountLimits {
        max_concurrency: Some(calls),
        ..NO_LIMITS
    }
}

fn per_second(calls: u32) -> AccountLimits {
    AccountLimits {
        max_rate_per_second: Some(calls),
        ..NO_LIMITS
    }
}

#[tokio::test]
async fn a_breaker_that_one_worker_opens_is_open_for_the_other() {
    let fixture = Fixture::new().await;
    let (one, other) = fixture.workers();
    other.call(&accepted()).await;
    one.fail(5).await;
    let refusal = one.acquire(NO_LIMITS).await.unwrap_err();
    assert_eq!(refusal.by, RejectedBy::Circuit);
    let bounds = Duration::from_secs(4)..=Duration::from_secs(6);
    assert!(bounds.contains(&refusal.wait), "{refusal:?}");
    other.until_rejected_by(RejectedBy::Circuit).await;
    // A worker that starts now reads it too.
    fixture
        .worker()
        .until_rejected_by(RejectedBy::Circuit)
        .await;
}

#[tokio::test]
async fn failures_of_all_workers_count_together_and_refused_mail_does_not_count() {
    let fixture = Fixture::new().await;
    let (one, other) = fixture.workers();
    for _ in 0..20 {
        one.call(&rejected(Blame::Recipient)).await;
        one.call(&deferred()).await;
    }
    assert_eq!(one.rejected_by().await, None);
    let fixture = Fixture::new().await;
    let (one_again, other_again) = fixture.workers();
    one_again.fail(3).await;
    other_again.fail(3).await;
    for worker in [&one_again, &other_again] {
        worker.until_rejected_by(RejectedBy::Circuit).await;
    }
    // Other prefixes and other accounts have keys of their own.
    assert_eq!(other.rejected_by().await, None);
}

#[tokio::test]
async fn a_pause_that_a_provider_names_holds_for_all_workers() {
    let fixture = Fixture::new().await;
    let (one, other) = fixture.workers();
    one.call(&throttled(10)).await;
    let refusal = one.acquire(NO_LIMITS).await.unwrap_err();
    assert_eq!(
        (refusal.by, refusal.wait),
        (RejectedBy::Pause, Duration::from_secs(10))
    );
    other.until_rejected_by(RejectedBy::Pause).await;
    fixture.clock.advance(TimeDelta::seconds(9));
    assert_eq!(other.rejected_by().await, Some(RejectedBy::Pause));
    fixture.clock.advance(TimeDelta::seconds(1));
    // After the pause no trial is needed; all workers continue at a lower rate.
    for worker in [&one, &other] {
        let _first = worker.permit().await;
        assert_eq!(worker.rejected_by().await, Some(RejectedBy::Throttled));
        worker.next_permit(NO_LIMITS).await.end(&accepted());
    }
}

#[tokio::test]
async fn an_account_that_cannot_send_is_rejected_for_all_until_a_trial_or_a_change_of_it() {
    let fixture = Fixture::new().await;
    let (one, other) = fixture.workers();
    other.call(&accepted()).await;
    // One call suffices.
    one.call(&unusable()).await;
    for worker in [&one, &other] {
        worker.until_rejected_by(RejectedBy::Unusable).await;
    }
    fixture.clock.advance(OPEN);
    one.next_permit(NO_LIMITS).await.end(&unusable());
    let refusal = one.acquire(NO_LIMITS).await.unwrap_err();
    assert!(
        refusal.wait >= Duration::from_secs(8),
        "it stays open for longer: {refusal:?}"
    );
    other.until_rejected_by(RejectedBy::Unusable).await;
    for worker in [&one, &other] {
        drop(worker.acquire_with_revision(1, NO_LIMITS).await.unwrap());
    }
    // The result of a call with the earlier credentials is outdated.
    let old = one.permit().await;
    one.call(&unusable()).await;
    drop(one.acquire_with_revision(2, NO_LIMITS).await.unwrap());
    old.end(&unusable());
    assert_eq!(one.rejected_by().await, None);
    // A worker that starts now does not use the earlier state either.
    fixture.worker().until_all_admitted().await;
}

#[tokio::test]
async fn workers_together_do_not_exceed_a_rate() {
    const RATE: u32 = 20;
    const CALLS: u32 = 40;
    let fixture = Fixture::new().await;
    let (one, other) = fixture.workers();
    let limits = per_second(RATE);
    let started = Instant::now();
    let calls = async |worker: &Worker| {
        for _ in 0..CALLS / 2 {
            worker.next_permit(limits).await.end(&accepted());
        }
    };
    tokio::join!(calls(&one), calls(&other));
    // Two calls may start at once: those of a tenth of a second.
    let soonest = Duration::from_secs(1) / RATE * (CALLS - 2);
    let tolerance = Duration::from_millis(20);
    let took = started.elapsed();
    assert!(took + tolerance >= soonest, "{took:?}");

    let mut waits = Vec::new();
    while waits.len() < 3 {
        if let Err(refusal) = one.acquire(per_second(1)).await {
            assert_eq!(refusal.by, RejectedBy::Rate);
            waits.push(refusal.wait);
        }
    }
    // Rejected calls come back one after the other.
    assert!(waits[1] > Duration::from_secs(1), "{waits:?}");
    assert!(waits[2] > Duration::from_secs(2), "{waits:?}");
}

#[tokio::test]
async fn workers_together_do_not_exceed_a_concurrency() {
    let fixture = Fixture::new().await;
    let (one, other) = fixture.workers();
    let limits = concurrent(3);
    let mut passes = Vec::new();
    for worker in [&one, &other, &one] {
        passes.push(worker.acquire(limits).await.unwrap());
    }
    for worker in [&one, &other] {
        let refusal = worker.acquire(limits).await.unwrap_err();
        assert_eq!(refusal.by, RejectedBy::Concurrency);
        assert!(refusal.wait < Duration::from_secs(1), "{refusal:?}");
    }
    // A slot is free again when its call ended, and when no call was made.
    passes.pop().unwrap().end(&accepted());
    drop(other.next_permit(limits).await);
    passes.pop();
    drop(other.next_permit(limits).await);
    let both = async || (other.acquire(limits).await, one.acquire(limits).await);
    wait_until("two places are free", async || {
        matches!(both().await, (Ok(_), Ok(_)))
    })
    .await;
}

#[tokio::test]
async fn the_slots_of_a_killed_worker_expire() {
    let fixture = Fixture::new().await;
    let doomed = fixture.worker_with_timeout("100ms");
    let heir = fixture.worker_with_timeout("100ms");
    let limits = concurrent(1);
    std::mem::forget(doomed.acquire(limits).await.unwrap());
    let refusal = heir.acquire(limits).await.unwrap_err();
    assert_eq!(refusal.by, RejectedBy::Concurrency);
    drop(heir.next_permit(limits).await);
}

#[tokio::test]
async fn a_redis_that_hangs_delays_one_call_and_not_each() {
    let fixture = Fixture::new().await;
    let worker = fixture.worker();
    let limits = AccountLimits {
        max_rate_per_second: Some(100_000),
        max_concurrency: Some(10_000),
    };
    let held = (
        worker.acquire(concurrent(2)).await.unwrap(),
        worker.acquire(concurrent(2)).await.unwrap(),
    );
    fixture.server.stall().await;
    let started = Instant::now();
    for _ in 0..200 {
        worker.acquire(limits).await.unwrap().end(&accepted());
    }
    let took = started.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    // Calls that ended while it hung release their slots when it answers again.
    drop(held);
    fixture.server.wake().await;
    let other = fixture.worker();
    wait_until("they share one place again", async || {
        let first = worker.acquire(concurrent(1)).await;
        let second = other.acquire(concurrent(1)).await;
        first.is_ok() && second.is_err()
    })
    .await;
    drop(other.next_permit(concurrent(1)).await);
}

#[tokio::test]
async fn while_redis_is_unreachable_each_worker_limits_alone() {
    let mut fixture = Fixture::new().await;
    let (one, other) = fixture.workers();
    for worker in [&one, &other] {
        worker
            .acquire(concurrent(2))
            .await
            .unwrap()
            .end(&accepted());
    }
    fixture.server.stop().await;
    let held = (
        one.acquire(concurrent(2)).await.unwrap(),
        one.acquire(concurrent(2)).await.unwrap(),
    );
    let refusal = one.acquire(concurrent(2)).await.unwrap_err();
    assert_eq!(refusal.by, RejectedBy::Concurrency);
    drop(held);
    drop(one.next_permit(concurrent(2)).await);
    let mut passed = 0;
    while let Ok(permit) = other.acquire(per_second(20)).await {
        permit.end(&accepted());
        passed += 1;
        assert!(passed < 100_000, "the rate is not kept");
    }
    one.fail(5).await;
    assert_eq!(one.rejected_by().await, Some(RejectedBy::Circuit));
    assert_eq!(other.rejected_by().await, None);
    fixture.clock.advance(OPEN);
    let trial = one.permit().await;
    assert_eq!(one.rejected_by().await, Some(RejectedBy::Circuit));
    trial.end(&unavailable());

    // Changes made meanwhile are written when Redis is back.
    fixture.server.resume().await;
    other.until_rejected_by(RejectedBy::Circuit).await;
    assert_eq!(one.rejected_by().await, Some(RejectedBy::Circuit));
}

#[tokio::test]
async fn an_open_breaker_stays_open_when_redis_loses_its_data() {
    let fixture = Fixture::new().await;
    let (one, other) = fixture.workers();
    one.call(&throttled(60)).await;
    other.until_rejected_by(RejectedBy::Pause).await;
    fixture.server.flush().await;
    fixture.server.forget_scripts().await;
    fixture.worker().until_rejected_by(RejectedBy::Pause).await;
    for worker in [&one, &other] {
        assert_eq!(worker.rejected_by().await, Some(RejectedBy::Pause));
    }
}

#[tokio::test]
async fn live_workers_share_the_limits_while_redis_is_unreachable() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    for (number, lives) in [(1, "1 hour"), (2, "1 hour"), (3, "-1 hour")] {
        let statement = format!(
            "INSERT INTO workers (id, name, started_at, leased_until)
             VALUES ('{}', 'w{number}', now(), now() + interval '{lives}')",
            Uuid::from_u128(number),
        );
        app.execute(&statement).await;
    }
    let mut fixture = Fixture::new().await;
    fixture.server.stop().await;
    let worker = fixture.worker();
    let settings = Settings::from_map(&app.variables).unwrap();
    let pool = db::pool(&settings.database_url, 1).unwrap();
    worker.limiter.count_workers(pool);
    let limits = concurrent(4);
    let two_pass_and_no_more = async || {
        let held = (worker.acquire(limits).await, worker.acquire(limits).await);
        let third = worker.acquire(limits).await;
        matches!(held, (Ok(_), Ok(_))) && third.is_err()
    };
    wait_until("half of the limit is left", two_pass_and_no_more).await;
    // Each worker has at least one call.
    assert!(worker.acquire(concurrent(1)).await.is_ok());
}
