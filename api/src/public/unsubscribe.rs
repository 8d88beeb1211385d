//! The unsubscribe link. It requires no API key: its token names the recipient, and is
//! verified before anything else.

use std::sync::Arc;

use poem::Request;
use poem_openapi::OpenApi;
use poem_openapi::param::Path;
use waypost_core::audit::Actor;
use waypost_core::tracking::robot;
use waypost_core::unsubscribe::follow::Subscription;
use waypost_core::unsubscribe::token::{LinkContent, TokenRefusal};

use super::page::{HtmlPage, LinkPage, Pages, SubscriptionContent, SubscriptionPage};
use crate::context::Context;
use crate::middleware::auth::origin;
use crate::middleware::rate_limits;
use crate::v1::Section;

pub(crate) struct UnsubscribeApi {
    pub(crate) context: Arc<Context>,
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
            let page = SubscriptionPage::ConfirmUnsubscribe;
            return self.confirm(request, &token, page, &token).await;
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
        match self.read(request, &token).await {
            Ok(_) => Pages::of(request).link(LinkPage::Valid),
            Err(page) => page,
        }
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
        let page = SubscriptionPage::ConfirmUndo;
        self.confirm(request, &token, page, "undo").await
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
        let pages = Pages::of(request);
        let suppressions = &self.context.suppressions;
        match suppressions.undo_unsubscribe(&origin, &link).await {
            Ok(Some(undone)) => {
                let (page, action) = match undone.is_still_suppressed {
                    true => (SubscriptionPage::StillSuppressed, None),
                    false => {
                        let action = format!("../{}", token.0);
                        (SubscriptionPage::Resubscribed, Some(action))
                    }
                };
                pages.subscription(page, &content(undone.to, &link, action))
            }
            Ok(None) => pages.link(LinkPage::Invalid),
            Err(fault) => pages.fault(fault),
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
        let pages = Pages::of(request);
        match self.context.suppressions.unsubscribe(&origin, &link).await {
            Ok(Some(done)) => {
                let action = done.can_undo.then(|| format!("{token}/undo"));
                let content = content(done.from, &link, action);
                pages.subscription(SubscriptionPage::Unsubscribed, &content)
            }
            Ok(None) => pages.link(LinkPage::Invalid),
            Err(fault) => pages.fault(fault),
        }
    }

    /// Shows the page `page`, whose form posts to `action`, without a change.
    async fn confirm(
        &self,
        request: &Request,
        token: &str,
        page: SubscriptionPage,
        action: &str,
    ) -> HtmlPage {
        let link = match self.read(request, token).await {
            Ok(link) => link,
            Err(page) => return page,
        };
        let pages = Pages::of(request);
        match self.context.suppressions.subscription(&link).await {
            Ok(Some(subscription)) => {
                let action = Some(action.to_owned());
                pages.subscription(page, &content(subscription, &link, action))
            }
            Ok(None) => pages.link(LinkPage::Invalid),
            Err(fault) => pages.fault(fault),
        }
    }

    /// Reads the token of a link. A token that is not valid counts as an anonymous
    /// request.
    async fn read(&self, request: &Request, token: &str) -> Result<LinkContent, HtmlPage> {
        let now = self.context.clock.now();
        let pages = Pages::of(request);
        match self.context.unsubscribe_tokens.read(token, now) {
            Ok(link) => Ok(link),
            // An expired token is one that we signed, so it is not counted.
            Err(TokenRefusal::Expired) => Err(pages.link(LinkPage::Expired)),
            Err(TokenRefusal::Invalid) => Err(match rate_limits::count_anonymous(request).await {
                Ok(()) => pages.link(LinkPage::Invalid),
                Err(wait) => pages.too_many(wait),
            }),
        }
    }
}

fn content(
    subscription: Subscription,
    link: &LinkContent,
    action: Option<String>,
) -> SubscriptionContent {
    SubscriptionContent {
        subscription,
        address: link.address.masked(),
        action,
    }
}
