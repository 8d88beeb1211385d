//! What the handlers work with: one set per process.

use waypost_core::auth::Authenticator;
use waypost_core::clock::Clock;
use waypost_core::config::{ApiSettings, Settings};
use waypost_core::db::{self, PgPool};
use waypost_core::fault::Fault;
use waypost_core::ids::Ids;
use waypost_core::message::accept::{Acceptor, AcceptorParts};
use waypost_core::provider::Endpoints;
use waypost_core::provider::account::Accounts;
use waypost_core::provider::snapshots::Snapshots;
use waypost_core::provider::transport::{Transport, TransportSettings};
use waypost_core::queue::dispatch::Dispatcher;
use waypost_core::queue::jobs::send_queue;
use waypost_core::redis::Redis;
use waypost_core::template::Templates;

/// The parts of an API process.
pub(crate) struct Context {
    pub(crate) pool: PgPool,
    pub(crate) redis: Redis,
    pub(crate) authenticator: Authenticator,
    pub(crate) acceptor: Acceptor,
    pub(crate) accounts: Accounts,
    pub(crate) templates: Templates,
    pub(crate) settings: ApiSettings,
}

impl Context {
    /// Puts the parts together. Nothing is connected yet: a process starts while
    /// Postgres and Redis are away.
    ///
    /// # Errors
    /// A fault when a URL cannot be read.
    pub(crate) fn new(settings: &Settings, clock: &Clock) -> Result<Self, Fault> {
        let ids = Ids::new(clock.clone());
        let pool = db::pool(&settings.database_url, settings.database_connections)?;
        let redis = Redis::new(&settings.redis_url, &settings.redis_prefix)?;
        let snapshots = Snapshots::new(pool.clone());
        let templates = Templates::start(pool.clone(), clock.clone(), ids.clone())?;
        let acceptor = Acceptor::start(AcceptorParts {
            pool: pool.clone(),
            templates: templates.clone(),
            snapshots: snapshots.clone(),
            sealer: settings.sealer.clone(),
            dispatcher: Dispatcher::start(send_queue(&redis, clock.clone())),
            ids: ids.clone(),
            clock: clock.clone(),
            relay_grace: settings.sending.relay_grace,
        });
        let accounts = Accounts {
            pool: pool.clone(),
            sealer: settings.sealer.clone(),
            transport: Transport::new(&TransportSettings {
                call_timeout: settings.sending.call_timeout,
                ..TransportSettings::default()
            })?,
            endpoints: Endpoints::from(settings.provider_base_urls.clone()),
            snapshots,
            clock: clock.clone(),
            ids,
        };
        Ok(Self {
            authenticator: Authenticator::new(pool.clone(), clock.clone()),
            pool,
            redis,
            acceptor,
            accounts,
            templates,
            settings: settings.api.clone(),
        })
    }
}
