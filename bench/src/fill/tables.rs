//! The tables of the history, and the rows of a message in each.

use super::copy::Rows;
use super::history::{self, History, Message, RECIPIENT_DOMAIN};

/// Local part of every From address.
const LOCAL_PART: &str = "hello";
/// As long as a sealed mailbox: version, key, nonce, about thirty characters, tag.
const SEALED_BYTES: usize = 64;

/// A table that is partitioned by the id of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Events,
    Messages,
    Recipients,
    Attempts,
}

impl Table {
    /// All tables, the slowest first.
    pub(crate) const ALL: [Self; 4] = [
        Self::Messages,
        Self::Recipients,
        Self::Events,
        Self::Attempts,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Messages => "messages",
            Self::Recipients => "recipients",
            Self::Attempts => "send_attempts",
        }
    }

    pub(crate) fn columns(self) -> &'static str {
        match self {
            Self::Events => "message_id, id, organization_id, position, event_type, occurred_at",
            Self::Messages => {
                "id, organization_id, provider_account_id, from_address, to_hash, subject, status, tags,
                 recipient_count, provider_message_id, created_at, sent_at, delivered_at, template_id"
            }
            Self::Recipients => {
                "message_id, position, organization_id, address_sealed, address_hash, status,
                 provider_account_id, provider_message_id, attempts, next_attempt_at, sent_at,
                 delivered_at, opened_at, clicked_at, domain"
            }
            Self::Attempts => {
                "message_id, id, organization_id, position, provider_account_id, started_at,
                 finished_at, outcome, status_code"
            }
        }
    }

    /// Writes the rows of a message.
    pub(crate) fn write(self, rows: &mut Rows, history: &History, message: &Message) {
        match self {
            Self::Events => write_events(rows, history, message),
            Self::Messages => write_message(rows, history, message),
            Self::Recipients => write_recipient(rows, history, message),
            Self::Attempts => write_attempt(rows, history, message),
        }
    }
}

fn write_events(rows: &mut Rows, history: &History, message: &Message) {
    for (nth, (name, at)) in (0..).zip(message.events()) {
        rows.row(6);
        rows.uuid(message.id);
        rows.uuid(history::uuid_v7(at, message.random ^ nth));
        rows.uuid(history.owners[message.owner].id);
        // The first event is about every recipient.
        if name == "QUEUED" {
            rows.null();
        } else {
            rows.integer(0);
        }
        rows.text(name);
        rows.time(at);
    }
}

fn write_message(rows: &mut Rows, history: &History, message: &Message) {
    let owner = &history.owners[message.owner];
    rows.row(14);
    rows.uuid(message.id);
    rows.uuid(owner.id);
    rows.uuid(owner.accounts[message.account].0);
    rows.text(&format!("{LOCAL_PART}@{}", owner.domains[message.domain]));
    rows.bytes(&message.address_hash());
    rows.text(&message.subject());
    rows.text(message.status.name());
    rows.text_array(message.tag());
    rows.integer(1);
    provider_message_id(rows, message);
    rows.time(message.accepted_ms);
    rows.time_or_null(message.sent_ms);
    rows.time_or_null(message.delivered_ms);
    match message.template {
        Some(template) => rows.uuid(owner.templates[template]),
        None => rows.null(),
    }
}

fn write_recipient(rows: &mut Rows, history: &History, message: &Message) {
    let owner = &history.owners[message.owner];
    rows.row(15);
    rows.uuid(message.id);
    rows.integer(0);
    rows.uuid(owner.id);
    // No code decrypts it: a finished message is not sent again.
    let mut sealed = [1; SEALED_BYTES];
    sealed[SEALED_BYTES / 2..].copy_from_slice(&history::hash(!message.random));
    rows.bytes(&sealed);
    rows.bytes(&message.address_hash());
    rows.text(message.status.name());
    rows.uuid(owner.accounts[message.account].0);
    provider_message_id(rows, message);
    rows.integer(1);
    rows.time(message.accepted_ms);
    rows.time_or_null(message.sent_ms);
    rows.time_or_null(message.delivered_ms);
    rows.time_or_null(message.opened_ms);
    rows.time_or_null(message.clicked_ms);
    rows.text(RECIPIENT_DOMAIN);
}

fn write_attempt(rows: &mut Rows, history: &History, message: &Message) {
    let Some(sent_ms) = message.sent_ms.filter(|_| message.has_events) else {
        return;
    };
    let owner = &history.owners[message.owner];
    rows.row(9);
    rows.uuid(message.id);
    rows.uuid(history::uuid_v7(sent_ms - 100, message.random));
    rows.uuid(owner.id);
    rows.integer(0);
    rows.uuid(owner.accounts[message.account].0);
    rows.time(sent_ms - 100);
    rows.time(sent_ms);
    rows.text("ACCEPTED");
    rows.integer(202);
}

fn provider_message_id(rows: &mut Rows, message: &Message) {
    match message.sent_ms {
        Some(_) => rows.text(&format!("{:016x}{:016x}", message.random, !message.random)),
        None => rows.null(),
    }
}
