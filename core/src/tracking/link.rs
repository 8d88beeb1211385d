//! Writes the pixel and the tracked links into mails. The positions in the body are found
//! once for all recipients of a message, in a [`TrackingPlan`]. Each recipient's mail then
//! only needs its tokens and one pass over the body.

use url::Url;

use super::html::BodyPositions;
use super::token::TrackingTokens;
use super::{TrackedRecipient, Tracking};
use crate::clock::Timestamp;
use crate::config::Settings;
use crate::provider::mail::OutgoingMail;
use crate::unsubscribe::link::PATH as UNSUBSCRIBE_PATH;

/// The path of a tracked link, up to its token.
const CLICK_PATH: &str = "/v1/t/c/";
/// The path of a pixel, up to its token.
const OPEN_PATH: &str = "/v1/t/o/";

/// The insertions into the body of a message.
#[derive(Debug, Default)]
pub struct TrackingPlan {
    /// `None` if the message is not tracked or has no HTML body.
    positions: Option<BodyPositions>,
    tracking: Tracking,
}

impl TrackingPlan {
    /// The number of tracked links.
    #[must_use]
    pub fn links(&self) -> usize {
        self.positions.as_ref().map_or(0, BodyPositions::links)
    }
}

/// Recognizes Waypost's links in the clicks that providers report. Cheap to clone.
#[derive(Debug, Clone)]
pub struct OwnLinks {
    tokens: TrackingTokens,
    click_prefix: String,
    unsubscribe_prefix: String,
}

impl OwnLinks {
    /// Recognizes the links under the configured public URL.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        // Providers report URLs in the normalized form.
        let public_url = &settings.links.public_url;
        let normalized = Url::parse(public_url).map(String::from);
        let normalized = normalized.as_deref().unwrap_or(public_url);
        let normalized = normalized.trim_end_matches('/');
        Self {
            tokens: TrackingTokens::new(settings),
            click_prefix: format!("{normalized}{CLICK_PATH}"),
            unsubscribe_prefix: format!("{normalized}{UNSUBSCRIBE_PATH}"),
        }
    }

    /// The URL to record instead of one of Waypost's links: the target of a tracked link, or
    /// an unsubscribe link without its token. `None` for other URLs.
    #[must_use]
    pub fn resolve(&self, url: &str, now: Timestamp) -> Option<String> {
        let url = String::from(Url::parse(url).ok()?);
        if url.starts_with(&self.unsubscribe_prefix) {
            return Some(self.unsubscribe_prefix.clone());
        }
        // Another service may have appended parameters.
        let token = url.strip_prefix(&self.click_prefix)?;
        let token = token.split(['?', '#', '/']).next()?;
        // An expired link still redirects to its target.
        Some(self.tokens.read_click(token, now)?.target)
    }
}

/// Writes pixels and tracked links into mails. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tracker {
    tokens: TrackingTokens,
    public_url: String,
    /// The prefix of Waypost's own links, which are not tracked.
    own_prefix: String,
}

impl Tracker {
    /// Links under the configured public URL.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let public_url = settings.links.public_url.clone();
        Self {
            tokens: TrackingTokens::new(settings),
            own_prefix: format!("{public_url}/v1/"),
            public_url,
        }
    }

    /// Parses a message's HTML body if opens or clicks are tracked.
    #[must_use]
    pub fn plan(&self, html: Option<&str>, tracking: Tracking) -> TrackingPlan {
        let html = html.filter(|html| (tracking.opens || tracking.clicks) && !html.is_empty());
        TrackingPlan {
            positions: html.map(|html| {
                let positions = BodyPositions::of(html, &self.own_prefix);
                if tracking.clicks {
                    positions
                } else {
                    positions.without_links()
                }
            }),
            tracking,
        }
    }

    /// Writes the recipient's pixel and links into a mail. Its HTML must be the body of the
    /// plan.
    pub fn add_to(
        &self,
        mail: &mut OutgoingMail,
        plan: &TrackingPlan,
        recipient: TrackedRecipient,
    ) {
        let (Some(html), Some(positions)) = (&mut mail.html, &plan.positions) else {
            return;
        };
        let link = |url: &str| {
            let token = self.tokens.issue_click(recipient, url);
            format!("{}{CLICK_PATH}{token}", self.public_url)
        };
        let pixel = plan.tracking.opens.then(|| self.pixel(recipient));
        *html = positions.replace(html, link, pixel.as_deref());
    }

    /// The pixel is not hidden by CSS, because some mail programs do not load hidden images.
    fn pixel(&self, recipient: TrackedRecipient) -> String {
        let token = self.tokens.issue_open(recipient);
        format!(
            "<img src=\"{}{OPEN_PATH}{token}\" alt=\"\" width=\"1\" height=\"1\" style=\"border:0;width:1px;height:1px\">",
            self.public_url
        )
    }
}
