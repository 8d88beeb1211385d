//! What is there before anything is told: organizations, an account of each, mail
//! that a provider took; and the posts that tell what became of it.

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

use super::posts::{self, Copy, Post, SIGNING_KEY, Word};
use super::taking::Site;

const ORGANIZATIONS: usize = 20;
/// Events of a post of SendGrid's.
const POST_EVENTS: usize = 100;
/// Every so-many-th copy is opened, followed, sent back.
const OPENED_EACH: usize = 8;
const CLICKED_EACH: usize = 40;
const BOUNCED_EACH: usize = 50;
/// How many copies later one is opened.
const OPENED_AFTER: usize = 200;
/// Rows of one statement of the fill.
const ROWS: usize = 1_000;

/// Posts, and how many events of each type they tell.
pub(crate) struct Story {
    pub(crate) posts: Vec<Post>,
    pub(crate) events: BTreeMap<&'static str, i64>,
}

struct Account {
    organization: Uuid,
    id: Uuid,
    token: String,
}

/// Copies that SendGrid took, and its posts of a hundred events each.
pub(crate) async fn batched(site: &Site, copies: usize) -> Story {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).expect("a key can be made");
    let der = pair.public_key().as_der().expect("a key has a form");
    let secrets = EventSecrets::sendgrid(&STANDARD.encode(der.as_ref()));
    let accounts = accounts(site, "SENDGRID", &secrets.expect("a key of SendGrid's")).await;
    let told = told(&sent(site, &accounts, copies).await);
    let seconds = site.clock.now().timestamp();
    let each = told.iter().zip(&accounts).map(|(told, account)| {
        let parts = told.chunks(POST_EVENTS);
        let posts = parts.map(|part| posts::sendgrid(&account.token, &pair, seconds, part));
        posts.collect()
    });
    story(&told, each.collect())
}

/// Copies that Mailgun took, and its posts of one event each.
pub(crate) async fn single(site: &Site, copies: usize) -> Story {
    let secrets = EventSecrets::mailgun(SIGNING_KEY).expect("a key of Mailgun's");
    let accounts = accounts(site, "MAILGUN", &secrets).await;
    let told = told(&sent(site, &accounts, copies).await);
    let seconds = site.clock.now().timestamp();
    let each = told.iter().zip(&accounts).map(|(told, account)| {
        let events = told.iter();
        let posts = events.map(|(copy, word)| posts::mailgun(&account.token, seconds, copy, *word));
        posts.collect()
    });
    story(&told, each.collect())
}

/// The posts of all accounts, in turn.
fn story(told: &[Vec<(Copy, Word)>], posts: Vec<Vec<Post>>) -> Story {
    let mut events = BTreeMap::new();
    for (_, word) in told.iter().flatten() {
        *events.entry(word.event_type()).or_default() += 1;
    }
    let mut queues: Vec<_> = posts.into_iter().map(Vec::into_iter).collect();
    let mut posts = Vec::new();
    loop {
        let round = posts.len();
        posts.extend(queues.iter_mut().filter_map(Iterator::next));
        if posts.len() == round {
            return Story { posts, events };
        }
    }
}

/// What is told of the copies of each account, in the order in which it happens.
fn told(copies: &[Vec<Copy>]) -> Vec<Vec<(Copy, Word)>> {
    let of_account = |copies: &Vec<Copy>| {
        let mut told = Vec::new();
        for nth in 0..copies.len() + OPENED_AFTER {
            if let Some(copy) = copies.get(nth) {
                let bounced = nth % BOUNCED_EACH == 1;
                told.push((
                    *copy,
                    if bounced {
                        Word::Bounced
                    } else {
                        Word::Delivered
                    },
                ));
            }
            let Some(earlier) = nth.checked_sub(OPENED_AFTER) else {
                continue;
            };
            let earlier_is = |each: usize| earlier % each == 0;
            told.extend(earlier_is(OPENED_EACH).then(|| (copies[earlier], Word::Opened)));
            told.extend(earlier_is(CLICKED_EACH).then(|| (copies[earlier], Word::Clicked)));
        }
        told
    };
    copies.iter().map(of_account).collect()
}

async fn accounts(site: &Site, kind: &str, secrets: &EventSecrets) -> Vec<Account> {
    let mut accounts = Vec::with_capacity(ORGANIZATIONS);
    for _ in 0..ORGANIZATIONS {
        let (organization, id): (OrganizationId, ProviderAccountId) =
            (site.ids.next(), site.ids.next());
        let account = Account {
            organization: organization.0,
            id: id.0,
            token: Uuid::from(id).simple().to_string(),
        };
        let sealed = secrets.seal(&site.sealer, organization, id);
        query("INSERT INTO organizations (id, name, created_at) VALUES ($1, 'An organization', now())")
            .bind(organization.0)
            .execute(&site.pool)
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
        .execute(&site.pool)
        .await
        .expect("an account can be added");
        accounts.push(account);
    }
    accounts
}

/// So many copies, by account, each of a message of its own.
async fn sent(site: &Site, accounts: &[Account], copies: usize) -> Vec<Vec<Copy>> {
    let mut by_account = vec![Vec::new(); accounts.len()];
    let mut rows = Vec::with_capacity(ROWS);
    for nth in 0..copies {
        let place = nth % accounts.len();
        let copy = Copy {
            message: site.ids.next(),
            attempt: site.ids.next(),
            nth,
        };
        by_account[place].push(copy);
        rows.push((copy, &accounts[place]));
        if rows.len() == ROWS || nth + 1 == copies {
            insert(site, &rows).await;
            rows.clear();
        }
    }
    by_account
}

async fn insert(site: &Site, rows: &[(Copy, &Account)]) {
    let column = |pick: fn(&(Copy, &Account)) -> Uuid| rows.iter().map(pick).collect::<Vec<_>>();
    let hashes = rows
        .iter()
        .map(|(copy, _)| Sha256::digest(copy.message.as_bytes()).to_vec());
    let hashes: Vec<Vec<u8>> = hashes.collect();
    let numbers: Vec<i64> = rows.iter().map(|(copy, _)| copy.nth as i64).collect();
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
            .bind(column(|(copy, _)| copy.message))
            .bind(column(|(_, account)| account.organization))
            .bind(column(|(_, account)| account.id))
            .bind(column(|(copy, _)| copy.attempt))
            .bind(&hashes)
            .bind(&numbers)
            .execute(&site.pool)
            .await
            .expect("mail that was sent can be added");
    }
    // As workers move them: what a row was before leaves room on its page.
    let moves = [
        "UPDATE recipients SET status = 'SENDING' WHERE message_id = ANY($1)",
        "UPDATE messages SET status = 'SENDING' WHERE id = ANY($1)",
        "UPDATE recipients SET status = 'SENT' WHERE message_id = ANY($1)",
        "UPDATE messages SET status = 'SENT' WHERE id = ANY($1)",
    ];
    for statement in moves {
        query(statement)
            .bind(column(|(copy, _)| copy.message))
            .execute(&site.pool)
            .await
            .expect("mail can be sent");
    }
}
