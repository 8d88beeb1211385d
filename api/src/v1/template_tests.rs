//! Sending a template to its author, to see what it looks like.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{ApiResponse, Object, OpenApi};
use waypost_core::acceptance::draft::{DeliveryMode, Draft, DraftRecipient, TemplateUse, distinct};
use waypost_core::acceptance::{AcceptRefusal, Acceptance};
use waypost_core::address::Mailbox;
use waypost_core::auth::Permission;
use waypost_core::ids::TemplateId;
use waypost_core::issue::Issue;
use waypost_core::message::SimulatedOutcome;
use waypost_core::routing::conditions::MessageClass;
use waypost_core::text::locale::Locale;
use waypost_core::text::{Subject, Tag};
use waypost_core::tracking::TrackingChoice;

use crate::context::Context;
use crate::error::{Failure, TEMPLATE};
use crate::fields::Id;
use crate::fields::content::Variables;
use crate::fields::recipients::Mailboxes;
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::idempotency_key::{KeyHeader, stored_answer};
use crate::request::path_id::PathId;
use crate::v1::Section;
use crate::v1::send::SendMessageResponse;
use crate::v1::template_versions::{require_template, version_choice};
use crate::validate::Validated;

/// Recipients of one request.
const TO_MAX: usize = 10;
/// The tag of the messages.
const TAG: &str = "template-test";

pub(crate) struct TemplateTestsApi {
    pub(crate) context: Arc<Context>,
}

/// To whom a template is sent, and with what.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct SendTemplateTestRequest {
    /// One address or an array of up to 10. Each gets a mail of their own.
    to: Validated<Mailboxes<TO_MAX>>,
    /// The variables of the template, which must match its schema.
    variables: Validated<Option<Variables>>,
    /// The id of the version. The default is the current version.
    version_id: Validated<Option<Id>>,
    /// The language of the version, instead of `versionId`: its current version is sent, or
    /// that of the next less exact language, or of the default.
    locale: Validated<Option<Locale>>,
    /// The sender. Required if the version has none.
    from: Validated<Option<Mailbox>>,
    /// The subject, a Handlebars template. Required if the version has none.
    subject: Validated<Option<Subject>>,
}

impl SendTemplateTestRequest {
    /// The draft, or all mistakes in the request.
    fn check(self, id: TemplateId, mut issues: Vec<Issue>) -> Result<Draft, Vec<Issue>> {
        let to = self.to.take("to", &mut issues);
        if to.as_ref().is_some_and(|to| to.0.is_empty()) {
            issues.push(Issue::new("to", "must not be empty"));
        }
        let variables = self.variables.take("variables", &mut issues);
        let version_id = self.version_id.take("versionId", &mut issues);
        let locale = self.locale.take("locale", &mut issues);
        let choice = version_choice(version_id, locale, &mut issues);
        let from = self.from.take("from", &mut issues);
        let subject = self.subject.take("subject", &mut issues);
        let draft = (|| {
            let template = TemplateUse {
                template_id: Some(id),
                choice: choice?,
                variables: variables?.unwrap_or_default().0,
                is_test_send: true,
            };
            let to = to?.0.into_iter().map(DraftRecipient::from).collect();
            Some(draft_of(template, distinct(to), from?, subject?))
        })();
        draft.filter(|_| issues.is_empty()).ok_or(issues)
    }
}

fn draft_of(
    template: TemplateUse,
    to: Vec<DraftRecipient>,
    from: Option<Mailbox>,
    subject: Option<Subject>,
) -> Draft {
    Draft {
        from,
        to,
        delivery: DeliveryMode::Private,
        reply_to: None,
        subject,
        html: None,
        text: None,
        template: Some(template),
        tags: Tag::parse(TAG.to_owned()).into_iter().collect(),
        metadata: None,
        unsubscribe_group_id: None,
        tracking: TrackingChoice::default(),
        headers: Vec::new(),
        files: Vec::new(),
        attachments: Vec::new(),
        scheduled_at: None,
        expires_at: None,
        class: MessageClass::Transactional,
        provider_account_id: None,
        test_outcome: None,
        claim: None,
    }
}

#[derive(ApiResponse)]
enum AcceptedTest {
    /// The message is accepted: it is stored and queued. If all recipients are suppressed,
    /// nothing is stored or sent.
    #[oai(status = 202)]
    Queued(Json<SendMessageResponse>),
}

#[OpenApi(tag = "Section::Templates")]
impl TemplateTestsApi {
    /// Send a template to try it out
    ///
    /// Requires the permission `SEND`, and `TEMPLATES_READ`. Sends a real message, by the same
    /// rules as `POST /v1/send`. Its subject begins with `[Test] `, its tag is
    /// `template-test`, and `{{unsubscribeUrl}}` is an example, unless `variables` defines it.
    #[oai(
        path = "/v1/templates/:id/test-send",
        method = "post",
        operation_id = "send_template_test"
    )]
    async fn send_template_test(
        &self,
        caller: Requires<permission::Send>,

        /// The id of the template.
        id: Path<PathId>,
        /// Makes the request safe to repeat.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<SendTemplateTestRequest, OTHER_BYTES_MAX>,
    ) -> Result<AcceptedTest, Failure> {
        let caller = caller.authorize()?;
        caller.require(Permission::TemplatesRead)?;
        let id: TemplateId = id.0.of(TEMPLATE)?;
        let organization_id = caller.organization_id();
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        if !matches!(claim, Some(Some(_))) {
            // With a key, it may have been sent before the template was removed.
            require_template(&self.context, &caller, id).await?;
        }
        let request = body.take(&mut issues)?;
        let mut draft = request.check(id, issues).map_err(Failure::Invalid)?;
        draft.claim = claim.flatten();
        // What a test key sends goes to no provider.
        draft.test_outcome = caller.is_test().then(SimulatedOutcome::default);
        let accepting = self.context.accept.acceptor.accept(organization_id, draft);
        let answered = accepting.await.map_err(of_template)?;
        if let (Acceptance::Queued(receipt), false) = (&answered.acceptance, answered.is_repeat) {
            let templates = &self.context.templates;
            let origin = caller.origin();
            templates
                .record_test(organization_id, origin, id, receipt.message_id)
                .await?;
        }
        let response = SendMessageResponse::from(answered.acceptance);
        if answered.is_repeat {
            return Err(Failure::Repeated(stored_answer(202, &response)));
        }
        Ok(AcceptedTest::Queued(Json(response)))
    }
}

/// The failure of a request that names its template in the path.
fn of_template(refusal: AcceptRefusal) -> Failure {
    match refusal {
        AcceptRefusal::Template(refusal) => refusal.into(),
        refusal @ (AcceptRefusal::Route(_)
        | AcceptRefusal::Pinned(_)
        | AcceptRefusal::Invalid(_)
        | AcceptRefusal::NotFetched(_)
        | AcceptRefusal::UnknownGroup
        | AcceptRefusal::Suppressed
        | AcceptRefusal::CannotCarry { .. }
        | AcceptRefusal::Before(_)
        | AcceptRefusal::Key(_)
        | AcceptRefusal::Fault(_)) => refusal.into(),
    }
}
