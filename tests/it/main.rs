//! The integration tests: one module per subject, all through the public interfaces.
//! `make test` starts the servers that they need.

mod account_limiter;
#[cfg(test)]
mod adapters;
#[cfg(test)]
mod api_keys;
#[cfg(test)]
mod api_shutdown;
#[cfg(test)]
mod architecture;
#[cfg(test)]
mod attachments;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod auth;
#[cfg(test)]
mod backlog;
#[cfg(test)]
mod batch;
#[cfg(test)]
mod batching;
#[cfg(test)]
mod callbacks;
#[cfg(test)]
mod clocks;
#[cfg(test)]
mod compat;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod dashboard;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod erasures;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod failover;
#[cfg(test)]
mod fairness;
#[cfg(test)]
mod health;
#[cfg(test)]
mod idempotency;
#[cfg(test)]
mod import;
#[cfg(test)]
mod jobs;
#[cfg(test)]
mod lifo_pool;
#[cfg(test)]
mod look_ups;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod migrations_wait;
#[cfg(test)]
mod monitoring;
#[cfg(test)]
mod operator;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod people;
#[cfg(test)]
mod provider_events;
#[cfg(test)]
mod providers;
#[cfg(test)]
mod queue;
#[cfg(test)]
mod races;
#[cfg(test)]
mod rate_limits;
#[cfg(test)]
mod request_fields;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod retries;
#[cfg(test)]
mod routing_rules;
#[cfg(test)]
mod schedule;
#[cfg(test)]
mod scheduler;
#[cfg(test)]
pub(crate) mod security;
#[cfg(test)]
mod sender_domains;
#[cfg(test)]
mod sending;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod smtp;
#[cfg(test)]
mod submission;
#[cfg(test)]
mod suppressions;
#[cfg(test)]
mod templates;
#[cfg(test)]
mod test_mode;
#[cfg(test)]
mod tracking;
#[cfg(test)]
mod unsubscribe;
#[cfg(test)]
mod unsubscribe_groups;
#[cfg(test)]
mod validation;
#[cfg(test)]
mod webhook_deliveries;
#[cfg(test)]
mod webhook_endpoints;
#[cfg(test)]
mod webhook_events;
#[cfg(test)]
mod whole_message;
#[cfg(test)]
mod words;
mod wrong_keys;
#[cfg(test)]
mod wrong_servers;
