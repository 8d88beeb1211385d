//! A simulator of four providers' HTTP APIs, SendGrid, Postmark, Mailgun and Amazon SES,
//! and of an SMTP server.
//!
//! It responds as the real providers do, strictly: a request that they would reject is
//! rejected here with their status and their body. It stores what it accepted, so that a
//! test or a person can see exactly what would have reached each mailbox. It depends on
//! no Waypost crate, so that it cannot share a mistake with Waypost.
//!
//! [`Simulator`] is the running server. `providers` implement the four APIs, `smtp` the SMTP
//! server. `recipients` and `credentials` hold the magic values that select a response;
//! `faults` are set for load tests; `capture` stores accepted messages; `callbacks`
//! report events; `control` and `inbox` are the simulator's own pages. Every instance has
//! its own state and its own port.
//!
//! The simulator delivers nothing, and keeps nothing after it stops.

mod address;
mod callbacks;
mod capture;
mod clock;
mod control;
mod credentials;
mod domains;
mod faults;
mod ids;
mod inbox;
mod mail;
mod providers;
mod recipients;
mod reply;
mod request;
mod searches;
mod server;
mod smtp;
mod state;
mod stored_objects;
mod suppression_lists;

pub use callbacks::{CallbackCounts, CallbackSettings, SignatureFault};
pub use faults::{Fault, FaultCalls, FaultKind};
pub use mail::{Captured, CapturedAttachment, Kind};
pub use providers::Provider;
pub use server::Simulator;
pub use smtp::smtp_certificate;
pub use state::{Config, DEFAULT_SES_SECRET};
pub use stored_objects::StoredObjects;
pub use suppression_lists::{ListKind, Listed};
