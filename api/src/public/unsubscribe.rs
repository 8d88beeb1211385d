//! The unsubscribe link. It requires no API key: its token names the recipient, and is
//! verified before anything else.

use std::sync::Arc;

use poem::Request;
use poem::http::StatusCode;
use poem_openapi::OpenApi;
use poem_openapi::param::Path;
use serde::Serialize;
use waypost_core::audit::Actor;
use waypost_core::tracking::robot;
use waypost_core::unsubscribe::follow::Subscription;
use waypost_core::unsubscribe::token::{LinkContent, TokenRefusal};

use super::page::HtmlPage;
use crate::context::Context;
use crate::middleware::auth::origin;
use crate::middleware::rate_limits;
use crate::v1::Section;

pub(crate) struct UnsubscribeApi {
    pub(crate) context: Arc<Context>,
}

#[derive(Serialize)]
struct UnsubscribePage {
    sender: String,
    group: Option<String>,
    /// The target of the form, relative to the page: a proxy may serve the API under
    /// another path.
    action: Option<String>,
}

impl UnsubscribePage {
    fn of(subscription: Subscription, action: Option<String>) -> Self {
        Self {
            sender: subscription.sender,
            group: subscription.group,
            action,
        }
    }
}

#[OpenApi(tag = "Section::UnsubscribeLinks")]
impl UnsubscribeApi {
    /// Unsubscribe with the link
    ///
    /// Requires no API key. Adds a suppression for the recipient of the message: for the
    /// message's unsubscribe group, or for all messages if the group was deleted. A
    /// repeated request changes nothing. A request that is not a person's visit changes
    /// nothing either and gets a page with a button to unsubscribe. Such requests come
    /// from link scanners and HTTP libraries (recognized by their `User-Agent`, or by its
    /// absence) and from prefetching clients (`Sec-Purpose: prefetch` and similar
    /// headers).
    #[oai(
        path = "/v1/unsubscribe/:token",
        method = "get",
        operation_id = "unsubscribe_recipient"
    )]
    async fn unsubscribe_recipient(
        &self,
        request: &Request,
        /// The token in the link.
        token: Path<String>,
    ) -> HtmlPage {
        if robot::is_not_page_visit(request.headers()) {
            return self
                .confirm(request, &token, "confirm_unsubscribe", &token)
                .await;
        }
        self.unsubscribe(request, &token).await
    }

    /// Unsubscribe with one click
    ///
    /// Requires no API key. Unsubscribes like `GET`, for the unsubscribe button of a mail
    /// client (RFC 8058). The body is ignored.
    #[oai(
        path = "/v1/unsubscribe/:token",
        method = "post",
        operation_id = "unsubscribe_recipient_by_one_click"
    )]
    async fn unsubscribe_recipient_by_one_click(
        &self,
        request: &Request,
        /// The token in the link.
        token: Path<String>,
    ) -> HtmlPage {
        self.unsubscribe(request, &token).await
    }

    /// Check an unsubscribe link
    ///
    /// Requires no API key. The status tells whether the link is valid. Changes nothing.
    #[oai(
        path = "/v1/unsubscribe/:token",
        method = "head",
        operation_id = "validate_unsubscribe_link"
    )]
    async fn validate_unsubscribe_link(
        &self,
        request: &Request,
        /// The token in the link.
        token: Path<String>,
    ) -> HtmlPage {
        let page = HtmlPage::notice(
            StatusCode::OK,
            "This link is valid",
            "Opening it unsubscribes you.",
        );
        self.check(request, &token, page).await
    }

    /// Show the page to undo an unsubscribe
    ///
    /// Requires no API key. Changes nothing; the page has a button to subscribe again.
    #[oai(
        path = "/v1/unsubscribe/:token/undo",
        method = "get",
        operation_id = "get_undo_unsubscribe"
    )]
    async fn get_undo_unsubscribe(
        &self,
        request: &Request,
        /// The token in the link.
        token: Path<String>,
    ) -> HtmlPage {
        self.confirm(request, &token, "confirm_undo", "undo").await
    }

    /// Undo an unsubscribe
    ///
    /// Requires no API key. Removes the suppression that this link added, and no other.
    #[oai(
        path = "/v1/unsubscribe/:token/undo",
        method = "post",
        operation_id = "undo_unsubscribe"
    )]
    async fn undo_unsubscribe(
        &self,
        request: &Request,
        /// The token in the link.
        token: Path<String>,
    ) -> HtmlPage {
        let link = match self.read(request, &token).await {
            Ok(link) => link,
            Err(page) => return page,
        };
        let origin = origin(request, Actor::Recipient);
        let suppressions = &self.context.suppressions;
        match suppressions.undo_unsubscribe(&origin, &link).await {
            Ok(Some(undone)) if undone.is_still_suppressed => {
                HtmlPage::new("still_suppressed", &UnsubscribePage::of(undone.to, None))
            }
            Ok(Some(undone)) => {
                let action = format!("../{}", token.0);
                HtmlPage::new(
                    "resubscribed",
                    &UnsubscribePage::of(undone.to, Some(action)),
                )
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

    /// Shows the page `page`, whose form posts to `action`, without a change.
    async fn confirm(&self, request: &Request, token: &str, page: &str, action: &str) -> HtmlPage {
        let link = match self.read(request, token).await {
            Ok(link) => link,
            Err(page) => return page,
        };
        match self.context.suppressions.subscription(&link).await {
            Ok(Some(subscription)) => {
                let action = Some(action.to_owned());
                HtmlPage::new(page, &UnsubscribePage::of(subscription, action))
            }
            Ok(None) => invalid(),
            Err(fault) => fault.into(),
        }
    }

    /// Shows the page `valid` if the link is valid, without a change.
    async fn check(&self, request: &Request, token: &str, valid: HtmlPage) -> HtmlPage {
        self.read(request, token)
            .await
            .map_or_else(|page| page, |_| valid)
    }

    /// Reads the token of a link. A token that is not valid counts as an anonymous
    /// request.
    async fn read(&self, request: &Request, token: &str) -> Result<LinkContent, HtmlPage> {
        let now = self.context.clock.now();
        match self.context.unsubscribe_tokens.read(token, now) {
            Ok(link) => Ok(link),
            // An expired token is one that we signed, so it is not counted.
            Err(refusal @ TokenRefusal::Expired) => Err(refused(refusal)),
            Err(refusal @ TokenRefusal::Invalid) => {
                Err(match rate_limits::count_anonymous(request).await {
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
        TokenRefusal::Expired => HtmlPage::notice(
            StatusCode::GONE,
            "This link has expired",
            "Please use the link in a newer message, or contact the sender.",
        ),
    }
}

fn invalid() -> HtmlPage {
    HtmlPage::notice(
        StatusCode::BAD_REQUEST,
        "This link is not valid",
        "Part of it may be missing. Please copy the whole link from the message, or contact the sender.",
    )
}
