//! What metrics and traces say of a call that sends.

use std::time::Instant;

use waypost_core::ids::ProviderAccountId;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::outcome::SendOutcome;
use waypost_core::telemetry::instruments;
use waypost_core::telemetry::traces::{self, TraceSpan, TraceSpanKind};

use crate::send::sending_accounts::SendingAccount;

/// A call to a provider that carries one mail or many.
pub(super) struct ObservedCall {
    provider: ProviderType,
    began: Instant,
    span: TraceSpan,
}

impl ObservedCall {
    /// The call begins now.
    pub(super) fn begin(account: &SendingAccount) -> Self {
        let ProviderAccountId(id) = account.id;
        let mut span =
            traces::message_span("call provider", TraceSpanKind::Client, traces::current());
        span.set("waypost.provider", account.provider_type.as_str());
        span.set("waypost.provider_account.id", id.to_string());
        Self {
            provider: account.provider_type,
            began: Instant::now(),
            span,
        }
    }

    /// The call has ended, with these outcomes of its mails.
    pub(super) fn end<'a>(
        mut self,
        status_code: Option<u16>,
        outcomes: impl IntoIterator<Item = &'a SendOutcome>,
    ) {
        let provider = self.provider.as_str();
        instruments::send_call(provider, self.began.elapsed());
        if let Some(status_code) = status_code {
            self.span.set("waypost.status_code", i64::from(status_code));
        }
        for (nth, outcome) in outcomes.into_iter().enumerate() {
            let name = outcome.as_str();
            instruments::send_attempt(provider, name);
            if nth == 0 {
                self.span.set("waypost.outcome", name);
            }
            match outcome {
                SendOutcome::Accepted { .. } => {}
                SendOutcome::Rejected { .. }
                | SendOutcome::Deferred { .. }
                | SendOutcome::Throttled { .. }
                | SendOutcome::AccountUnusable { .. }
                | SendOutcome::Unavailable { .. }
                | SendOutcome::Unknown { .. } => self.span.fail("a mail was not accepted"),
            }
        }
    }
}
