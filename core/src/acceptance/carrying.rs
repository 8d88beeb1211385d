//! Whether the account that routing selects can carry a message.

use super::AcceptRefusal;
use super::draft::DeliveryMode;
use super::render_draft::RenderedDraft;
use crate::provider::adapter;
use crate::provider::limits::MailShape;
use crate::routing::Route;

/// # Errors
/// What the account cannot carry.
pub(super) fn check(route: &Route, rendered: &RenderedDraft) -> Result<(), AcceptRefusal> {
    let draft = &rendered.draft;
    let bytes = |body: &Option<String>| body.as_ref().map_or(0, String::len);
    let reply_to = rendered.reply_to.iter();
    let reply_to = reply_to.map(|mailbox| mailbox.to_encoded_header().len() + 2);
    let shape = MailShape {
        recipients: match draft.delivery {
            DeliveryMode::Private => 1,
            DeliveryMode::Shared => draft.to.len(),
        },
        headers: &draft.headers,
        has_unsubscribe_link: draft.unsubscribe_group_id.is_some(),
        reply_to_bytes: reply_to.sum(),
        body_bytes: [bytes(&draft.html), bytes(&draft.text)],
        attachments: &draft.attachments,
    };
    let provider_type = route.provider_type;
    match adapter(provider_type).refuse(&shape) {
        Some(reason) => Err(AcceptRefusal::CannotCarry {
            provider_type,
            reason,
        }),
        None => Ok(()),
    }
}
