//! What the handlers work with: one set per process.

use std::time::Duration;

use waypost_core::auth::{Authenticator, Keys};
use waypost_core::clock::Clock;
use waypost_core::config::{ApiSettings, Settings};
use waypost_core::crypto::seal::Sealer;
use waypost_core::db::pulse::Pulse;
use waypost_core::db::warm::WarmPool;
use waypost_core::db::{self, PgPool};
use waypost_core::event::inbox::{Inbox, InboxParts};
use waypost_core::event::record::{self, Recorder};
use waypost_core::fault::Fault;
use waypost_core::health::Readiness;
use waypost_core::ids::Ids;
use waypost_core::limit::Limiter;
use waypost_core::message::accept::{self, Acceptor, AcceptorParts};
use waypost_core::message::retry::Retrier;
use waypost_core::organization::settings::SettingsBoard;
use waypost_core::organization::shares::Shares;
use waypost_core::provider::Endpoints;
use waypost_core::provider::account::Accounts;
use waypost_core::provider::inbound::Fetcher;
use waypost_core::provider::snapshots::Snapshots;
use waypost_core::provider::transport::{Transport, TransportSettings};
use waypost_core::queue::dispatch::Dispatcher;
use waypost_core::queue::jobs::send_queue;
use waypost_core::redis::Redis;
use waypost_core::routing::rule::Rules;
use waypost_core::suppression::Suppressions;
use waypost_core::suppression::check::{self, Checker};
use waypost_core::suppression::filter::Filters;
use waypost_core::template::Templates;
use waypost_core::tracking;
use waypost_core::tracking::link::OwnLinks;
use waypost_core::unsubscribe::Groups;
use waypost_core::unsubscribe::known::KnownGroups;
use waypost_core::unsubscribe::token::Tokens;
use waypost_core::webhook::client::WebhookClient;
use waypost_core::webhook::endpoint::Endpoints as WebhookEndpoints;

/// The parts of an API process.
pub(crate) struct Context {
    pub(crate) pool: PgPool,
    pub(crate) pulse: Pulse,
    pub(crate) readiness: Readiness,
    pub(crate) authenticator: Authenticator,
    pub(crate) limiter: Limiter,
    pub(crate) acceptor: Acceptor,
    pub(crate) retrier: Retrier,
    pub(crate) accounts: Accounts,
    pub(crate) rules: Rules,
    pub(crate) keys: Keys,
    pub(crate) board: SettingsBoard,
    pub(crate) templates: Templates,
    pub(crate) groups: Groups,
    pub(crate) suppressions: Suppressions,
    pub(crate) unsubscribe_tokens: Tokens,
    pub(crate) tracking_tokens: tracking::token::Tokens,
    pub(crate) recorder: tracking::record::Recorder,
    pub(crate) machine_window: Duration,
    pub(crate) webhook_endpoints: WebhookEndpoints,
    pub(crate) inbox: Inbox,
    pub(crate) clock: Clock,
    pub(crate) settings: ApiSettings,
    pub(crate) sealer: Sealer,
}

/// Connections, at the most, for what sends look up before they are accepted: keys,
/// accounts and rules, groups. Most of it is remembered.
const LOOK_UP_CONNECTIONS: u32 = 2;

