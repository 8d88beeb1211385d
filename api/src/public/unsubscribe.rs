//! The unsubscribe link. It needs no key: its token says who follows it, and is
//! checked before anything else.

use std::sync::Arc;

use poem::Request;
use poem::http::StatusCode;
use poem_openapi::OpenApi;
use poem_openapi::param::Path;
use serde::Serialize;
use waypost_core::audit::Actor;
use waypost_core::tracking::robot;
use waypost_core::unsubscribe::follow::Correspondence;
use waypost_core::unsubscribe::token::{LinkContent, TokenRefusal};

use super::page::HtmlPage;
use crate::auth::origin;
use crate::context::Context;
use crate::middleware::rate_limits;
use crate::v1::Section;

pub(crate) struct UnsubscribeApi {
    pub(crate) context: Arc<Context>,
}

#[derive(Serialize)]
struct UnsubscribePage {
    sender: String,
    group: Option<String>,
    /// Where the page's form leads, relative to the page: whatever stands in front
    /// of the API may serve it under another path.
    action: Option<String>,
}

impl UnsubscribePage {
    fn of(correspondence: Correspondence, action: Option<String>) -> Self {
        Self {
            sender: correspondence.sender,
            group: correspondence.group,
            action,
        }
    }
}

#[OpenApi(tag = "Section::UnsubscribeLinks")]
impl UnsubscribeApi {
    /// Unsubscribe by a link
    ///
    /// Needs no key. Suppresses the recipient that the link was made for, in the group
    /// that the message was sent in, or everywhere where the group is no more. Doing
    /// it again changes nothing. A request that is no person's, by its `User-Agent` (a
    /// scanner's or a library's, or none) or because it is ahead of its reader
    /// (`Sec-Purpose: prefetch` and its like), changes nothing and gets a page with a
    /// button that does it.
    #[oai(
        path = "/v1/unsubscribe/:token",
        method = "get",
        operation_id = "unsubscribe_recipient"
    )]
    async fn unsubscribe_recipient(
        &self,
        request: &Request,
        /// The token of the link.
        token: Path<String>,
    ) -> HtmlPage {
        if robot::is_no_visit(request.headers()) {
            return self.offer(request, &token, "offered", &token).await;
        }
        self.unsubscribe(request, &token).await
    }

    /// Unsubscribe by one click
    ///
    /// Needs no key. What `GET` does, for the button of a mail program (RFC 8058);
    /// whatever the body holds.
    #[oai(
        path = "/v1/unsubscribe/:token",
        method = "post",
        operation_id = "unsubscribe_recipient_by_one_click"
    )]
    async fn unsubscribe_recipient_by_one_click(
        &self,
        request: &Request,
        /// The token of the link.
        token: Path<String>,
    ) -> HtmlPage {
        self.unsubscribe(request, &token).await
    }

    /// Look at an unsubscribe link
    ///
    /// Needs no key. Says by its status whether the link is valid, and changes nothing.
    #[oai(
        path = "/v1/unsubscribe/:token",
        method = "head",
        operation_id = "validate_unsubscribe_link"
    )]
    async fn validate_unsubscribe_link(
        &self,
        request: &Request,
        /// The token of the link.
        token: Path<String>,
    ) -> HtmlPage {
        let page = HtmlPage::note(
            StatusCode::OK,
            "This link is valid",
            "Following it unsubscribes you.",
        );
        self.look(request, &token, page).await
    }

    /// Show the page that undoes an unsubscribe
    ///
    /// Needs no key. Changes nothing: the page has a button that does it.
    #[oai(
        path = "/v1/unsubscribe/:token/undo",
        method = "get",
        operation_id = "get_undo_unsubscribe"
    )]
    async fn get_undo_unsubscribe(
        &self,
        request: &Request,
        /// The token of the link.
        token: Path<String>,
    ) -> HtmlPage {
        self.offer(request, &token, "undo_offered", "undo").await
    }

    /// Undo an unsubscribe
    ///
    /// Needs no key. Removes the suppression that following the link made, and no
    /// other.
    #[oai(
        path = "/v1/unsubscribe/:token/undo",
        method = "post",
        operation_id = "undo_unsubscribe"
    )]
    async fn undo_unsubscribe(
        &self,
        request: &Request,
        /// The token of the link.
        token: Path<String>,
    ) -> HtmlPage {
        let link = match self.read(request, &token).await {
            Ok(link) => link,
            Err(page) => return page,
        };
        let origin = origin(request, Actor::Recipient);
        let suppressions = &self.context.suppressions;
        match suppressions.undo_unsubscribe(&origin, &link).await {
            Ok(Some(undone)) if undone.is_held => {
                HtmlPage::new("held", &UnsubscribePage::of(undone.to, None))
            }
            Ok(Some(undone)) => {
                let action = format!("../{}", token.0);
                HtmlPage::new("undone", &UnsubscribePage::of(undone.to, Some(action)))
            }
            Ok(None) => invalid(),
            Err(fault) => fault.into(),
        }
    }
}

impl UnsubscribeApi {
    async fn unsubscribe(&self, request: &Request, token: &str) -> HtmlPage {
        let link = match self.read(request, token).await {
            Ok(link) => link,
            Err(page) => return page,
        };
        let origin = origin(request, Actor::Recipient);
        match self.context.suppressions.unsubscribe(&origin, &link).await {
            Ok(Some(done)) => {
                let action = done.can_undo.then(|| format!("{token}/undo"));
                HtmlPage::new("unsubscribed", &UnsubscribePage::of(done.from, action))
            }
            Ok(None) => invalid(),
            Err(fault) => fault.into(),
        }
    }

    /// Changes nothing; the page of this name, whose button leads to `action`.
    async fn offer(&self, request: &Request, token: &str, page: &str, action: &str) -> HtmlPage {
        let link = match self.read(request, token).await {
            Ok(link) => link,
            Err(page) => return page,
        };
        match self.context.suppressions.correspondence(&link).await {
            Ok(Some(correspondence)) => {
                let action = Some(action.to_owned());
                HtmlPage::new(page, &UnsubscribePage::of(correspondence, action))
            }
            Ok(None) => invalid(),
            Err(fault) => fault.into(),
        }
    }

    /// Changes nothing; the page for a link that is valid.
    async fn look(&self, request: &Request, token: &str, valid: HtmlPage) -> HtmlPage {
        self.read(request, token)
            .await
            .map_or_else(|page| page, |_| valid)
    }

    /// What a link says. One that is not valid counts as a stranger's request.
    async fn read(&self, request: &Request, token: &str) -> Result<LinkContent, HtmlPage> {
        let now = self.context.clock.now();
        match self.context.unsubscribe_tokens.read(token, now) {
            Ok(link) => Ok(link),
            // It was one of ours.
            Err(refusal @ TokenRefusal::Expired) => Err(refused(refusal)),
            Err(refusal @ TokenRefusal::Invalid) => {
                Err(match rate_limits::count_stranger(request).await {
                    Ok(()) => refused(refusal),
                    Err(wait) => HtmlPage::too_many(wait),
                })
            }
        }
    }
}

fn refused(refusal: TokenRefusal) -> HtmlPage {
    match refusal {
        TokenRefusal::Invalid => invalid(),
        TokenRefusal::Expired => HtmlPage::note(
            StatusCode::GONE,
            "This link has expired",
            "Please use the link in a newer message, or write to the sender.",
        ),
    }
}

fn invalid() -> HtmlPage {
    HtmlPage::note(
        StatusCode::BAD_REQUEST,
        "This link is not valid",
        "Perhaps a part of it is missing. Please copy the whole link from the message, or write to the sender.",
    )
}
