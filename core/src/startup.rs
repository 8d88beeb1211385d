//! What every program looks at before it begins, so that an operator learns at once what is
//! wrong with the settings. A server that is away stops nobody: it may come back.

use tracing::warn;

use crate::config::Settings;
use crate::db::PgPool;
use crate::db::connection_check::{self, SchemaRequirement};
use crate::fault::Fault;
use crate::redis::Redis;
use crate::reencrypt;

/// Looks at Postgres, at what is sealed in it and at Redis, and logs what is the matter.
///
/// # Errors
/// A fault where waiting would not help: Postgres does not know the user, the password or
/// the database, or the keys do not open what is sealed.
pub async fn check(settings: &Settings, pool: &PgPool) -> Result<(), Fault> {
    let redis = Redis::new(&settings.redis_url, &settings.redis_prefix)?;
    let postgres = connection_check::check(&settings.database_url, SchemaRequirement::Current);
    let (postgres, writes) = tokio::join!(postgres, redis.check_writes());
    if let Err(error) = writes {
        warn!(
            "{}; mail goes on without it, more slowly",
            redis.explain(&error)
        );
    }
    match postgres {
        Ok(()) => reencrypt::require_openable(pool, &settings.sealer).await,
        Err(unusable) if unusable.is_setting() => Err(Fault::internal("start", unusable)),
        Err(unusable) => {
            warn!("{unusable}");
            Ok(())
        }
    }
}
