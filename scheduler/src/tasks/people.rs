//! Deletes what has ended of people: sessions, invitations, links and counts of wrong passwords.

use tracing::debug;
use waypost_core::db::OrFault;
use waypost_core::fault::Fault;
use waypost_core::{invitation, session, user};

use super::Tasks;

pub(super) async fn delete_ended(tasks: &Tasks) -> Result<(), Fault> {
    let now = tasks.clock.now();
    let doing = "delete ended sessions";
    let mut connection = tasks.pool.acquire().await.or_fault(doing)?;
    let sessions = session::store::delete_ended(&mut connection, now).await?;
    let invitations = invitation::store::delete_expired(&mut connection, now).await?;
    let links = user::store::delete_expired_resets(&mut connection, now).await?;
    let counts = user::attempts::delete_old(&mut connection, now).await?;
    if sessions + invitations + links + counts > 0 {
        debug!(
            sessions,
            invitations, links, counts, "Deleted what has ended of people"
        );
    }
    Ok(())
}
