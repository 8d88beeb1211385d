//! The domain of Waypost: what a message is, how it is accepted, routed, queued,
//! sent and remembered, and the SQL beneath. It knows nothing of serving HTTP; the
//! API, the worker and the scheduler are built on it and not on each other.
//!
//! One module per subject. `sqlx` stays in `store` modules, `db` and the queue's
//! own tables, `apalis` in `queue::backend`, `reqwest` in `http`, the environment
//! in `config`.

pub mod address;
pub mod audit;
pub mod auth;
pub mod clock;
pub mod config;
pub mod crypto;
pub mod db;
pub mod event;
pub mod fault;
pub mod group;
pub mod health;
pub mod http;
pub mod idempotency;
pub mod ids;
pub mod issue;
pub mod limit;
pub mod message;
pub mod metrics;
pub mod network;
pub mod organization;
pub mod page;
pub mod partition;
pub mod process;
pub mod provider;
pub mod queue;
pub mod redis;
pub mod remembered;
pub mod reseal;
pub mod retention;
pub mod routing;
pub mod schedule;
pub mod secret;
pub mod start;
pub mod suppression;
pub mod telemetry;
pub mod template;
pub mod text;
pub mod tracking;
pub mod unsubscribe;
pub mod webhook;
