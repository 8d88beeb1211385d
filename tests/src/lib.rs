//! The harness of the integration tests. A [`TestApp`] is a whole Waypost for one test:
//! its own database and Redis keys, a clock that the test moves, a simulator of the
//! providers, and the API, the worker and the scheduler, either as tasks of the test's
//! process or as processes that can be killed.
//!
//! Tests call it through HTTP and check what reached the simulator. They never sleep:
//! [`TestApp::drain`] waits until no work is due, [`TestApp::advance`] moves time, and
//! [`wait_until`] waits for a state. A test that ends while work is due fails.
//!
//! `WAYPOST_TEST_DATABASE_URL` (a user with CREATEDB) and `WAYPOST_TEST_REDIS_URL` name
//! the servers; `make test` starts both.

mod app;
mod builder;
mod client;
mod database;
mod dns_server;
mod document;
mod environment;
mod keys;
mod lossy_proxy;
mod outbox;
mod people;
mod postgres_server;
mod process;
mod receiver;
mod redis_server;
mod requests;
mod submission;
mod wait;

pub use app::{Tenant, TestApp};
pub use builder::AppBuilder;
pub use client::{Caller, Reply};
pub use database::TestDatabase;
pub use dns_server::{DnsFailure, DnsServer};
pub use document::{webhook_example, without_references};
pub use environment::{binaries, root};
pub use lossy_proxy::LossyProxy;
pub use outbox::{Attempt, OutboxRow};
pub use people::PASSWORD;
pub use postgres_server::{PostgresServer, postgres_program};
pub use process::{Finished, Process, Program, free_port};
pub use receiver::{Answer, ReceivedWebhook, Receiver};
pub use redis_server::{RedisServer, Refusal, redis_connection};
pub use requests::{
    HTTP_PROVIDERS, SENDER, credentials, decoded, event_types, message_to, to_hash, untracked,
};
pub use submission::{SmtpClient, SubmissionServer, auth_plain, stuffed};
pub use wait::{WAIT_MAX, wait_until, wait_within};
