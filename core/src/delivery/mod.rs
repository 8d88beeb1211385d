//! Delivery of accepted mail: from the outbox to a recorded outcome.
//!
//! Postgres holds the truth: an *outbox* row per chunk of recipients, the *lease* of the
//! worker that sends the chunk, the *attempt* that is written before each call, and the
//! *outcome* after it. Redis holds *jobs*: hints that carry ids. If a job is lost, the
//! *relay* pushes it again; if it comes twice, the second finds the chunk leased or done.
//! The *reaper* takes back the chunks of a dead worker, and a chunk that is the reason why
//! workers die becomes a *dead letter*. A *scheduled* chunk is in Postgres alone until its time
//! comes; `change` moves its time, or cancels what waits.

pub mod attempt;
pub mod change;
pub mod dead_letter;
pub mod dispatch;
pub mod expiry;
pub mod job;
pub mod lease;
pub mod outbox;
pub mod outcome;
pub mod reaper;
pub mod retry;
pub mod schedule;
mod waiting;
