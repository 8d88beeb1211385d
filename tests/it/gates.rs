//! Gates: when an account may be called, over all workers, with Redis and without.
//! A worker is one `AccountLimiter`; several share one Redis.
//!
//! Pace is by the machine's clock, so what passes is compared with the time that it
//! took. Circuits and pauses are by the clock that the test moves.

mod limits;
mod throttled;

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

/// Longer than a circuit that opened once is open.
const OPEN: TimeDelta = TimeDelta::seconds(7);

/// A Redis, and a clock that all workers share.
struct House {
    server: RedisServer,
    clock: Clock,
    account: ProviderAccountId,
    stop: CancellationToken,
}

impl Drop for House {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl House {
    async fn new() -> Self {
        Self {
            server: RedisServer::start().await,
            clock: Clock::manual(DateTime::from_timestamp(1_800_000_000, 0).unwrap()),
            account: Uuid::from_u128(7).into(),
            stop: CancellationToken::new(),
        }
    }

    /// A worker's gates.
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
        let gates = AccountLimiter::start(
            Redis::new(&settings.redis_url, "test").unwrap(),
            &settings.sending,
            self.clock.clone(),
            Ids::new(self.clock.clone()),
            self.stop.clone(),
        );
        Worker {
            gates,
            account: self.account,
        }
    }

    fn workers(&self) -> (Worker, Worker) {
        (self.worker(), self.worker())
    }
}

struct Worker {
    gates: AccountLimiter,
    account: ProviderAccountId,
}

impl Worker {
    async fn enter(&self, limits: AccountLimits) -> Result<Permit, Rejected> {
        self.enter_after(0, limits).await
    }

    /// The same of an account that was mended so often.
    async fn enter_after(&self, revision: u32, limits: AccountLimits) -> Result<Permit, Rejected> {
        let call = AccountCall {
            account: self.account,
            revision,
            limits,
            calls_max: None,
            domain: None,
        };
        self.enter_for(call).await
    }

    async fn enter_for(&self, call: AccountCall<'_>) -> Result<Permit, Rejected> {
        match self.gates.enter(call).await {
            Acquired::Go(pass) => Ok(pass),
            Acquired::Rejected(closed) => Err(closed),
        }
    }

