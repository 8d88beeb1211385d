//! The data before the measurement: organizations, an account each, messages that a
//! provider accepted; and the webhook posts that report their events.

use std::collections::BTreeMap;

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use sqlx::query;
use uuid::Uuid;
use waypost_core::ids::{OrganizationId, ProviderAccountId};
use waypost_core::provider::event_secrets::EventSecrets;

use super::ingest::Target;
use super::posts::{self, EventKind, Post, Recipient, SIGNING_KEY};

const ORGANIZATIONS: usize = 20;
/// Events in a post from SendGrid.
const POST_EVENTS: usize = 100;
/// One recipient in this many opens, clicks, bounces.
const OPENED_EVERY: usize = 8;
const CLICKED_EVERY: usize = 40;
const BOUNCED_EVERY: usize = 50;
/// A message is opened this many messages later.
const OPENED_AFTER: usize = 200;
/// Rows per INSERT.
const ROWS: usize = 1_000;

/// Posts, and the number of events of each type in them.
pub(crate) struct EventPosts {
    pub(crate) posts: Vec<Post>,
    pub(crate) events: BTreeMap<&'static str, i64>,
}

struct Account {
    organization: Uuid,
    id: Uuid,
    token: String,
}

/// Recipients that SendGrid accepted, and its posts of a hundred events each.
pub(crate) async fn batched(target: &Target, recipients: usize) -> EventPosts {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).expect("a key can be made");
    let der = pair.public_key().as_der().expect("a key has a form");
    let secrets = EventSecrets::sendgrid(&STANDARD.encode(der.as_ref()));
    let accounts = accounts(target, "SENDGRID", &secrets.expect("a key of SendGrid's")).await;
    let reported = reported(&sent(target, &accounts, recipients).await);
    let seconds = target.clock.now().timestamp();
    let each = reported.iter().zip(&accounts).map(|(reported, account)| {
        let parts = reported.chunks(POST_EVENTS);
        let posts = parts.map(|part| posts::sendgrid(&account.token, &pair, seconds, part));
        posts.collect()
    });
    in_rotation(&reported, each.collect())
}

/// Recipients that Mailgun accepted, and its posts of one event each.
pub(crate) async fn single(target: &Target, recipients: usize) -> EventPosts {
    let secrets = EventSecrets::mailgun(SIGNING_KEY).expect("a key of Mailgun's");
    let accounts = accounts(target, "MAILGUN", &secrets).await;
    let reported = reported(&sent(target, &accounts, recipients).await);
    let seconds = target.clock.now().timestamp();
    let each = reported.iter().zip(&accounts).map(|(reported, account)| {
        let events = reported.iter();
        let posts = events
            .map(|(recipient, kind)| posts::mailgun(&account.token, seconds, recipient, *kind));
        posts.collect()
    });
    in_rotation(&reported, each.collect())
}

/// The posts of all accounts, in rotation.
fn in_rotation(reported: &[Vec<(Recipient, EventKind)>], posts: Vec<Vec<Post>>) -> EventPosts {
    let mut events = BTreeMap::new();
    for (_, kind) in reported.iter().flatten() {
        *events.entry(kind.event_type()).or_default() += 1;
    }
    let mut queues: Vec<_> = posts.into_iter().map(Vec::into_iter).collect();
    let mut posts = Vec::new();
    loop {
        let round = posts.len();
        posts.extend(queues.iter_mut().filter_map(Iterator::next));
        if posts.len() == round {
            return EventPosts { posts, events };
        }
    }
}

/// The events of each account's recipients, in the order in which they happen.
fn reported(recipients: &[Vec<Recipient>]) -> Vec<Vec<(Recipient, EventKind)>> {
    let of_account = |recipients: &Vec<Recipient>| {
        let mut reported = Vec::new();
        for nth in 0..recipients.len() + OPENED_AFTER {
            if let Some(recipient) = recipients.get(nth) {
                let bounced = nth % BOUNCED_EVERY == 1;
                reported.push((
                    *recipient,
                    if bounced {
                        EventKind::Bounced
                    } else {
                        EventKind::Delivered
                    },
                ));
            }
            let Some(earlier) = nth.checked_sub(OPENED_AFTER) else {
                continue;
            };
            let earlier_is = |each: usize| earlier % each == 0;
            reported
                .extend(earlier_is(OPENED_EVERY).then(|| (recipients[earlier], EventKind::Opened)));
            reported.extend(
                earlier_is(CLICKED_EVERY).then(|| (recipients[earlier], EventKind::Clicked)),
            );
        }
        reported
    };
    recipients.iter().map(of_account).collect()
}

