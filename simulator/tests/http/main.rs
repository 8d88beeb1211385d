//! The simulator through its front door: HTTP in, and what it answers and keeps.

mod callbacks;
mod control;
mod mailgun;
mod postmark;
mod searches;
mod sendgrid;
mod ses;
mod smtp;
mod support;
