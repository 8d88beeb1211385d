//! Callbacks: registration, proof of origin, retries.

mod delivery;
mod mailgun;
mod postmark;
mod proof;
mod receiver;
mod sendgrid;
mod ses;

use serde_json::{Value, json};

use crate::support::{World, seen};
use receiver::Receiver;

/// The magic recipients, one for each sequence of events.
const MAGIC_RECIPIENTS: [&str; 9] = [
    "ann",
    "hard-bounce",
    "soft-bounce",
    "block",
    "complaint",
    "open",
    "click",
    "unsubscribe",
    "defer",
];

/// A simulator without delays, and a receiver for its calls.
async fn world() -> (World, Receiver) {
    let world = World::new();
    set(&world, json!({"delayMs": 10, "flushMs": 20})).await;
    (world, Receiver::start().await)
}

async fn set(world: &World, settings: Value) {
    let answer = seen(world.post("/callbacks").json(&settings)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

/// Waits until no event is waiting.
async fn wait_until_idle(world: &World) {
    receiver::until(|| world.simulator.callbacks().waiting == 0).await;
}

fn address(local_part: &str) -> String {
    format!("{local_part}+1@example.org")
}

/// The texts of one field of all values, in their order.
fn texts<'a>(values: impl IntoIterator<Item = &'a Value>, name: &str) -> Vec<&'a str> {
    let values = values.into_iter();
    values
        .map(|value| value[name].as_str().unwrap_or_default())
        .collect()
}
