//! The jobs, one module each.

mod account_pause;
mod account_prediction;
mod batch;
pub(crate) mod job;
mod quarantine;
mod refusals;
mod select_account;
mod sending_accounts;
