//! Sending the due recipients of one chunk: claim, compose, write the attempt,
//! call, settle.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};
use waypost_core::clock::Clock;
use waypost_core::config::SendingSettings;
use waypost_core::db::{self, OrFault};
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::ids::Ids;
use waypost_core::message::compose;
use waypost_core::provider::account::Accounts;
use waypost_core::provider::mail::OutgoingMail;
use waypost_core::provider::outcome::{Blame, SendOutcome};
use waypost_core::provider::{Access, adapter};
use waypost_core::queue::attempt::NewAttempt;
use waypost_core::queue::backend::JobEnd;
use waypost_core::queue::jobs::SendJob;
use waypost_core::queue::lease::{self, LeasedRecipient};
use waypost_core::queue::outcome::AttemptOutcome;
use waypost_core::queue::retry::{self, Circumstance, Standing};
use waypost_core::routing::Enquiry;
use waypost_core::suppression;
use waypost_core::tracking::TrackedCopy;
use waypost_core::tracking::link::Tracker;
use waypost_core::unsubscribe::link::{LinkUse, Links};

use crate::ledger::{Claim, Ledger, Settlement};
use crate::senders::{Sender, Senders};
use crate::tenure::Tenures;

/// Calls that one chunk has under way at once, so that one large send does not
/// take all of a worker.
const CHUNK_CALLS_MAX: usize = 16;
/// Large messages that are worked on at the same time.
const LARGE_MESSAGES_MAX: usize = 2;
/// When a job comes again that could not be claimed because Postgres was away.
const CLAIM_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Why a job could not even be claimed, for the queue's log.
pub(crate) type JobError = Box<dyn std::error::Error + Send + Sync>;

/// What sending works with.
pub(crate) struct Sending {
    pub(crate) ledger: Ledger,
    pub(crate) senders: Senders,
    pub(crate) accounts: Accounts,
    pub(crate) tenures: Tenures,
    pub(crate) tracker: Tracker,
    pub(crate) links: Links,
    pub(crate) ids: Ids,
    pub(crate) clock: Clock,
    pub(crate) settings: SendingSettings,
    /// No new call is made once the process is told to stop.
    pub(crate) shutdown: CancellationToken,
}

