//! Base URLs that replace those of the vendors' APIs: for development with the simulator.

use std::collections::HashMap;

use url::Url;

use super::reader::Reader;
use crate::provider::kind::ProviderType;

pub(super) struct BaseUrls {
    pub(super) providers: HashMap<ProviderType, Url>,
    pub(super) resend: Option<Url>,
}

impl BaseUrls {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let all = reader.optional(
            "WAYPOST_PROVIDER_BASE_URL",
            "Base URL that replaces the API base URL of every provider. For development with the simulator.",
            parse,
        );
        let mut providers = HashMap::new();
        for (kind, name, meaning) in [
            (
                ProviderType::Sendgrid,
                "WAYPOST_SENDGRID_BASE_URL",
                "The same for SendGrid only.",
            ),
            (
                ProviderType::Postmark,
                "WAYPOST_POSTMARK_BASE_URL",
                "The same for Postmark only.",
            ),
            (
                ProviderType::Mailgun,
                "WAYPOST_MAILGUN_BASE_URL",
                "The same for Mailgun only.",
            ),
            (
                ProviderType::Ses,
                "WAYPOST_SES_BASE_URL",
                "The same for Amazon SES only.",
            ),
        ] {
            let own = reader.optional(name, meaning, parse);
            if let Some(url) = own.or_else(|| all.clone()) {
                providers.insert(kind, url);
            }
        }
        let resend = reader.optional(
            "WAYPOST_RESEND_BASE_URL",
            "The same for Resend, which `waypost-api import` reads.",
            parse,
        );
        Self {
            providers,
            resend: resend.or(all),
        }
    }
}

fn parse(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_http = matches!(url.scheme(), "http" | "https");
    (is_http && url.has_host()).then_some(url)
}
