//! Magic words in credentials. They work the same in every provider's keys and tokens.

use http::StatusCode;

use crate::reply::{self, Answer};

/// The page a network layer in front of an API shows; it is no answer of the API.
const WALL_PAGE: &str = "<!DOCTYPE html>\n<html><head><title>403 Forbidden</title></head>\n\
    <body><center><h1>403 Forbidden</h1></center><hr><center>cloud</center></body></html>\n";

/// What a credential's value asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Good,
    /// `invalid`: refused as a wrong credential.
    Invalid,
    /// `noscope`: authenticates, but may not send.
    NoSendScope,
    /// `restricted`: may only send.
    SendOnly,
    /// `nocredit`: the account has used up its quota.
    NoCredit,
    /// `htmlwall`: something in front of the API refuses.
    Wall,
}

impl Standing {
    pub(crate) fn of(credential: &str) -> Self {
        // One pass over short text; the order decides when several words are present.
        const WORDS: [(&str, Standing); 5] = [
            ("htmlwall", Standing::Wall),
            ("invalid", Standing::Invalid),
            ("noscope", Standing::NoSendScope),
            ("restricted", Standing::SendOnly),
            ("nocredit", Standing::NoCredit),
        ];
        WORDS
            .iter()
            .find(|(word, _)| credential.contains(word))
            .map_or(Self::Good, |(_, standing)| *standing)
    }
}

/// Whether the account bought SendGrid's Email Activity: all did, but for `noactivity`.
pub(crate) fn has_activity(credential: &str) -> bool {
    !credential.contains("noactivity")
}

/// The answer for [`Standing::Wall`].
pub(crate) fn wall() -> Answer {
    reply::html(StatusCode::FORBIDDEN, WALL_PAGE)
}
