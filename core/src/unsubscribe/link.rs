//! The unsubscribe link of a copy: where it leads, and how it gets into the mail.
//! Headers for the mail program's own button (RFC 2369, and RFC 8058 for one
//! click), and a place in each body.

use super::link_insertion;
use super::token::{LinkContent, UnsubscribeTokens};
use crate::clock::Timestamp;
use crate::config::Settings;
use crate::ids::{OrganizationId, UnsubscribeGroupId};
use crate::provider::mail::OutgoingMail;

/// What of a link's path stands before the token.
pub(crate) const PATH: &str = "/v1/unsubscribe/";

/// Which group a copy is sent in, and when.
#[derive(Debug, Clone, Copy)]
pub struct LinkUse {
    pub organization_id: OrganizationId,
    pub unsubscribe_group_id: UnsubscribeGroupId,
    /// When the copy is made: from then on the link is valid.
    pub at: Timestamp,
}

/// Gives the HTML of a message that is sent in a group the place for its link, the same
/// in all copies: before [`Links::add_to`], and before anybody reads where its other links
/// stand.
pub fn place_in(html: &mut Option<String>) {
    if let Some(html) = html {
        *html = link_insertion::in_all_copies(html);
    }
}

/// Makes links. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Links {
    tokens: UnsubscribeTokens,
    public_url: String,
}

impl Links {
    /// Makes links that lead to the public URL.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            tokens: UnsubscribeTokens::new(settings),
            public_url: settings.links.public_url.clone(),
        }
    }

    /// Gives a copy its recipient's own link. Its message's HTML is one that [`place_in`]
    /// saw.
    pub fn add_to(&self, mail: &mut OutgoingMail, this: LinkUse) {
        let content = LinkContent {
            organization_id: this.organization_id,
            unsubscribe_group_id: this.unsubscribe_group_id,
            message_id: mail.message_id,
            address: mail.to.address().clone(),
            issued_at: this.at,
        };
        let url = format!("{}{PATH}{}", self.public_url, self.tokens.issue(&content));
        if let Some(html) = &mut mail.html {
            *html = link_insertion::in_html(html, &url);
        }
        if let Some(text) = &mut mail.text {
            *text = link_insertion::in_text(text, &url);
        }
        mail.headers
            .push(("List-Unsubscribe".to_owned(), format!("<{url}>")));
        mail.headers.push((
            "List-Unsubscribe-Post".to_owned(),
            "List-Unsubscribe=One-Click".to_owned(),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::token::TOKEN_CHARS_MAX;
    use super::*;
    use crate::config::PUBLIC_URL_BYTES_MAX;

    #[test]
    fn the_longest_link_fits_the_header_that_every_provider_takes() {
        let url = PUBLIC_URL_BYTES_MAX + PATH.len() + TOKEN_CHARS_MAX;
        assert!("<>".len() + url + "List-Unsubscribe".len() <= 996);
    }
}
