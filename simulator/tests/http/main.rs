//! Tests the simulator through HTTP and SMTP: its responses and what it stores.

mod callbacks;
mod control;
mod mailgun;
mod postmark;
mod searches;
mod sendgrid;
mod ses;
mod smtp;
mod stored_objects;
mod support;
