//! The body of a delivery's calls, with the recipient's address opened.

use bytes::Bytes;

use super::{DueContent, DueDelivery, DueMessage};
use crate::address::Mailbox;
use crate::crypto::seal::{Sealed, Sealer};
use crate::fault::Fault;
use crate::ids::OrganizationId;
use crate::webhook::payload::{OrganizationPayload, Payload};

impl DueDelivery {
    /// The body of its calls.
    ///
    /// # Errors
    /// A fault if the recipient's address cannot be opened.
    pub fn body(&self, sealer: &Sealer, organization_id: OrganizationId) -> Result<Bytes, Fault> {
        match &self.content {
            DueContent::Message(message) => self.message_body(sealer, organization_id, message),
            DueContent::Organization(content) => {
                let payload = OrganizationPayload {
                    event_id: self.event_id,
                    event_type: self.event_type,
                    occurred_at: self.occurred_at,
                    content,
                };
                Ok(payload.body())
            }
        }
    }

    fn message_body(
        &self,
        sealer: &Sealer,
        organization_id: OrganizationId,
        message: &DueMessage,
    ) -> Result<Bytes, Fault> {
        let recipient = sealer.open(
            organization_id,
            Sealed::Recipient,
            self.message_id.0,
            &message.address_sealed,
        )?;
        let recipient = String::from_utf8(recipient)
            .map_err(|error| Fault::internal("read a recipient's address", error.utf8_error()))?;
        let recipient = Mailbox::parse(&recipient)
            .map_err(|error| Fault::internal("read a stored mailbox", error))?;
        let payload = Payload {
            event_id: self.event_id,
            event_type: self.event_type,
            occurred_at: self.occurred_at,
            message_id: self.message_id,
            recipient: recipient.address().as_str(),
            from: &message.from_address,
            subject: &message.subject,
            tags: &message.tags,
            metadata: message.metadata.as_ref(),
            is_test: message.is_test,
            provider_type: message.provider_type,
            event_data: message.data.as_ref(),
        };
        Ok(payload.body())
    }
}
