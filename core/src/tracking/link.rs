//! The pixel and the links of a copy. What all copies of a message share is found
//! once, in a *plan*; a copy then costs its tokens and one pass of copying.

use url::Url;

use super::html::Places;
use super::token::TrackingTokens;
use super::{TrackedRecipient, Tracking};
use crate::clock::Timestamp;
use crate::config::Settings;
use crate::provider::mail::OutgoingMail;
use crate::unsubscribe::link::PATH as UNSUBSCRIBE_PATH;

/// What of a link's path stands before the token.
const CLICK_PATH: &str = "/v1/t/c/";
/// What of a pixel's path stands before the token.
const OPEN_PATH: &str = "/v1/t/o/";

/// What is to be put into the copies of one body, and where.
#[derive(Debug, Default)]
pub struct Plan {
    /// Nothing where there is nothing to put in.
    places: Option<Places>,
    tracking: Tracking,
}

impl Plan {
    /// How many links of each copy are replaced.
    #[must_use]
    pub fn links(&self) -> usize {
        self.places.as_ref().map_or(0, Places::links)
    }
}

/// Knows the links that we put into copies, wherever they come back. Cheap to clone.
#[derive(Debug, Clone)]
pub struct OwnLinks {
    tokens: TrackingTokens,
    /// What the URL of a tracked link begins with.
    click: String,
    /// What the URL of an unsubscribe link begins with.
    unsubscribe: String,
}

impl OwnLinks {
    /// Knows those that lead to the public URL.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        // As a browser writes it, which is how providers tell it.
        let public_url = &settings.links.public_url;
        let written = Url::parse(public_url).map(String::from);
        let written = written.as_deref().unwrap_or(public_url);
        let written = written.trim_end_matches('/');
        Self {
            tokens: TrackingTokens::new(settings),
            click: format!("{written}{CLICK_PATH}"),
            unsubscribe: format!("{written}{UNSUBSCRIBE_PATH}"),
        }
    }

    /// What to show in place of a link of ours that somebody followed: where a tracked one
    /// leads, and an unsubscribe link without its token. Nothing where it is none of ours.
    #[must_use]
    pub fn shown_as(&self, url: &str, now: Timestamp) -> Option<String> {
        let url = String::from(Url::parse(url).ok()?);
        if url.starts_with(&self.unsubscribe) {
            return Some(self.unsubscribe.clone());
        }
        // Whatever was added behind it, such as another service's parameters.
        let token = url.strip_prefix(&self.click)?.split(['?', '#', '/']).next();
        // An old one still leads there.
        Some(self.tokens.read_click(token?, now)?.target)
    }
}

/// Puts pixels and links into copies. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tracker {
    tokens: TrackingTokens,
    public_url: String,
    /// What the URLs begin with that lead to us.
    own: String,
}

impl Tracker {
    /// Makes links that lead to the public URL.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let public_url = settings.links.public_url.clone();
        Self {
            tokens: TrackingTokens::new(settings),
            own: format!("{public_url}/v1/"),
            public_url,
        }
    }

    /// Reads a message's HTML body, if anything of it is tracked.
    #[must_use]
    pub fn plan(&self, html: Option<&str>, tracking: Tracking) -> Plan {
        let html = html.filter(|html| (tracking.opens || tracking.clicks) && !html.is_empty());
        Plan {
            places: html.map(|html| {
                let places = Places::of(html, &self.own);
                if tracking.clicks {
                    places
                } else {
                    places.without_links()
                }
            }),
            tracking,
        }
    }

    /// Gives a copy its pixel and its links. Its HTML is the one that was planned.
    pub fn add_to(&self, mail: &mut OutgoingMail, plan: &Plan, copy: TrackedRecipient) {
        let (Some(html), Some(places)) = (&mut mail.html, &plan.places) else {
            return;
        };
        let link = |url: &str| {
            let token = self.tokens.issue_click(copy, url);
            format!("{}{CLICK_PATH}{token}", self.public_url)
        };
        let pixel = plan.tracking.opens.then(|| self.pixel(copy));
        *html = places.fill(html, link, pixel.as_deref());
    }

    /// Not hidden: some programs load nothing that is.
    fn pixel(&self, copy: TrackedRecipient) -> String {
        let token = self.tokens.issue_open(copy);
        format!(
            "<img src=\"{}{OPEN_PATH}{token}\" alt=\"\" width=\"1\" height=\"1\" style=\"border:0;width:1px;height:1px\">",
            self.public_url
        )
    }
}
