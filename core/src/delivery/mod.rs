//! The queue: how accepted work reaches a worker and is finished exactly as often
//! as it must be.
//!
//! Postgres holds the truth: an *outbox* row per chunk of recipients, the *lease*
//! that a worker holds on it, the *attempt* written before each call, the
//! *outcome* after it. Redis holds *jobs*: hints that carry ids. A hint may be
//! lost (the *relay* repeats it) or come twice (the second finds the chunk leased
//! or gone). Whatever a dead worker held is taken back by the *reaper*, and what its
//! workers die of again and again is *parked*.

pub mod attempt;
pub mod dead_letter;
pub mod dispatch;
pub mod job;
pub mod lease;
pub mod outbox;
pub mod outcome;
pub mod reaper;
pub mod retry;
