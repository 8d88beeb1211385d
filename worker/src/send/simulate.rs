//! What a simulated provider answers to the call of a test. A test goes through everything that
//! a live message goes through, but for the call, and for what limits calls and learns from
//! them: it neither waits for an account nor says anything about it. Pure.

use waypost_core::delivery::retry::RetryContext;
use waypost_core::message::SimulatedOutcome;
use waypost_core::provider::outcome::{Blame, SendOutcome};

/// The answer, and its HTTP status if there is one. Only the answers to `unknown` and
/// `failover` depend on the calls before.
pub(super) fn answer(
    test_outcome: SimulatedOutcome,
    ctx: RetryContext,
    provider_message_id: String,
) -> (SendOutcome, Option<u16>) {
    let is_first_call = ctx.unknowns == 0
        && ctx.tried == 0
        && ctx.retry_state.rounds == 0
        && !ctx.retry_state.recoverable;
    match test_outcome {
        SimulatedOutcome::Failed | SimulatedOutcome::Suppressed => {
            let refused = SendOutcome::Rejected {
                reason: "the provider refused the message (test)".to_owned(),
                blame: Blame::Message,
            };
            (refused, Some(400))
        }
        SimulatedOutcome::Unknown if is_first_call => {
            let lost = SendOutcome::Unknown {
                reason: "the answer of the provider was lost (test)".to_owned(),
            };
            (lost, None)
        }
        SimulatedOutcome::Failover if is_first_call => {
            let failed = SendOutcome::Unavailable {
                retry_after: None,
                reason: "the provider failed (test)".to_owned(),
            };
            (failed, Some(503))
        }
        SimulatedOutcome::Delivered
        | SimulatedOutcome::Bounced
        | SimulatedOutcome::Complained
        | SimulatedOutcome::Deferred
        | SimulatedOutcome::Unknown
        | SimulatedOutcome::Failover => {
            let accepted = SendOutcome::Accepted {
                provider_message_id: Some(provider_message_id),
            };
            (accepted, Some(200))
        }
    }
}

#[cfg(test)]
mod tests {
    use waypost_core::clock::Timestamp;
    use waypost_core::delivery::retry::RetryState;
    use waypost_core::routing::rule::OnUnknown;

    use super::*;

    fn ctx(unknowns: i32, retry_state: RetryState) -> RetryContext {
        RetryContext {
            unknowns,
            tried_since: Timestamp::UNIX_EPOCH,
            expires_at: None,
            on_unknown: OnUnknown::Wait,
            retry_state,
            tried: usize::try_from(retry_state.candidate).unwrap(),
            candidates: 2,
            skipped: 0,
        }
    }

    #[test]
    fn only_the_first_call_of_a_test_fails() {
        let first = RetryState::default();
        let later = [
            (1, first),
            (
                0,
                RetryState {
                    candidate: 1,
                    recoverable: true,
                    ..first
                },
            ),
            (
                0,
                RetryState {
                    recoverable: true,
                    ..first
                },
            ),
            (0, RetryState { rounds: 1, ..first }),
        ];
        for outcome in [SimulatedOutcome::Unknown, SimulatedOutcome::Failover] {
            let answer = |unknowns, state| answer(outcome, ctx(unknowns, state), "id".to_owned()).0;
            assert!(!matches!(answer(0, first), SendOutcome::Accepted { .. }));
            for (unknowns, state) in later {
                let answer = answer(unknowns, state);
                assert!(matches!(answer, SendOutcome::Accepted { .. }), "{state:?}");
            }
        }
    }
}
