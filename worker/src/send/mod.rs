//! Sending the mails of a job.

mod account_pause;
mod account_prediction;
mod batch;
mod batch_memory;
mod contents;
pub(crate) mod job;
mod observe;
mod quarantine;
mod record;
mod refusals;
mod select_account;
mod sending_accounts;
mod shared;
mod simulate;
pub(crate) mod target_caps;
