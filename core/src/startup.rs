//! The checks that every process makes at its start, so that the operator sees mistakes in
//! the settings at once. A process starts even if a server is away: it may come back.

use tracing::warn;

use crate::config::Settings;
use crate::db::PgPool;
use crate::db::connection_check::{self, SchemaRequirement};
use crate::fault::Fault;
use crate::redis::Redis;
use crate::reencrypt;

/// Checks Postgres, the encryption keys and Redis, and logs what does not work.
///
/// # Errors
/// A fault if waiting does not help: Postgres rejects the user, the password or the database,
/// or the encryption keys do not open the stored secrets.
pub async fn check(settings: &Settings, pool: &PgPool) -> Result<(), Fault> {
    let redis = Redis::new(&settings.redis_url, &settings.redis_prefix)?;
    let postgres = connection_check::check(&settings.database_url, SchemaRequirement::Current);
    let (postgres, writes) = tokio::join!(postgres, redis.check_writes());
    if let Err(error) = writes {
        warn!(
            "{}; mail is sent without it, more slowly",
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
