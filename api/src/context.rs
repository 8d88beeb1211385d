//! The parts that handlers use: one set per process.

use std::time::Duration;

use url::Url;
use waypost_core::acceptance::retry::Retrier;
use waypost_core::account_limiter::circuits::CircuitReader;
use waypost_core::address::Mailbox;
use waypost_core::auth::ApiKeys;
use waypost_core::clock::Clock;
use waypost_core::config::{ApiSettings, SendingSettings, Settings};
use waypost_core::crypto::seal::Sealer;
use waypost_core::db::{self, PgPool};
use waypost_core::delivery::change::MessageChanges;
use waypost_core::delivery::dispatch::Dispatcher;
use waypost_core::delivery::job::SendJob;
use waypost_core::dns::DnsResolver;
use waypost_core::erasure::Eraser;
use waypost_core::fault::Fault;
use waypost_core::ids::Ids;
use waypost_core::invitation::Invitations;
use waypost_core::job_queue::Queue;
use waypost_core::member::Members;
use waypost_core::message::content::ContentReader;
use waypost_core::message::envelope::AddressReader;
use waypost_core::organization::limiter::TenantLimiter;
use waypost_core::organization::settings::SettingsService;
use waypost_core::provider::ProviderHosts;
use waypost_core::provider::inbound::SnsFetcher;
use waypost_core::provider::transport::{Transport, TransportSettings};
use waypost_core::provider_account::Accounts;
use waypost_core::provider_account::health::HealthReader;
use waypost_core::provider_event::receiver::{EventReceiver, EventReceiverParts};
use waypost_core::provider_event::record::{self, EventRecorder};
use waypost_core::routing::rule::Rules;
use waypost_core::routing::simulation::Simulator;
use waypost_core::sender_domain::SenderDomains;
use waypost_core::session::Sessions;
use waypost_core::session::oidc::Oidc;
use waypost_core::suppression::Suppressions;
use waypost_core::template::Templates;
use waypost_core::tracking;
use waypost_core::tracking::link::OwnLinks;
use waypost_core::tracking_event;
use waypost_core::unsubscribe::UnsubscribeGroups;
use waypost_core::unsubscribe::token::UnsubscribeTokens;
use waypost_core::user::Users;
use waypost_core::user::password::Passwords;
use waypost_core::user::reset::PasswordResets;
use waypost_core::webhook::client::WebhookClient;
use waypost_core::webhook::endpoint::WebhookEndpoints;

use crate::accept_context::AcceptContext;

/// The parts of an API process.
pub(crate) struct Context {
    pub(crate) pool: PgPool,
    pub(crate) accept: AcceptContext,
    pub(crate) message_changes: MessageChanges,
    pub(crate) retrier: Retrier,
    pub(crate) accounts: Accounts,
    pub(crate) sender_domains: SenderDomains,
    pub(crate) provider_health: HealthReader,
    pub(crate) rules: Rules,
    pub(crate) routing_simulator: Simulator,
    pub(crate) keys: ApiKeys,
    pub(crate) organization_settings: SettingsService,
    pub(crate) templates: Templates,
    pub(crate) groups: UnsubscribeGroups,
    pub(crate) suppressions: Suppressions,
    pub(crate) unsubscribe_tokens: UnsubscribeTokens,
    pub(crate) tracking_tokens: tracking::token::TrackingTokens,
    pub(crate) recorder: tracking_event::TrackingRecorder,
    pub(crate) machine_window: Duration,
    pub(crate) webhook_endpoints: WebhookEndpoints,
    pub(crate) event_receiver: EventReceiver,
    pub(crate) clock: Clock,
    pub(crate) settings: ApiSettings,
    pub(crate) sealer: Sealer,
    pub(crate) addresses: AddressReader,
    pub(crate) contents: ContentReader,
    pub(crate) eraser: Eraser,
    pub(crate) users: Users,
    pub(crate) sessions: Sessions,
    pub(crate) members: Members,
    pub(crate) invitations: Invitations,
    pub(crate) password_resets: PasswordResets,
    /// The sender of invitations, if they are mailed.
    pub(crate) invitation_from: Option<Mailbox>,
    /// The OpenID Connect provider, if one is configured.
    pub(crate) oidc: Option<Oidc>,
    /// The origin of the public URL, as browsers send it.
    pub(crate) public_origin: String,
    pub(crate) queue: Queue<SendJob>,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) sending: SendingSettings,
    pub(crate) ids: Ids,
}

