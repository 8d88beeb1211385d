//! Magic words in credentials. They have the same effect for every provider.

use http::StatusCode;

use crate::reply::{self, Answer};

/// The page of a firewall in front of an API, which blocks the call.
const FIREWALL_PAGE: &str = "<!DOCTYPE html>\n<html><head><title>403 Forbidden</title></head>\n\
    <body><center><h1>403 Forbidden</h1></center><hr><center>cloud</center></body></html>\n";

/// The behaviour that a credential selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CredentialKind {
    Good,
    /// `invalid`: rejected as a wrong credential.
    Invalid,
    /// `noscope`: authenticates, but may not send.
    NoSendScope,
    /// `restricted`: may only send.
    SendOnly,
    /// `nocredit`: the account has used up its quota.
    NoCredit,
    /// `htmlwall`: a firewall in front of the API blocks the call.
    Firewall,
}

impl CredentialKind {
    pub(crate) fn of(credential: &str) -> Self {
        // If the credential contains several words, the first of this list wins.
        const WORDS: [(&str, CredentialKind); 5] = [
            ("htmlwall", CredentialKind::Firewall),
            ("invalid", CredentialKind::Invalid),
            ("noscope", CredentialKind::NoSendScope),
            ("restricted", CredentialKind::SendOnly),
            ("nocredit", CredentialKind::NoCredit),
        ];
        WORDS
            .iter()
            .find(|(word, _)| credential.contains(word))
            .map_or(Self::Good, |(_, credential_kind)| *credential_kind)
    }
}

/// Whether the account has SendGrid's Email Activity: all accounts but `noactivity`.
pub(crate) fn has_activity(credential: &str) -> bool {
    !credential.contains("noactivity")
}

/// The response for [`CredentialKind::Firewall`].
pub(crate) fn firewall_page() -> Answer {
    reply::html(StatusCode::FORBIDDEN, FIREWALL_PAGE)
}
