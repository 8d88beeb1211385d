//! The floor: `pgbench` inserts rows like those of `events`, one a transaction.

use std::time::Duration;

use sqlx::{Connection as _, query};

use crate::Failure;
use crate::house::{Builder, House};
use crate::pgbench;

/// How long it is taken, each time.
const TIME: Duration = Duration::from_secs(4);

const SCRIPT: &str = r#"\set nth random(1, 999999999999)
INSERT INTO floor_events (message_id, id, organization_id, position, event_type, occurred_at, data)
VALUES (('019aa000-0000-7000-8000-' || lpad(:nth::text, 12, '0'))::uuid, gen_random_uuid(),
        '019aa000-0000-7000-8000-000000000000', 0, 'DELIVERED', now(),
        '{"smtpCode": "250", "providerType": "SENDGRID"}')
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
        "CREATE TABLE floor_events (LIKE events INCLUDING ALL)",
    ];
    for statement in statements {
        query(statement).execute(&mut connection).await?;
    }
    connection.close().await?;
    let url = &house.database_url;
    let floor = pgbench::run(builder, url, connections, TIME, &[(SCRIPT, 1)]).await?;
    Ok(floor.per_second)
}
