//! The unsubscribe link of a recipient: its URL, and the parts of the mail that contain
//! it. These are the `List-Unsubscribe` headers for the mail program's own button
//! (RFC 2369, and RFC 8058 for one click) and a link in each body.

use super::link_insertion;
use super::token::{LinkContent, UnsubscribeTokens};
use crate::clock::Timestamp;
use crate::config::Settings;
use crate::ids::{OrganizationId, UnsubscribeGroupId};
use crate::provider::mail::OutgoingMail;

/// The path of a link, up to its token.
pub(crate) const PATH: &str = "/v1/unsubscribe/";

/// The parts of a link's token that [`OutgoingMail`] does not have.
#[derive(Debug, Clone, Copy)]
pub struct LinkContext {
    pub organization_id: OrganizationId,
    pub unsubscribe_group_id: UnsubscribeGroupId,
    /// The start of the link's lifetime.
    pub at: Timestamp,
}

/// Makes sure that the HTML of a message that is sent in a group has a visible placeholder
/// for the link. All recipients share the result. Must run before [`Links::add_to`] and
/// before the positions of the links to be tracked are read, since it changes positions.
pub fn ensure_placeholder(html: &mut Option<String>) {
    if let Some(html) = html {
        *html = link_insertion::with_placeholder(html);
    }
}

/// Builds links and adds them to mails. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Links {
    tokens: UnsubscribeTokens,
    public_url: String,
}

impl Links {
    /// Links under the configured public URL.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            tokens: UnsubscribeTokens::new(settings),
            public_url: settings.links.public_url.clone(),
        }
    }

    /// Adds the recipient's link to the bodies and headers of a mail. The HTML must have
    /// passed through [`ensure_placeholder`].
    pub fn add_to(&self, mail: &mut OutgoingMail, context: LinkContext) {
        let Some(address) = mail.first_to().cloned() else {
            return;
        };
        let content = LinkContent {
            organization_id: context.organization_id,
            unsubscribe_group_id: context.unsubscribe_group_id,
            message_id: mail.message_id,
            address,
            issued_at: context.at,
        };
        let url = format!("{}{PATH}{}", self.public_url, self.tokens.issue(&content));
        if let Some(html) = &mut mail.html {
            *html = link_insertion::insert_in_html(html, &url);
        }
        if let Some(text) = &mut mail.text {
            *text = link_insertion::insert_in_text(text, &url);
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
    fn the_longest_link_fits_into_a_header_line_that_every_provider_accepts() {
        let url = PUBLIC_URL_BYTES_MAX + PATH.len() + TOKEN_CHARS_MAX;
        assert!("<>".len() + url + "List-Unsubscribe".len() <= 996);
    }
}
