//! The domain of Waypost: accepting, routing, queueing and sending messages, recording
//! what happens to them, and the SQL for all of it. This crate does not serve the API. The
//! API, the worker and the scheduler depend on it and not on each other.
//!
//! There is one module per subject. A dependency is used in one place: `sqlx` in `store`
//! modules and `db`, `apalis` in `job_queue`, `reqwest` in `http`, the environment in
//! `config`.

pub mod acceptance;
pub mod account_limiter;
pub mod address;
pub mod attachment;
pub mod audit;
pub mod auth;
pub mod batcher;
pub mod cache;
pub mod clock;
pub mod config;
pub mod crypto;
pub mod db;
pub mod delivery;
pub mod diagnosis;
pub mod dns;
pub mod erasure;
pub mod event;
pub mod fault;
pub mod health_server;
pub mod http;
pub mod idempotency;
pub mod ids;
pub mod import;
pub mod invitation;
pub mod issue;
pub mod job_queue;
pub mod limit;
pub mod member;
pub mod message;
pub mod metrics;
pub mod monitoring;
pub mod network;
pub mod organization;
pub mod page;
pub mod partition;
pub mod permission;
pub mod process;
pub mod provider;
pub mod provider_account;
pub mod provider_event;
pub mod redis;
pub mod reencrypt;
pub mod retention;
pub mod routing;
pub mod secret;
pub mod sender_domain;
pub mod session;
pub mod startup;
pub mod submission;
pub mod suppression;
pub mod task_log;
pub mod telemetry;
pub mod template;
pub mod text;
pub mod ticks;
pub mod tracking;
pub mod tracking_event;
pub mod unsubscribe;
pub mod user;
pub mod webhook;
