//! The state of a running simulator: its settings, captured messages, and configuration.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::callbacks::Callbacks;
use crate::capture::CaptureStore;
use crate::domains::Domains;
use crate::faults::Faults;
use crate::ids::Ids;
use crate::providers::{MailgunWebhooks, PostmarkWebhooks, Provider, SendGridWebhooks, Topics};
use crate::recipients::SeenOnce;
use crate::searches::Searches;
use crate::stored_objects::ObjectStore;
use crate::suppression_lists::SuppressionLists;

/// The secret access key of every access key id without a registered one.
pub const DEFAULT_SES_SECRET: &str = "simulator-secret-access-key";

/// Further SES credentials are rejected.
const SES_CREDENTIALS_MAX: usize = 10_000;

/// A free port of the loopback interface.
const FREE_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// How to start a simulator.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address to listen on. Default: a free port of the loopback interface.
    pub listen: SocketAddr,
    /// Address of the SMTP server with STARTTLS; no such server if `None`. Default: a
    /// free port.
    pub smtp_listen: Option<SocketAddr>,
    /// The same with TLS from the first byte.
    pub smtps_listen: Option<SocketAddr>,
    /// Accepted recipients that are kept in full; older ones are only counted.
    pub keep_recipients_max: usize,
    /// Bytes of accepted messages that are kept; older messages are only counted.
    pub keep_bytes_max: usize,
    /// Whether text and HTML are kept.
    pub keep_bodies: bool,
    /// SES access key ids with their secrets, in addition to [`DEFAULT_SES_SECRET`].
    pub ses_credentials: Vec<(String, String)>,
    /// Whether any secret is accepted for other access key ids, in place of
    /// [`DEFAULT_SES_SECRET`].
    pub ses_any_secret: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: FREE_PORT,
            smtp_listen: Some(FREE_PORT),
            smtps_listen: Some(FREE_PORT),
            keep_recipients_max: 200_000,
            keep_bytes_max: 1 << 30,
            keep_bodies: true,
            ses_credentials: Vec::new(),
            ses_any_secret: false,
        }
    }
}

/// The state that all handlers share.
pub(crate) struct State {
    pub(crate) captures: CaptureStore,
    pub(crate) faults: Faults,
    pub(crate) seen_once: SeenOnce,
    pub(crate) domains: Domains,
    pub(crate) ses_secrets: SesSecrets,
    pub(crate) sendgrid_webhooks: SendGridWebhooks,
    pub(crate) postmark_webhooks: PostmarkWebhooks,
    pub(crate) mailgun_webhooks: MailgunWebhooks,
    pub(crate) sns_topics: Topics,
    pub(crate) callbacks: Arc<Callbacks>,
    pub(crate) searches: Searches,
    pub(crate) suppression_lists: SuppressionLists,
    pub(crate) stored_objects: ObjectStore,
    pub(crate) ids: Ids,
    /// Send calls that each provider received over HTTP, whatever the responses.
    pub(crate) send_calls: [AtomicU64; Provider::ALL.len()],
    /// Connections that the SMTP server accepted.
    pub(crate) smtp_connections: AtomicU64,
    /// Whether the SMTP server supports more than RFC 821.
    pub(crate) smtp_knows_ehlo: AtomicBool,
    /// Set when the simulator stops; every wait ends then.
    pub(crate) stopping: CancellationToken,
}

impl State {
    pub(crate) fn new(config: &Config, tasks: &TaskTracker) -> Self {
        let stopping = CancellationToken::new();
        Self {
            captures: CaptureStore::new(config),
            faults: Faults::default(),
            seen_once: SeenOnce::default(),
            domains: Domains::default(),
            ses_secrets: SesSecrets {
                known: RwLock::new(config.ses_credentials.iter().cloned().collect()),
                others: (!config.ses_any_secret).then_some(DEFAULT_SES_SECRET),
            },
            sendgrid_webhooks: SendGridWebhooks::default(),
            postmark_webhooks: PostmarkWebhooks::default(),
            mailgun_webhooks: MailgunWebhooks::default(),
            sns_topics: Topics::default(),
            callbacks: Arc::new(Callbacks::new(tasks.clone(), stopping.clone())),
            searches: Searches::default(),
            suppression_lists: SuppressionLists::default(),
            stored_objects: ObjectStore::default(),
            ids: Ids::new(),
            send_calls: std::array::from_fn(|_| AtomicU64::new(0)),
            smtp_connections: AtomicU64::new(0),
            smtp_knows_ehlo: AtomicBool::new(true),
            stopping,
        }
    }
}

/// The secret access keys.
pub(crate) struct SesSecrets {
    known: RwLock<HashMap<String, String>>,
    /// The secret of all other keys; `None` accepts any.
    others: Option<&'static str>,
}

impl SesSecrets {
    /// Returns false if the limit is reached.
    pub(crate) fn register(&self, access_key_id: &str, secret_access_key: &str) -> bool {
        let mut secrets = self.known.write();
        if secrets.len() >= SES_CREDENTIALS_MAX && !secrets.contains_key(access_key_id) {
            return false;
        }
        secrets.insert(access_key_id.to_owned(), secret_access_key.to_owned());
        true
    }

    /// Calls `verify` with the secret of this access key id; with `None` if any is
    /// accepted.
    pub(crate) fn with<T>(&self, access_key_id: &str, verify: impl FnOnce(Option<&str>) -> T) -> T {
        let secrets = self.known.read();
        let known = secrets.get(access_key_id).map(String::as_str);
        verify(known.or(self.others))
    }
}
