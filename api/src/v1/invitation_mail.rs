//! The mail of an invitation, which goes through the organization's own provider accounts.

use tracing::warn;
use waypost_core::acceptance::Acceptance;
use waypost_core::acceptance::draft::{DeliveryMode, Draft};
use waypost_core::address::Mailbox;
use waypost_core::invitation::OpenInvitation;
use waypost_core::message::content::INVITATION_TAG;
use waypost_core::routing::conditions::MessageClass;
use waypost_core::text::{Subject, Tag};
use waypost_core::tracking::TrackingChoice;

use crate::context::Context;
use crate::error::Failure;

/// Mails the link to who is invited. True if the mail is queued: there is a sender, and the
/// organization can send from it.
pub(crate) async fn send(context: &Context, view: &OpenInvitation, url: &str) -> bool {
    let Some(from) = context.invitation_from.clone() else {
        return false;
    };
    let Some(draft) = draft(from, view, url) else {
        return false;
    };
    let organization_id = view.invitation.organization_id;
    match context.accept.acceptor.accept(organization_id, draft).await {
        Ok(answered) => matches!(answered.acceptance, Acceptance::Queued(_)),
        Err(refusal) => {
            let failure = Failure::from(refusal);
            warn!(
                invitation.id = %view.invitation.id,
                status = failure.status().as_u16(),
                "Could not mail an invitation; its link was shown to who invited"
            );
            false
        }
    }
}

/// The message. Without tracking: a tracked link would hold the token in its own URL.
fn draft(from: Mailbox, view: &OpenInvitation, url: &str) -> Option<Draft> {
    let name = &view.organization_name;
    let to = Mailbox::parse(view.invitation.email.as_str()).ok()?;
    let subject = Subject::parse(format!("Invitation to {name}")).ok();
    let subject = subject.or_else(|| Subject::parse("Invitation".to_owned()).ok());
    Some(Draft {
        from: Some(from),
        to: vec![to.into()],
        delivery: DeliveryMode::Private,
        reply_to: None,
        subject,
        html: None,
        text: Some(format!(
            "You are invited to join {name} on Waypost.\n\n\
             Open this link within seven days to accept:\n\n{url}\n\n\
             If you do not know who invited you, ignore this message.\n"
        )),
        template: None,
        tags: Tag::parse(INVITATION_TAG.to_owned()).into_iter().collect(),
        metadata: None,
        unsubscribe_group_id: None,
        tracking: TrackingChoice {
            opens: Some(false),
            clicks: Some(false),
        },
        headers: Vec::new(),
        files: Vec::new(),
        attachments: Vec::new(),
        scheduled_at: None,
        expires_at: Some(view.invitation.expires_at),
        class: MessageClass::Transactional,
        provider_account_id: None,
        test_outcome: None,
        claim: None,
    })
}
