//! The floor: `pgbench` inserts rows like those of `events`, one a transaction.

use std::time::Duration;

use sqlx::{Connection as _, query};

use crate::Failure;
use crate::house::{Builder, House};
use crate::pgbench;

/// How long it is taken, each time.
const TIME: Duration = Duration::from_secs(3);

/// With ids that are in order, as those of messages are, and cost nothing.
const SCRIPT: &str = r#"INSERT INTO floor_events (message_id, id, organization_id, position, event_type, occurred_at, data)
SELECT id, id, '019aa000-0000-7000-8000-000000000000', 0, 'DELIVERED', now(),
       '{"smtpCode": "250", "providerType": "SENDGRID"}'
FROM (SELECT lpad(to_hex(nextval('floor_ids')), 32, '0')::uuid AS id) new
"#;

/// Rows a second over so many connections.
pub(crate) async fn measure(
    builder: &Builder,
    house: &House,
    connections: usize,
) -> Result<f64, Failure> {
    let mut connection = house.connect().await?;
    let statements = [
        "DROP TABLE IF EXISTS floor_events",
        "DROP SEQUENCE IF EXISTS floor_ids",
        "CREATE SEQUENCE floor_ids CACHE 1000",
        "CREATE TABLE floor_events (LIKE events INCLUDING ALL)",
    ];
    for statement in statements {
        query(statement).execute(&mut connection).await?;
    }
    connection.close().await?;
    let url = &house.database_url;
    let floor = pgbench::run(builder, url, (connections, None), TIME, &[(SCRIPT, 1)]).await?;
    Ok(floor.per_second)
}