impl Context {
    /// Puts the parts together. Nothing is connected yet: a process starts while
    /// Postgres and Redis are away.
    ///
    /// # Errors
    /// A fault when a URL cannot be read.
    #[expect(clippy::too_many_lines, reason = "a list of parts")]
    pub(crate) fn new(settings: &Settings, clock: &Clock) -> Result<Self, Fault> {
        let ids = Ids::new(clock.clone());
        let connections = settings.database_connections;
        let of_look_ups = (connections / 4).clamp(1, LOOK_UP_CONNECTIONS);
        let of_checks = (connections / 8).clamp(1, check::CONNECTIONS);
        let of_recording = (connections / 5).clamp(1, record::CONNECTIONS);
        let of_others = accept::CONNECTIONS + of_look_ups + of_checks + of_recording;
        let connections = connections.saturating_sub(of_others);
        let pulse = Pulse::new();
        let pool = db::watched_pool(&settings.database_url, connections.max(1), &pulse)?;
        // What every send may have to ask, whatever else keeps Postgres busy.
        let look_ups = db::watched_routine_pool(&settings.database_url, of_look_ups, &pulse)?;
        let checks = db::watched_routine_pool(&settings.database_url, of_checks, &pulse)?;
        let checks = WarmPool::watched(checks, pulse.clone());
        let recording = db::watched_routine_pool(&settings.database_url, of_recording, &pulse)?;
        let redis = Redis::new(&settings.redis_url, &settings.redis_prefix)?;
        let snapshots = Snapshots::new(look_ups.clone());
        let templates = Templates::start(pool.clone(), clock.clone(), ids.clone())?;
        let filters = Filters::start(pool.clone(), redis.clone(), ids.clone());
        let known_groups = KnownGroups::new(look_ups.clone());
        let dispatcher = Dispatcher::start(send_queue(&redis, clock.clone()));
        let acceptor = Acceptor::start(AcceptorParts {
            pool: accept::pool(&settings.database_url, &pulse)?,
            reader: pool.clone(),
            templates: templates.clone(),
            groups: known_groups.clone(),
            checker: Checker::start(checks, filters.clone()),
            snapshots: snapshots.clone(),
            sealer: settings.sealer.clone(),
            dispatcher: dispatcher.clone(),
            ids: ids.clone(),
            clock: clock.clone(),
            relay_grace: settings.sending.relay_grace,
        });
        let calls = Shares::of_calls();
        let accounts = Accounts {
            pool: pool.clone(),
            sealer: settings.sealer.clone(),
            shares: calls.clone(),
            transport: Transport::new(&TransportSettings {
                call_timeout: settings.sending.call_timeout,
                smtp: settings.smtp.clone(),
                ..TransportSettings::default()
            })?,
            endpoints: Endpoints::from(settings.provider_base_urls.clone()),
            public_url: settings.links.public_url.clone(),
            snapshots: snapshots.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
        };
        let recorder = tracking::record::Recorder::start(pool.clone(), ids.clone());
        let groups = Groups {
            pool: pool.clone(),
            known: known_groups,
            clock: clock.clone(),
            ids: ids.clone(),
        };
        let suppressions = Suppressions {
            pool: pool.clone(),
            filters,
            clock: clock.clone(),
            ids: ids.clone(),
        };
        let webhook_endpoints = WebhookEndpoints {
            pool: pool.clone(),
            client: WebhookClient::new(&settings.webhooks, clock.clone())?,
            shares: calls,
            sealer: settings.sealer.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
        };
        let told = Suppressions {
            pool: recording,
            ..suppressions.clone()
        };
        let inbox = Inbox::new(InboxParts {
            pool: pool.clone(),
            sealer: settings.sealer.clone(),
            fetcher: Fetcher::new(accounts.transport.clone(), accounts.endpoints.clone()),
            recorder: Recorder::start(told, settings.sealer.clone(), OwnLinks::new(settings)),
            clock: clock.clone(),
        });
        Ok(Self {
            authenticator: Authenticator::start(look_ups, clock.clone()),
            limiter: Limiter::start(redis.clone(), &settings.api),
            rules: Rules {
                pool: pool.clone(),
                snapshots: snapshots.clone(),
                clock: clock.clone(),
                ids: ids.clone(),
            },
            keys: Keys {
                pool: pool.clone(),
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
            board: SettingsBoard {
                pool: pool.clone(),
                snapshots,
                clock: clock.clone(),
                ids,
            },
            readiness: Readiness::new(pool.clone(), redis, settings.sealer.clone()),
            pool,
            pulse,
            acceptor,
            accounts,
            templates,
            groups,
            suppressions,
            unsubscribe_tokens: Tokens::new(settings),
            tracking_tokens: tracking::token::Tokens::new(settings),
            recorder,
            machine_window: settings.links.machine_window,
            webhook_endpoints,
            inbox,
            clock: clock.clone(),
            settings: settings.api.clone(),
            sealer: settings.sealer.clone(),
        })
    }
}
