//! Measures how fast providers' events are taken in (row 8 of `make bench`): signed
//! posts of a hundred events each, as SendGrid makes them, and posts of one event, as
//! Mailgun makes them, beside `pgbench` inserting the same event rows one by one over
//! as many connections.
//!
//! ```text
//! cargo build --release -p waypost-api -p waypost-tests --bin waypost-api --example measure_inbound
//! WAYPOST_TEST_DATABASE_URL=… WAYPOST_TEST_REDIS_URL=… \
//!     WAYPOST_BIN_DIR=target/release target/release/examples/measure_inbound
//! ```
//!
//! The server of the database is to run with default durability.

mod fill;
mod floor;
mod inbound;
mod posts;
mod usage;

use waypost_core::config::Settings;
use waypost_core::ids::Ids;
use waypost_tests::TestApp;

use inbound::Site;

#[tokio::main]
async fn main() {
    let app = TestApp::builder().processes().start().await;
    let api = app.spawn_api().await;
    let settings = Settings::from_map(&app.variables).expect("the settings are in order");
    let address = app.variables["WAYPOST_LISTEN"].parse();
    let site = Site {
        pool: app.pool.clone(),
        database_url: app.variables["DATABASE_URL"].clone(),
        address: address.expect("the API listens at an address"),
        api: usage::Processes::of(api.id()),
        sealer: settings.sealer,
        ids: Ids::new(app.clock.clone()),
        clock: app.clock.clone(),
    };
    println!("{}", inbound::measure(&site).await);
    drop(api);
    app.leave_work();
}