/// The handler of [`SendJob`]s. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SendMessage {
    sending: Arc<Sending>,
    calls: Arc<Semaphore>,
    /// Large messages under way.
    large: Arc<Semaphore>,
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
        let large = Arc::new(Semaphore::new(LARGE_MESSAGES_MAX));
        Self {
            sending,
            calls,
            large,
        }
    }

    /// Runs one job. Only a claim that could not be made brings it again; from
    /// there on Postgres knows when the chunk is due.
    pub(crate) async fn run(&self, job: SendJob) -> Result<JobEnd, JobError> {
        let claim = match self.sending.ledger.claim(job).await {
            Ok(Some(claim)) => claim,
            Ok(None) => return Ok(JobEnd::Done),
            Err(fault) if fault.kind() == FaultKind::Unavailable => {
                debug!(cause = fault.chain(), "A job waits for Postgres");
                return Ok(JobEnd::Snooze(CLAIM_AGAIN_AFTER));
            }
            Err(fault) => return Err(fault.chain().into()),
        };
        self.work_off(claim).await;
        Ok(JobEnd::Done)
    }

    /// Sends to a chunk's recipients and ends its lease. Where something could not
    /// be recorded the lease is left to the reaper.
    async fn work_off(&self, mut claim: Claim) {
        let large = claim.message.body_left_out;
        // One large message at a time, one copy at a time: its copies are made in
        // memory.
        let _permit = if large {
            Some(self.large.acquire().await)
        } else {
            None
        };
        if large && let Err(fault) = self.load_body(&mut claim).await {
            warn!(cause = fault.chain(), "A large message could not be read");
            self.sending.tenures.give_up(claim.worker);
            return;
        }
        let content = &claim.message.content;
        let html = content.html.as_deref();
        claim.plan = self.sending.tracker.plan(html, content.tracking);
        if let [recipient] = claim.recipients.as_slice() {
            let mut settlement = self.send(&claim, recipient).await;
            settlement.finished = true;
            self.sending.ledger.settle(settlement).await;
            return;
        }
        let calls = if large { 1 } else { CHUNK_CALLS_MAX };
        let lost = AtomicBool::new(false);
        stream::iter(&claim.recipients)
            .for_each_concurrent(calls, |recipient| async {
                let settlement = self.send(&claim, recipient).await;
                if !self.sending.ledger.settle(settlement).await {
                    lost.store(true, Ordering::Relaxed);
                }
            })
            .await;
        if !lost.into_inner() {
            let mut settlement = Settlement::of(&claim);
            settlement.finished = true;
            self.sending.ledger.settle(settlement).await;
        }
    }

    async fn load_body(&self, claim: &mut Claim) -> Result<(), Fault> {
        let mut message = (*claim.message).clone();
        let content = &mut message.content;
        let pool = &self.sending.accounts.pool;
        let read = db::bounded("read a large message", async {
            let mut connection = pool.acquire().await.or_fault("read a large message")?;
            lease::load_body(&mut connection, content.organization_id, content.id).await
        });
        (content.html, content.text) = read.await?;
        claim.message = Arc::new(message);
        Ok(())
    }

    /// Tries one recipient and says what there is to record of it. Nothing is
    /// composed before the call has its permit, so memory is bounded by the calls.
    async fn send(&self, claim: &Claim, recipient: &LeasedRecipient) -> Settlement {
        let sending = &self.sending;
        let content = &claim.message.content;
        let mut attempt = NewAttempt {
            id: sending.ids.next(),
            message_id: content.id,
            organization_id: content.organization_id,
            position: recipient.position,
            address_hash: recipient.address_hash,
            provider_account_id: claim.message.provider_account_id,
            started_at: sending.clock.now(),
        };
        let Ok(_permit) = self.calls.acquire().await else {
            return untried(claim, recipient);
        };
        if sending.shutdown.is_cancelled() || !sending.tenures.may_call(claim.worker) {
            return untried(claim, recipient);
        }
        // The wait for the permit may have been long, and links say when they were sent.
        attempt.started_at = sending.clock.now();
        let (sender, mail) = match self.prepare(claim, recipient, &attempt).await {
            Ok(Some(prepared)) => prepared,
            Ok(None) => {
                let reason =
                    "no active provider account takes a message from this sender".to_owned();
                return self.not_called(
                    Try {
                        claim,
                        recipient,
                        attempt,
                    },
                    reason,
                );
            }
            Err(fault) if fault.kind() == FaultKind::Unavailable => {
                warn!(cause = fault.chain(), "A message waits for Postgres");
                return untried(claim, recipient);
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
        let mut mail = compose::compose(
            content,
            recipient.position,
            &recipient.address_sealed,
            attempt.id,
            sealer,
        )?;
        let copy = TrackedCopy {
            organization_id: content.organization_id,
            message_id: content.id,
            position: recipient.position,
            issued_at: attempt.started_at,
        };
        self.sending.tracker.add_to(&mut mail, &claim.plan, copy);
        if let Some(unsubscribe_group_id) = content.unsubscribe_group_id {
            let this = LinkUse {
                organization_id: content.organization_id,
                unsubscribe_group_id,
                at: attempt.started_at,
            };
            self.sending.links.add_to(&mut mail, this);
        }
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
        let sending = &self.sending;
        let begun = sending.ledger.begin_attempt(this.attempt).await;
        if let Ok(false) = begun {
            return self.dropped(&this);
        }
        if let Err(fault) = &begun {
            warn!(
                cause = fault.chain(),
                "An attempt could not be recorded and is not made"
            );
        }
        // Writing the attempt may have taken long.
        if begun.is_err() || !sending.tenures.may_call(this.claim.worker) {
            let mut settlement = untried(this.claim, this.recipient);
            settlement.withdrawn = Some(this.attempt);
            return settlement;
        }
        let access = Access {
            credentials: &sender.credentials,
            endpoints: &sending.accounts.endpoints,
            now: sending.clock.now(),
        };
        let adapter = adapter(sender.account.provider_type);
        let transport = &sending.accounts.transport;
        let (outcome, status_code) = transport.send(adapter, &access, mail).await;
        self.settlement(this, true, outcome, status_code)
    }

    fn not_called(&self, this: Try<'_>, reason: String) -> Settlement {
        let outcome = SendOutcome::Unavailable {
            retry_after: None,
            reason,
        };
        self.settlement(this, false, outcome, None)
    }

    /// The recipient was suppressed after its message was accepted.
    fn dropped(&self, this: &Try<'_>) -> Settlement {
        let now = self.sending.clock.now().max(this.claim.message.accepted_at);
        let mut settlement = Settlement::of(this.claim);
        settlement.outcome = Some(AttemptOutcome {
            attempt: this.attempt,
            attempted: false,
            outcome: SendOutcome::Rejected {
                blame: Blame::Recipient,
                reason: suppression::REASON.to_owned(),
            },
            status_code: None,
            finished_at: now,
            verdict: retry::suppressed(now),
            event_id: self.sending.ids.next_at(now),
        });
        settlement
    }

    fn settlement(
        &self,
        this: Try<'_>,
        attempted: bool,
        outcome: SendOutcome,
        status_code: Option<u16>,
    ) -> Settlement {
        // Clocks of different machines may disagree: nothing happens to a message
        // before it was accepted.
        let now = self.sending.clock.now().max(this.claim.message.accepted_at);
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
        let mut settlement = Settlement::of(this.claim);
        settlement.outcome = Some(AttemptOutcome {
            attempt: this.attempt,
            attempted,
            outcome,
            status_code,
            finished_at: now,
            verdict,
            event_id: self.sending.ids.next_at(now),
        });
        settlement
    }
}

fn untried(claim: &Claim, recipient: &LeasedRecipient) -> Settlement {
    let mut settlement = Settlement::of(claim);
    settlement.untried = Some(recipient.position);
    settlement
}
