//! The floor: `pgbench` inserts rows like those of `events`, one a transaction.

use std::time::Duration;

use sqlx::query;
use tokio::process::Command;

use super::inbound::Site;

/// The ids of messages grow, as ours do; each is of one event.
const SCRIPT: &str = r#"\set nth :nth + 1
INSERT INTO floor_events (message_id, id, organization_id, position, event_type, occurred_at, data)
VALUES (('019aa000-0000-7' || lpad(:client_id::text, 3, '0') || '-8000-' || lpad(:nth::text, 12, '0'))::uuid, gen_random_uuid(),
        '019aa000-0000-7000-8000-000000000000', 0, 'DELIVERED', now(),
        '{"smtpCode": "250", "providerType": "SENDGRID"}')
"#;

/// Rows a second over so many connections.
pub(crate) async fn measure(site: &Site, connections: usize, time: Duration) -> f64 {
    let made = query("CREATE TABLE floor_events (LIKE events INCLUDING ALL)").execute(&site.pool);
    made.await.expect("a table can be made");
    let script = std::env::temp_dir().join(format!("waypost-floor-{}.sql", std::process::id()));
    std::fs::write(&script, SCRIPT).expect("a script can be written");
    let ran = Command::new(pgbench())
        .args(["-n", "-M", "prepared", "-j", "2", "-D", "nth=0", "-f"])
        .arg(&script)
        .args([
            "-c",
            &connections.to_string(),
            "-T",
            &time.as_secs().to_string(),
        ])
        .arg(&site.database_url)
        .output();
    let ran = ran.await.expect("pgbench can be started");
    let _left = std::fs::remove_file(&script);
    let text = String::from_utf8_lossy(&ran.stdout);
    let rate = text.lines().find_map(|line| line.strip_prefix("tps = "));
    let rate = rate.and_then(|rate| rate.split(' ').next()?.parse().ok());
    rate.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&ran.stderr)))
}

/// Where Debian keeps it, else wherever it is found.
fn pgbench() -> String {
    let versions = (15..=18).rev();
    let mut paths = versions.map(|version| format!("/usr/lib/postgresql/{version}/bin/pgbench"));
    let found = paths.find(|path| std::path::Path::new(path).exists());
    found.unwrap_or_else(|| "pgbench".to_owned())
}
