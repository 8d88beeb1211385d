//! Webhooks that post to the customer's application become webhook endpoints. They are
//! inactive, because the application reads the vendor's payloads and signatures and not ours.

use sha2::{Digest as _, Sha256};

use super::imported_objects::ImportedKind;
use super::imported_objects::store::{self as objects, ImportedObject, ObjectKey};
use super::report::{ImportAction, ImportSection, ImportedEntry};
use super::{Import, ImportSource};
use crate::db::OrFault;
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::provider::inventory::StoredWebhook;
use crate::webhook::endpoint::{ENDPOINTS_MAX, EndpointRefusal, NewEndpoint};
use crate::webhook::event_type::WebhookEventType;
use crate::webhook::store;
use crate::webhook::url::WebhookUrl;

impl Import<'_> {
    pub(super) async fn webhooks(&self, section: &mut ImportSection) -> Result<(), Fault> {
        let found = match self.reader.webhooks().await {
            Ok(Ok(found)) => found,
            Ok(Err(why)) => {
                section.notes.push(why.to_owned());
                return Ok(());
            }
            Err(problem) => {
                section.problem = Some(problem);
                return Ok(());
            }
        };
        for webhook in found {
            let entry = self.webhook(webhook).await?;
            section.entries.push(entry);
        }
        if !section.entries.is_empty() {
            section.notes.push(differences(self.job.source));
        }
        Ok(())
    }

    async fn webhook(&self, webhook: StoredWebhook) -> Result<ImportedEntry, Fault> {
        let mut entry = ImportedEntry {
            vendor_id: webhook.id.clone(),
            name: webhook.url.clone(),
            action: ImportAction::LeftOut,
            id: None,
            notes: Vec::new(),
        };
        let own = format!("{}/v1/provider-events/", self.importer.accounts.public_url);
        if webhook.url.starts_with(&own) {
            entry.notes.push("it is Waypost's own".to_owned());
            return Ok(entry);
        }
        let (events, without) = event_types(self.job.source, &webhook.events);
        if !without.is_empty() {
            let names = without.join(", ");
            entry
                .notes
                .push(format!("Waypost has no event for {names}"));
        }
        if !webhook.is_active {
            entry.notes.push("it is not active there".to_owned());
        }
        if events.is_empty() {
            entry
                .notes
                .push("none of its events is one of Waypost".to_owned());
            return Ok(entry);
        }
        let connection = self.importer.pool.acquire().await;
        let mut connection = connection.or_fault("list webhook endpoints")?;
        let organization_id = self.job.organization_id;
        let endpoints = store::list(&mut connection, organization_id).await?;
        let key = self.webhook_key(&webhook.id);
        let imported = objects::find(&mut connection, organization_id, key).await?;
        drop(connection);
        let imported = imported.map(|object| object.id);
        let here = endpoints
            .iter()
            .find(|endpoint| endpoint.url == webhook.url || imported == Some(endpoint.id.0));
        if let Some(endpoint) = here {
            entry.action = ImportAction::Unchanged;
            entry.id = Some(endpoint.id.0);
            return Ok(entry);
        }
        if endpoints.len() as u64 >= ENDPOINTS_MAX {
            entry.notes.push(too_many());
            return Ok(entry);
        }
        self.create_endpoint(webhook, events, entry).await
    }

    fn webhook_key<'k>(&self, id: &'k str) -> ObjectKey<'k> {
        ObjectKey {
            vendor: self.job.source,
            kind: ImportedKind::WebhookEndpoint,
            vendor_id: id,
        }
    }

    /// Creates an inactive endpoint. If the process ends before it is recorded, the next import
    /// finds it by its URL.
    async fn create_endpoint(
        &self,
        webhook: StoredWebhook,
        events: Vec<WebhookEventType>,
        mut entry: ImportedEntry,
    ) -> Result<ImportedEntry, Fault> {
        let (endpoints, organization_id) = (&self.importer.endpoints, self.job.organization_id);
        let url = match WebhookUrl::parse(webhook.url.clone()) {
            Ok(url) => url,
            Err(error) => {
                entry.notes.push(format!("its URL {error}"));
                return Ok(entry);
            }
        };
        if !endpoints.allows_scheme(organization_id, &url).await? {
            entry.notes.push("its URL must be an HTTPS URL".to_owned());
            return Ok(entry);
        }
        if self.job.is_dry_run {
            entry.action = ImportAction::Imported;
            return Ok(entry);
        }
        let new = NewEndpoint {
            url,
            events,
            tags: Vec::new(),
            is_active: false,
        };
        let once = Idempotent::without_key();
        let creating = endpoints.create(organization_id, &self.job.origin, new, &once);
        let endpoint = match creating.await {
            Ok((endpoint, _secret)) => endpoint,
            Err(Failed::Refused(EndpointRefusal::Fault(fault))) => return Err(fault),
            Err(Failed::Refused(refusal)) => {
                entry.notes.push(refused(&refusal));
                return Ok(entry);
            }
            Err(Failed::Repeat(_)) => {
                return Err(Fault::internal("import a webhook", "there is no key"));
            }
        };
        let connection = self.importer.pool.acquire().await;
        let mut connection = connection.or_fault("record an imported object")?;
        let object = ImportedObject {
            id: endpoint.id.0,
            fingerprint: Some(Sha256::digest(webhook.url.as_bytes()).to_vec()),
        };
        let (key, now) = (self.webhook_key(&webhook.id), endpoint.created_at);
        objects::put(&mut connection, organization_id, key, &object, now).await?;
        entry.action = ImportAction::Imported;
        entry.id = Some(endpoint.id.0);
        Ok(entry)
    }
}

