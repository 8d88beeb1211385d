//! A simulator of the four providers' HTTP APIs: SendGrid, Postmark, Mailgun and Amazon SES; and
//! of a mail server.
//!
//! It answers as the real providers answer, strictly: a request they would refuse is refused here
//! with their status and their body. It keeps what it accepted, so that a test or a person can see
//! exactly what would have reached each mailbox. It depends on no Waypost crate, so that it cannot
//! share our mistakes.
//!
//! The characters: [`Simulator`] is the running server; `providers` speak for the four companies, `smtp` for
//! the mail server;
//! `recipients` and `credentials` hold the magic values that provoke an answer; `faults` are
//! disturbances for load tests; `capture` is the memory of accepted mail; `callbacks` tell what became
//! of it; `control` and `inbox` are the simulator's own pages. Every instance has its own state and its own port.
//!
//! What it does not do: deliver anything, or remember anything after it stops.

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

pub use callbacks::{CallbackCounts, CallbackSettings, SignatureFault};
pub use faults::{Fault, FaultCalls, FaultKind};
pub use mail::{Captured, CapturedAttachment};
pub use providers::Provider;
pub use server::Simulator;
pub use smtp::smtp_certificate;
pub use state::{Config, DEFAULT_SES_SECRET};
