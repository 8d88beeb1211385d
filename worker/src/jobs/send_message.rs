//! Sending the due recipients of one chunk: claim, compose, write the attempt,
//! call, settle.

use std::sync::Arc;
use std::time::Duration;

use apalis::prelude::BoxDynError;
use futures_util::{StreamExt as _, stream};
use tokio::sync::Semaphore;
use tracing::{debug, error, warn};
use waypost_core::clock::Clock;
use waypost_core::config::SendingSettings;
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::ids::Ids;
use waypost_core::message::compose;
use waypost_core::provider::account::Accounts;
use waypost_core::provider::mail::OutgoingMail;
use waypost_core::provider::outcome::SendOutcome;
use waypost_core::provider::{Access, adapter};
use waypost_core::queue::attempt::NewAttempt;
use waypost_core::queue::backend::JobEnd;
use waypost_core::queue::jobs::SendJob;
use waypost_core::queue::lease::LeasedRecipient;
use waypost_core::queue::outcome::AttemptOutcome;
use waypost_core::queue::retry::{self, Circumstance, Standing};
use waypost_core::routing::Enquiry;

use crate::ledger::{Claim, Ledger, Settlement};
use crate::senders::{Sender, Senders};
use crate::tenure::Tenures;

/// Calls that one chunk has under way at once, so that one large send does not
/// take all of a worker.
const CHUNK_CALLS_MAX: usize = 16;
/// When a job comes again that could not be claimed because Postgres was away.
const CLAIM_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// What sending works with.
pub(crate) struct Sending {
    pub(crate) ledger: Ledger,
    pub(crate) senders: Senders,
    pub(crate) accounts: Accounts,
    pub(crate) tenures: Tenures,
    pub(crate) ids: Ids,
    pub(crate) clock: Clock,
    pub(crate) settings: SendingSettings,
}

/// The handler of [`SendJob`]s. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SendMessage {
    sending: Arc<Sending>,
    calls: Arc<Semaphore>,
}

/// One recipient's try so far.
struct Try<'a> {
    claim: &'a Claim,
    recipient: &'a LeasedRecipient,
    attempt: NewAttempt,
}

impl SendMessage {
    pub(crate) fn new(sending: Arc<Sending>) -> Self {
        let calls = Arc::new(Semaphore::new(sending.settings.concurrency));
        Self { sending, calls }
    }

    /// Runs one job. Only a claim that could not be made brings it again; from
    /// there on Postgres knows when the chunk is due.
    pub(crate) async fn run(&self, job: SendJob) -> Result<JobEnd, BoxDynError> {
        let claim = match self.sending.ledger.claim(job).await {
            Ok(Some(claim)) => claim,
            Ok(None) => return Ok(JobEnd::Done),
            Err(fault) if fault.kind() == FaultKind::Unavailable => {
                debug!(cause = fault.chain(), "A job waits for Postgres");
                return Ok(JobEnd::Snooze(CLAIM_AGAIN_AFTER));
            }
            Err(fault) => return Err(fault.chain().into()),
        };
        self.work_off(&claim).await;
        Ok(JobEnd::Done)
    }

    async fn work_off(&self, claim: &Claim) {
        let finished = Some((claim.worker, claim.job));
        if let [recipient] = claim.recipients.as_slice() {
            let mut settlement = self.send(claim, recipient).await;
            settlement.finished = finished;
            return self.sending.ledger.settle(claim.worker, settlement).await;
        }
        stream::iter(&claim.recipients)
            .for_each_concurrent(CHUNK_CALLS_MAX, |recipient| async {
                let settlement = self.send(claim, recipient).await;
                self.sending.ledger.settle(claim.worker, settlement).await;
            })
            .await;
        let settlement = Settlement {
            finished,
            ..Settlement::default()
        };
        self.sending.ledger.settle(claim.worker, settlement).await;
    }