fn too_many() -> String {
    format!("the organization has {ENDPOINTS_MAX} webhook endpoints, which is the maximum")
}

fn refused(refusal: &EndpointRefusal) -> String {
    match refusal {
        EndpointRefusal::TooMany => too_many(),
        EndpointRefusal::Unreachable { reason } => {
            format!("no server answers at its URL: {reason}")
        }
        EndpointRefusal::AddressNotPublic => "the address of its host may not be called".to_owned(),
        EndpointRefusal::NotFound
        | EndpointRefusal::DeliveryNotFound
        | EndpointRefusal::Inactive
        | EndpointRefusal::Fault(_) => "it could not be created".to_owned(),
    }
}

/// Our types of a vendor's events, and the events that are none of ours.
fn event_types(source: ImportSource, events: &[String]) -> (Vec<WebhookEventType>, Vec<&str>) {
    let (mut types, mut without) = (Vec::new(), Vec::new());
    for event in events {
        match event_type(source, event) {
            Some(found) if types.contains(&found) => {}
            Some(found) => types.push(found),
            None => without.push(event.as_str()),
        }
    }
    (types, without)
}

fn event_type(source: ImportSource, event: &str) -> Option<WebhookEventType> {
    use WebhookEventType as Type;
    let names: &[(&str, Type)] = match source {
        ImportSource::Sendgrid => &[
            ("processed", Type::Sent),
            ("delivered", Type::Delivered),
            ("deferred", Type::Deferred),
            ("bounce", Type::Bounced),
            ("dropped", Type::Dropped),
            ("open", Type::Opened),
            ("click", Type::Clicked),
            ("spam_report", Type::Complained),
            ("unsubscribe", Type::Unsubscribed),
            ("group_unsubscribe", Type::Unsubscribed),
        ],
        ImportSource::Postmark => &[
            ("Delivery", Type::Delivered),
            ("Bounce", Type::Bounced),
            ("Open", Type::Opened),
            ("Click", Type::Clicked),
            ("SpamComplaint", Type::Complained),
            ("SubscriptionChange", Type::Unsubscribed),
        ],
        ImportSource::Mailgun => &[
            ("accepted", Type::Sent),
            ("delivered", Type::Delivered),
            ("opened", Type::Opened),
            ("clicked", Type::Clicked),
            ("unsubscribed", Type::Unsubscribed),
            ("complained", Type::Complained),
            ("permanent_fail", Type::Bounced),
            ("temporary_fail", Type::Deferred),
        ],
        ImportSource::Ses => &[],
        ImportSource::Resend => &[
            ("email.sent", Type::Sent),
            ("email.delivered", Type::Delivered),
            ("email.delivery_delayed", Type::Deferred),
            ("email.complained", Type::Complained),
            ("email.bounced", Type::Bounced),
            ("email.opened", Type::Opened),
            ("email.clicked", Type::Clicked),
            ("email.failed", Type::Dropped),
            ("email.suppressed", Type::Dropped),
            ("suppression.added", Type::SuppressionCreated),
            ("suppression.removed", Type::SuppressionRemoved),
        ],
    };
    let found = names.iter().find(|(name, _)| *name == event);
    found.map(|(_, found)| *found)
}

/// How our webhooks differ from a vendor's.
fn differences(source: ImportSource) -> String {
    let posts = match source {
        ImportSource::Sendgrid => "SendGrid posts a list of events with an ECDSA signature",
        ImportSource::Postmark => "Postmark posts one event with RecordType, and signs nothing",
        ImportSource::Mailgun => "Mailgun posts event-data with a signature in the body",
        ImportSource::Ses => "SES posts through SNS",
        ImportSource::Resend => "Resend posts type and data, with the same signature headers",
    };
    format!(
        "{posts}. Waypost posts one event of its own form, signed by Standard Webhooks. The endpoints are inactive: change the application, get a secret with POST /v1/webhook-endpoints/:id/rotate-secret, then set isActive."
    )
}