impl Context {
    /// Creates the parts. Nothing connects yet, so a process starts while Postgres and
    /// Redis are away.
    ///
    /// # Errors
    /// A fault if a URL is not valid.
    #[expect(clippy::too_many_lines, reason = "a list of parts")]
    pub(crate) fn new(settings: &Settings, clock: &Clock) -> Result<Self, Fault> {
        let recording_connections =
            (settings.database_connections / 5).clamp(1, record::CONNECTIONS);
        let accept = AcceptContext::new(settings, clock, recording_connections)?;
        let (pool, ids) = (accept.pool.clone(), accept.ids.clone());
        let (snapshots, dispatcher) = (accept.snapshots.clone(), accept.dispatcher.clone());
        let recording = db::watched_routine_pool(
            &settings.database_url,
            recording_connections,
            &accept.liveness,
        )?;
        let calls = TenantLimiter::of_calls();
        let accounts = Accounts {
            pool: pool.clone(),
            sealer: settings.sealer.clone(),
            check_limiter: calls.clone(),
            transport: Transport::new(&TransportSettings {
                call_timeout: settings.sending.call_timeout,
                smtp: settings.smtp.clone(),
                ..TransportSettings::default()
            })?,
            endpoints: ProviderHosts::from(settings.provider_base_urls.clone()),
            public_url: settings.links.public_url.clone(),
            snapshots: snapshots.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
        };
        let sender_domains = SenderDomains {
            pool: pool.clone(),
            resolver: DnsResolver::new(&settings.dns.servers),
            interval: settings.dns.check_interval,
            limiter: calls.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
        };
        let recorder = tracking_event::TrackingRecorder::start(pool.clone(), ids.clone());
        let groups = UnsubscribeGroups {
            pool: pool.clone(),
            cache: accept.groups.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
        };
        let suppressions = Suppressions {
            pool: pool.clone(),
            filters: accept.filters.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
        };
        let webhook_endpoints = WebhookEndpoints {
            pool: pool.clone(),
            client: WebhookClient::new(&settings.webhooks, clock.clone())?,
            limiter: calls,
            sealer: settings.sealer.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
        };
        let event_suppressions = Suppressions {
            pool: recording,
            ..suppressions.clone()
        };
        let event_receiver = EventReceiver::new(EventReceiverParts {
            pool: pool.clone(),
            sealer: settings.sealer.clone(),
            fetcher: SnsFetcher::new(accounts.transport.clone(), accounts.endpoints.clone()),
            recorder: EventRecorder::start(
                event_suppressions,
                settings.sealer.clone(),
                OwnLinks::new(settings),
            ),
            clock: clock.clone(),
        });
        let users = Users {
            pool: pool.clone(),
            passwords: Passwords::new(ids.clone()),
            sealer: settings.sealer.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
        };
        let sessions = Sessions::start(users.clone(), accept.lookups.clone());
        Ok(Self {
            members: Members {
                pool: pool.clone(),
                sessions: sessions.clone(),
                clock: clock.clone(),
                ids: ids.clone(),
            },
            invitations: Invitations {
                pool: pool.clone(),
                users: users.clone(),
                sessions: sessions.clone(),
                clock: clock.clone(),
                ids: ids.clone(),
            },
            password_resets: PasswordResets {
                pool: pool.clone(),
                passwords: users.passwords.clone(),
                clock: clock.clone(),
            },
            invitation_from: settings.people.invitation_from.clone(),
            oidc: oidc(settings, &sessions)?,
            users,
            sessions,
            public_origin: public_origin(&settings.links.public_url),
            queue: accept.queue.clone(),
            dispatcher: dispatcher.clone(),
            sending: settings.sending.clone(),
            ids: ids.clone(),
            provider_health: HealthReader {
                pool: pool.clone(),
                circuits: CircuitReader::start(accept.redis.clone(), clock.clone()),
                clock: clock.clone(),
            },
            routing_simulator: Simulator::new(
                pool.clone(),
                snapshots.clone(),
                clock.clone(),
                ids.clone(),
                settings.sending.retry_horizon,
            ),
            rules: Rules {
                pool: pool.clone(),
                snapshots: snapshots.clone(),
                clock: clock.clone(),
                ids: ids.clone(),
            },
            keys: ApiKeys {
                pool: pool.clone(),
                clock: clock.clone(),
                ids: ids.clone(),
            },
            message_changes: MessageChanges {
                pool: pool.clone(),
                dispatcher: dispatcher.clone(),
                relay_grace: settings.sending.relay_grace,
                clock: clock.clone(),
                ids: ids.clone(),
            },
            retrier: Retrier {
                pool: pool.clone(),
                dispatcher,
                relay_grace: settings.sending.relay_grace,
                clock: clock.clone(),
                ids: ids.clone(),
            },
            addresses: AddressReader {
                pool: pool.clone(),
                sealer: settings.sealer.clone(),
                clock: clock.clone(),
                ids: ids.clone(),
            },
            contents: ContentReader {
                pool: pool.clone(),
                clock: clock.clone(),
                ids: ids.clone(),
            },
            eraser: Eraser {
                pool: pool.clone(),
                clock: clock.clone(),
                ids: ids.clone(),
            },
            organization_settings: SettingsService {
                pool: pool.clone(),
                clock: clock.clone(),
                ids,
            },
            pool,
            accounts,
            sender_domains,
            templates: accept.templates.clone(),
            accept,
            groups,
            suppressions,
            unsubscribe_tokens: UnsubscribeTokens::new(settings),
            tracking_tokens: tracking::token::TrackingTokens::new(settings),
            recorder,
            machine_window: settings.links.machine_window,
            webhook_endpoints,
            event_receiver,
            clock: clock.clone(),
            settings: settings.api.clone(),
            sealer: settings.sealer.clone(),
        })
    }
}

/// The OpenID Connect provider of the settings.
fn oidc(settings: &Settings, sessions: &Sessions) -> Result<Option<Oidc>, Fault> {
    let oidc = settings.people.oidc.clone().map(|oidc| {
        let callback = format!("{}/v1/session/oidc/callback", settings.links.public_url);
        Oidc::new(oidc, callback, sessions.clone(), settings.sealer.clone())
    });
    oidc.transpose()
}

/// The origin of a URL, as browsers send it.
fn public_origin(url: &str) -> String {
    let url = Url::parse(url).map(|url| url.origin().ascii_serialization());
    url.unwrap_or_default()
}
