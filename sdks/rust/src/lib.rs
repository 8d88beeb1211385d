//! The client of Waypost, the self-hosted email delivery service.
//!
//! [`Waypost`] has a method for each group of operations, such as [`messages`](Waypost::messages). Each operation gives
//! a [`Call`]: set how to do it, and await it. What requests and answers consist of is in [`types`]. A list gives a
//! [`Page`], or a stream of all its items. A call fails with an [`Error`]. [`webhooks`] verifies what Waypost posts.
//!
//! ```no_run
//! # async fn example() -> Result<(), waypost::Error> {
//! use waypost::{Waypost, types::SendMessageRequest};
//!
//! let waypost = Waypost::from_env()?; // WAYPOST_API_KEY and WAYPOST_URL
//! let receipt = SendMessageRequest::new("ada@example.org")
//!     .from("Shop <shop@example.com>")
//!     .subject("Your receipt")
//!     .text("Thank you.");
//! let sent = waypost.messages().send(&receipt).idempotency_key("order-1042-receipt").await?;
//! println!("{:?}", sent.message_id);
//! # Ok(()) }
//! ```
//!
//! Each attempt is reported as an event of [`tracing`], on the level DEBUG: method, route, status, request id and times;
//! never keys, addresses or bodies.

mod generated {
    pub(crate) mod client;
    pub(crate) mod errors;
    pub mod resources;
    pub mod types;
}
mod runtime {
    pub(crate) mod call;
    pub(crate) mod errors;
    pub(crate) mod http;
    pub mod webhooks;
}

pub use chrono;
pub use reqwest;
pub use serde_json;

pub use generated::client::Waypost;
pub use generated::errors::Error;
pub use generated::{resources, types};
pub use runtime::call::{Call, Download, Page};
pub use runtime::errors::{ApiError, RateLimit};
pub use runtime::http::Options;
pub use runtime::webhooks;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