    /// Tries one recipient and says what there is to record of it.
    async fn send(&self, claim: &Claim, recipient: &LeasedRecipient) -> Settlement {
        let content = &claim.message.content;
        let mut attempt = NewAttempt {
            id: self.sending.ids.next(),
            message_id: content.id,
            organization_id: content.organization_id,
            position: recipient.position,
            provider_account_id: claim.message.provider_account_id,
            started_at: self.sending.clock.now(),
        };
        let prepared = self.prepare(claim, recipient, &attempt).await;
        let (sender, mail) = match prepared {
            Ok(Some(prepared)) => prepared,
            Ok(None) => {
                let reason = "there is no active provider account to send through".to_owned();
                return self.not_called(
                    Try {
                        claim,
                        recipient,
                        attempt,
                    },
                    reason,
                );
            }
            Err(fault) => {
                error!(message.id = %content.id, cause = fault.chain(), "A message could not be prepared");
                return self.not_called(
                    Try {
                        claim,
                        recipient,
                        attempt,
                    },
                    fault.to_string(),
                );
            }
        };
        attempt.provider_account_id = sender.account.id;
        self.call(
            Try {
                claim,
                recipient,
                attempt,
            },
            &sender,
            &mail,
        )
        .await
    }

    async fn prepare(
        &self,
        claim: &Claim,
        recipient: &LeasedRecipient,
        attempt: &NewAttempt,
    ) -> Result<Option<(Arc<Sender>, OutgoingMail)>, Fault> {
        let content = &claim.message.content;
        let sealer = &self.sending.accounts.sealer;
        let mail = compose::compose(
            content,
            recipient.position,
            &recipient.address_sealed,
            attempt.id,
            sealer,
        )?;
        let preferred = claim.message.provider_account_id;
        let enquiry = Enquiry {
            sender_domain: mail.from.address().domain(),
            tags: content.tags.iter().map(String::as_str).collect(),
        };
        let senders = &self.sending.senders;
        let sender = senders
            .find(content.organization_id, preferred, &enquiry)
            .await?;
        Ok(sender.map(|sender| (sender, mail)))
    }

    /// Writes the attempt and makes the call, unless the lease might end first.
    async fn call(&self, this: Try<'_>, sender: &Sender, mail: &OutgoingMail) -> Settlement {
        let Ok(_permit) = self.calls.acquire().await else {
            return untried(&this);
        };
        let sending = &self.sending;
        if !sending.tenures.may_call(this.claim.worker) {
            return untried(&this);
        }
        if let Err(fault) = sending.ledger.begin_attempt(this.attempt).await {
            warn!(
                cause = fault.chain(),
                "An attempt could not be recorded and was not made"
            );
            return untried(&this);
        }
        // Writing the attempt may have taken long. It stays on record as a call
        // that was never made.
        if !sending.tenures.may_call(this.claim.worker) {
            let outcome = SendOutcome::Unavailable {
                retry_after: None,
                reason: "the lease was about to end".to_owned(),
            };
            return self.settlement(this, true, outcome, None);
        }
        let access = Access {
            credentials: &sender.credentials,
            endpoints: &sending.accounts.endpoints,
            now: sending.clock.now(),
        };
        let adapter = adapter(sender.account.provider_type);
        let (outcome, status_code) = sending
            .accounts
            .transport
            .send(adapter, &access, mail)
            .await;
        self.settlement(this, true, outcome, status_code)
    }

    fn not_called(&self, this: Try<'_>, reason: String) -> Settlement {
        let outcome = SendOutcome::Unavailable {
            retry_after: None,
            reason,
        };
        self.settlement(this, false, outcome, None)
    }

    fn settlement(
        &self,
        this: Try<'_>,
        attempted: bool,
        outcome: SendOutcome,
        status_code: Option<u16>,
    ) -> Settlement {
        let now = self.sending.clock.now();
        let standing = Standing {
            attempts: this.recipient.attempts,
            unknowns: this.recipient.unknowns,
            accepted_at: this.claim.message.accepted_at,
        };
        let here = Circumstance {
            now,
            fraction: self.sending.ids.fraction(),
            answered: status_code.is_some(),
        };
        let verdict = retry::decide(&outcome, standing, &self.sending.settings, here);
        Settlement {
            outcome: Some(AttemptOutcome {
                attempt: this.attempt,
                attempted,
                outcome,
                status_code,
                finished_at: now,
                verdict,
                event_id: self.sending.ids.next_at(now),
            }),
            ..Settlement::default()
        }
    }
}

fn untried(this: &Try<'_>) -> Settlement {
    Settlement {
        untried: Some((this.attempt.message_id, vec![this.recipient.position])),
        ..Settlement::default()
    }
}