    /// A call of a mail server's account for a domain.
    fn call_for<'a>(&self, domain: &'a str) -> AccountCall<'a> {
        AccountCall {
            account: self.account,
            revision: 0,
            limits: NO_LIMITS,
            calls_max: None,
            domain: Some(domain),
        }
    }

    async fn pass(&self) -> Permit {
        self.enter(NO_LIMITS).await.expect("the gate is open")
    }

    async fn closed_by(&self) -> Option<RejectedBy> {
        self.enter(NO_LIMITS).await.err().map(|closed| closed.by)
    }

    async fn call(&self, outcome: &SendOutcome) {
        self.pass().await.end(outcome);
    }

    async fn fail(&self, times: usize) {
        for _ in 0..times {
            self.call(&unavailable()).await;
        }
    }

    /// Waits until the gate is closed by this.
    async fn until_closed_by(&self, by: RejectedBy) {
        wait_until("the gate is closed", async || {
            self.closed_by().await == Some(by)
        })
        .await;
    }

    /// Waits until a call may be made.
    async fn next_pass(&self, limits: AccountLimits) -> Permit {
        let pass = RefCell::new(None);
        wait_until("the gate is open", async || {
            let entered = self.enter(limits).await;
            *pass.borrow_mut() = entered.ok();
            pass.borrow().is_some()
        })
        .await;
        pass.into_inner().expect("it was waited for")
    }

    /// Waits until several calls may be made.
    async fn until_all_pass(&self) {
        wait_until("all pass", async || {
            let entered = (self.enter(NO_LIMITS).await, self.enter(NO_LIMITS).await);
            matches!(entered, (Ok(_), Ok(_)))
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
        trouble: AccountTrouble::UntilMended,
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

fn at_once(calls: u32) -> AccountLimits {
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
async fn a_circuit_that_one_worker_opens_is_open_for_the_other() {
    let house = House::new().await;
    let (one, other) = house.workers();
    other.call(&accepted()).await;
    one.fail(5).await;
    let closed = one.enter(NO_LIMITS).await.unwrap_err();
    assert_eq!(closed.by, RejectedBy::Circuit);
    let bounds = Duration::from_secs(4)..=Duration::from_secs(6);
    assert!(bounds.contains(&closed.wait), "{closed:?}");
    other.until_closed_by(RejectedBy::Circuit).await;
    // A worker that starts now learns of it too.
    house.worker().until_closed_by(RejectedBy::Circuit).await;
}

#[tokio::test]
async fn failures_of_all_workers_count_together_and_refusals_of_mail_do_not() {
    let house = House::new().await;
    let (one, other) = house.workers();
    for _ in 0..20 {
        one.call(&rejected(Blame::Recipient)).await;
        one.call(&deferred()).await;
    }
    assert_eq!(one.closed_by().await, None);
    let house = House::new().await;
    let (one_again, other_again) = house.workers();
    one_again.fail(3).await;
    other_again.fail(3).await;
    for worker in [&one_again, &other_again] {
        worker.until_closed_by(RejectedBy::Circuit).await;
    }
    // They have Redis keys of their own, and so has every account.
    assert_eq!(other.closed_by().await, None);
}

#[tokio::test]
async fn one_call_over_all_workers_probes_a_circuit() {
    let house = House::new().await;
    let (one, other) = house.workers();
    one.fail(5).await;
    other.until_closed_by(RejectedBy::Circuit).await;
    house.clock.advance(OPEN);
    let probe = one.pass().await;
    for worker in [&one, &other] {
        assert_eq!(worker.closed_by().await, Some(RejectedBy::Circuit));
    }
    // A probe that made no call is given back, to whoever comes first.
    drop(probe);
    let probe = other.next_pass(NO_LIMITS).await;
    assert_eq!(one.closed_by().await, Some(RejectedBy::Circuit));
    // One that fails keeps the gate closed for longer.
    probe.end(&unavailable());
    let closed = other.enter(NO_LIMITS).await.unwrap_err();
    assert!(closed.wait >= Duration::from_secs(8), "{closed:?}");
    assert_eq!(one.closed_by().await, Some(RejectedBy::Circuit));
    house.clock.advance(OPEN);
    assert_eq!(other.closed_by().await, Some(RejectedBy::Circuit));
    house.clock.advance(OPEN);
    // One that succeeds opens it for all.
    one.next_pass(NO_LIMITS).await.end(&accepted());
    for worker in [&one, &other] {
        worker.until_all_pass().await;
    }
    // What failed before does not count any more.
    one.fail(4).await;
    assert_eq!(one.closed_by().await, None);
}

#[tokio::test]
async fn a_pause_that_a_provider_asks_for_holds_for_all_workers() {
    let house = House::new().await;
    let (one, other) = house.workers();
    one.call(&throttled(10)).await;
    let closed = one.enter(NO_LIMITS).await.unwrap_err();
    assert_eq!(
        (closed.by, closed.wait),
        (RejectedBy::Asked, Duration::from_secs(10))
    );
    other.until_closed_by(RejectedBy::Asked).await;
    house.clock.advance(TimeDelta::seconds(9));
    assert_eq!(other.closed_by().await, Some(RejectedBy::Asked));
    house.clock.advance(TimeDelta::seconds(1));
    // Nobody waits for what the first one meets; all go on more slowly.
    for worker in [&one, &other] {
        let _first = worker.pass().await;
        assert_eq!(worker.closed_by().await, Some(RejectedBy::Throttled));
        worker.next_pass(NO_LIMITS).await.end(&accepted());
    }
}

#[tokio::test]
async fn an_account_that_cannot_send_is_closed_for_all_until_a_probe_or_somebody_mends_it() {
    let house = House::new().await;
    let (one, other) = house.workers();
    other.call(&accepted()).await;
    // One call says it all.
    one.call(&unusable()).await;
    for worker in [&one, &other] {
        worker.until_closed_by(RejectedBy::Unusable).await;
    }
    house.clock.advance(OPEN);
    one.next_pass(NO_LIMITS).await.end(&unusable());
    let closed = one.enter(NO_LIMITS).await.unwrap_err();
    assert!(
        closed.wait >= Duration::from_secs(8),
        "it is left alone for longer: {closed:?}"
    );
    other.until_closed_by(RejectedBy::Unusable).await;
    for worker in [&one, &other] {
        drop(worker.enter_after(1, NO_LIMITS).await.unwrap());
    }
    // What a call with the credentials of before says is old.
    let old = one.pass().await;
    one.call(&unusable()).await;
    drop(one.enter_after(2, NO_LIMITS).await.unwrap());
    old.end(&unusable());
    assert_eq!(one.closed_by().await, None);
    // A worker that starts now does not go by what was before either.
    house.worker().until_all_pass().await;
}

#[tokio::test]
async fn workers_together_do_not_exceed_a_rate() {
    const RATE: u32 = 20;
    const CALLS: u32 = 40;
    let house = House::new().await;
    let (one, other) = house.workers();
    let limits = per_second(RATE);
    let started = Instant::now();
    let calls = async |worker: &Worker| {
        for _ in 0..CALLS / 2 {
            worker.next_pass(limits).await.end(&accepted());
        }
    };
    tokio::join!(calls(&one), calls(&other));
    // Two may come at once: a tenth of a second's.
    let soonest = Duration::from_secs(1) / RATE * (CALLS - 2);
    let tolerance = Duration::from_millis(20);
    let took = started.elapsed();
    assert!(took + tolerance >= soonest, "{took:?}");

    let mut waits = Vec::new();
    while waits.len() < 3 {
        if let Err(closed) = one.enter(per_second(1)).await {
            assert_eq!(closed.by, RejectedBy::Rate);
            waits.push(closed.wait);
        }
    }
    // Who is refused comes back in turn.
    assert!(waits[1] > Duration::from_secs(1), "{waits:?}");
    assert!(waits[2] > Duration::from_secs(2), "{waits:?}");
}

#[tokio::test]
async fn workers_together_do_not_exceed_a_concurrency() {
    let house = House::new().await;
    let (one, other) = house.workers();
    let limits = at_once(3);
    let mut passes = Vec::new();
    for worker in [&one, &other, &one] {
        passes.push(worker.enter(limits).await.unwrap());
    }
    for worker in [&one, &other] {
        let closed = worker.enter(limits).await.unwrap_err();
        assert_eq!(closed.by, RejectedBy::Concurrency);
        assert!(closed.wait < Duration::from_secs(1), "{closed:?}");
    }
    // A place is free again when its call ended, and when none was made.
    passes.pop().unwrap().end(&accepted());
    drop(other.next_pass(limits).await);
    passes.pop();
    drop(other.next_pass(limits).await);
    let both = async || (other.enter(limits).await, one.enter(limits).await);
    wait_until("two places are free", async || {
        matches!(both().await, (Ok(_), Ok(_)))
    })
    .await;
}

#[tokio::test]
async fn what_a_killed_worker_held_comes_back() {
    let house = House::new().await;
    let doomed = house.worker_with_timeout("100ms");
    let heir = house.worker_with_timeout("100ms");
    let limits = at_once(1);
    std::mem::forget(doomed.enter(limits).await.unwrap());
    let closed = heir.enter(limits).await.unwrap_err();
    assert_eq!(closed.by, RejectedBy::Concurrency);
    drop(heir.next_pass(limits).await);

    heir.fail(5).await;
    doomed.until_closed_by(RejectedBy::Circuit).await;
    house.clock.advance(OPEN);
    std::mem::forget(doomed.next_pass(NO_LIMITS).await);
    assert_eq!(heir.closed_by().await, Some(RejectedBy::Circuit));
    heir.next_pass(NO_LIMITS).await.end(&accepted());
    heir.until_all_pass().await;
}

#[tokio::test]
async fn a_redis_that_hangs_holds_calls_back_once_and_not_each() {
    let house = House::new().await;
    let worker = house.worker();
    let limits = AccountLimits {
        max_rate_per_second: Some(100_000),
        max_concurrency: Some(10_000),
    };
    let held = (
        worker.enter(at_once(2)).await.unwrap(),
        worker.enter(at_once(2)).await.unwrap(),
    );
    house.server.stall().await;
    let started = Instant::now();
    for _ in 0..200 {
        worker.enter(limits).await.unwrap().end(&accepted());
    }
    let took = started.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    // What ended while it hung is given back when it goes on.
    drop(held);
    house.server.wake().await;
    let other = house.worker();
    wait_until("they share one place again", async || {
        let first = worker.enter(at_once(1)).await;
        let second = other.enter(at_once(1)).await;
        first.is_ok() && second.is_err()
    })
    .await;
    drop(other.next_pass(at_once(1)).await);
}

#[tokio::test]
async fn while_redis_is_away_each_worker_takes_care_alone() {
    let mut house = House::new().await;
    let (one, other) = house.workers();
    for worker in [&one, &other] {
        worker.enter(at_once(2)).await.unwrap().end(&accepted());
    }
    house.server.stop().await;
    let held = (
        one.enter(at_once(2)).await.unwrap(),
        one.enter(at_once(2)).await.unwrap(),
    );
    let closed = one.enter(at_once(2)).await.unwrap_err();
    assert_eq!(closed.by, RejectedBy::Concurrency);
    drop(held);
    drop(one.next_pass(at_once(2)).await);
    let mut passed = 0;
    while let Ok(pass) = other.enter(per_second(20)).await {
        pass.end(&accepted());
        passed += 1;
        assert!(passed < 100_000, "the rate is not kept");
    }
    one.fail(5).await;
    assert_eq!(one.closed_by().await, Some(RejectedBy::Circuit));
    assert_eq!(other.closed_by().await, None);
    house.clock.advance(OPEN);
    let probe = one.pass().await;
    assert_eq!(one.closed_by().await, Some(RejectedBy::Circuit));
    probe.end(&unavailable());

    // What was found out meanwhile is told when Redis is there again.
    house.server.resume().await;
    other.until_closed_by(RejectedBy::Circuit).await;
    assert_eq!(one.closed_by().await, Some(RejectedBy::Circuit));
}

#[tokio::test]
async fn a_closed_gate_stays_closed_when_redis_is_emptied() {
    let house = House::new().await;
    let (one, other) = house.workers();
    one.call(&throttled(60)).await;
    other.until_closed_by(RejectedBy::Asked).await;
    house.server.flush().await;
    house.server.forget_scripts().await;
    house.worker().until_closed_by(RejectedBy::Asked).await;
    for worker in [&one, &other] {
        assert_eq!(worker.closed_by().await, Some(RejectedBy::Asked));
    }
}

#[tokio::test]
async fn workers_that_are_alive_share_the_limits_while_redis_is_away() {
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
    let mut house = House::new().await;
    house.server.stop().await;
    let worker = house.worker();
    let settings = Settings::from_map(&app.variables).unwrap();
    let pool = db::pool(&settings.database_url, 1).unwrap();
    worker.gates.count_workers(pool);
    let limits = at_once(4);
    let two_pass_and_no_more = async || {
        let held = (worker.enter(limits).await, worker.enter(limits).await);
        let third = worker.enter(limits).await;
        matches!(held, (Ok(_), Ok(_))) && third.is_err()
    };
    wait_until("half of the limit is left", two_pass_and_no_more).await;
    // Everybody has one call at the least.
    assert!(worker.enter(at_once(1)).await.is_ok());
}