async fn accounts(target: &Target, kind: &str, secrets: &EventSecrets) -> Vec<Account> {
    let mut accounts = Vec::with_capacity(ORGANIZATIONS);
    for _ in 0..ORGANIZATIONS {
        let (organization, id): (OrganizationId, ProviderAccountId) =
            (target.ids.next(), target.ids.next());
        let account = Account {
            organization: organization.0,
            id: id.0,
            token: Uuid::from(id).simple().to_string(),
        };
        let sealed = secrets.seal(&target.sealer, organization, id);
        query("INSERT INTO organizations (id, name, created_at) VALUES ($1, 'An organization', now())")
            .bind(organization.0)
            .execute(&target.pool)
            .await
            .expect("an organization can be added");
        query(
            "INSERT INTO provider_accounts
                 (id, organization_id, provider_type, display_name, is_active, credentials_sealed, domains_visible,
                  event_token, event_secrets_sealed, created_at, updated_at)
             VALUES ($1, $2, $3::text::provider_type, 'An account', true, '', true, $4, $5, now(), now())",
        )
        .bind(id.0)
        .bind(organization.0)
        .bind(kind)
        .bind(&account.token)
        .bind(sealed)
        .execute(&target.pool)
        .await
        .expect("an account can be added");
        accounts.push(account);
    }
    accounts
}

/// Inserts recipients, each of a message of its own. Returns them by account.
async fn sent(target: &Target, accounts: &[Account], recipients: usize) -> Vec<Vec<Recipient>> {
    let mut by_account = vec![Vec::new(); accounts.len()];
    let mut rows = Vec::with_capacity(ROWS);
    for nth in 0..recipients {
        let account = nth % accounts.len();
        let recipient = Recipient {
            message: target.ids.next(),
            attempt: target.ids.next(),
            nth,
        };
        by_account[account].push(recipient);
        rows.push((recipient, &accounts[account]));
        if rows.len() == ROWS || nth + 1 == recipients {
            insert(target, &rows).await;
            rows.clear();
        }
    }
    by_account
}

async fn insert(target: &Target, rows: &[(Recipient, &Account)]) {
    let column =
        |pick: fn(&(Recipient, &Account)) -> Uuid| rows.iter().map(pick).collect::<Vec<_>>();
    let hashes = rows
        .iter()
        .map(|(recipient, _)| Sha256::digest(recipient.message.as_bytes()).to_vec());
    let hashes: Vec<Vec<u8>> = hashes.collect();
    let numbers: Vec<i64> = rows
        .iter()
        .map(|(recipient, _)| recipient.nth as i64)
        .collect();
    let statements = [
        "INSERT INTO messages (id, organization_id, provider_account_id, from_address, to_hash, subject, status, tags,
                               recipient_count, provider_message_id, created_at, sent_at)
         SELECT m, o, a, 'news@example.com', h, 'Autumn', 'QUEUED', '{newsletter}', 1, 'id-' || n, now(), now()
         FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::bytea[], $6::bigint[]) AS t (m, o, a, t, h, n)",
        "INSERT INTO recipients (message_id, position, organization_id, address_sealed, address_hash, status,
                                 provider_account_id, provider_message_id, attempts, next_attempt_at, sent_at)
         SELECT m, 0, o, h || h, h, 'QUEUED', a, 'id-' || n, 1, now(), now()
         FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::bytea[], $6::bigint[]) AS t (m, o, a, t, h, n)",
        "INSERT INTO send_attempts (message_id, id, organization_id, position, provider_account_id, started_at,
                                    finished_at, outcome, status_code)
         SELECT m, t, o, 0, a, now(), now(), 'ACCEPTED', 202
         FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::bytea[], $6::bigint[]) AS t (m, o, a, t, h, n)",
        "INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at)
         SELECT m, gen_random_uuid(), o, p, e, now()
         FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::bytea[], $6::bigint[]) AS t (m, o, a, t, h, n)
         CROSS JOIN (VALUES (NULL::integer, 'QUEUED'::event_type), (0, 'SENT')) AS e (p, e)",
    ];
    for statement in statements {
        query(statement)
            .bind(column(|(recipient, _)| recipient.message))
            .bind(column(|(_, account)| account.organization))
            .bind(column(|(_, account)| account.id))
            .bind(column(|(recipient, _)| recipient.attempt))
            .bind(&hashes)
            .bind(&numbers)
            .execute(&target.pool)
            .await
            .expect("sent messages can be added");
    }
    // As workers do: the dead row versions leave free space on their pages.
    let moves = [
        "UPDATE recipients SET status = 'SENDING' WHERE message_id = ANY($1)",
        "UPDATE messages SET status = 'SENDING' WHERE id = ANY($1)",
        "UPDATE recipients SET status = 'SENT' WHERE message_id = ANY($1)",
        "UPDATE messages SET status = 'SENT' WHERE id = ANY($1)",
    ];
    for statement in moves {
        query(statement)
            .bind(column(|(recipient, _)| recipient.message))
            .execute(&target.pool)
            .await
            .expect("messages can be updated");
    }
}
