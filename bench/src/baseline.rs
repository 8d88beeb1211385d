//! The baseline of sending: the least work that posts the same requests.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::time::Instant;
use waypost_core::provider::mail::{TAG_ATTEMPT, TAG_MESSAGE, TAG_RECIPIENT};

use crate::Failure;
use crate::fixture::Builder;
use crate::requests;
use crate::sending::set_provider_latency;

/// Requests of one run.
const REQUESTS: u64 = 30_000;

/// Posts prepared bodies with reqwest, `calls` at a time. Returns the calls per second.
pub(crate) async fn calls_per_second(builder: &Builder, calls: usize) -> Result<f64, Failure> {
    set_provider_latency(builder);
    let client = reqwest::Client::builder().no_proxy().build()?;
    let url = format!("{}/v3/mail/send", builder.simulator.url());
    let keys: Vec<&str> = builder
        .tenants
        .iter()
        .map(|tenant| tenant.provider_key.as_str())
        .collect();
    let mails: Vec<String> = (0..REQUESTS).map(mail).collect();
    let since = Instant::now();
    let posts = mails
        .into_iter()
        .zip(keys.iter().cycle())
        .map(|(mail, key)| {
            let request = client.post(&url).bearer_auth(key);
            async move {
                let answer = request
                    .header("content-type", "application/json")
                    .body(mail)
                    .send()
                    .await?;
                let status = answer.status();
                answer.bytes().await?;
                if status.is_success() {
                    Ok(())
                } else {
                    Err(Failure::from(status.to_string()))
                }
            }
        });
    let mut answers = stream::iter(posts).buffer_unordered(calls);
    while let Some(answer) = answers.next().await {
        answer?;
    }
    let per_second = REQUESTS as f64 / since.elapsed().as_secs_f64();
    builder.simulator.clear_faults();
    Ok(per_second)
}

/// The median of `calls` calls made one after the other, with a pause before each, in
/// milliseconds.
pub(crate) async fn call_ms(
    builder: &Builder,
    calls: u64,
    pause: Duration,
) -> Result<f64, Failure> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let url = format!("{}/v3/mail/send", builder.simulator.url());
    let mut times = Vec::new();
    for number in 0..calls {
        let mail = mail(number);
        tokio::time::sleep(pause).await;
        let since = Instant::now();
        let request = client
            .post(&url)
            .bearer_auth(&builder.tenants[0].provider_key);
        let answer = request
            .header("content-type", "application/json")
            .body(mail)
            .send()
            .await?;
        answer.error_for_status()?.bytes().await?;
        times.push(since.elapsed());
    }
    times.sort_unstable();
    let median: Duration = times[times.len() / 2];
    Ok(median.as_secs_f64() * 1_000.0)
}

/// The body that Waypost posts to SendGrid for a message of the load.
fn mail(number: u64) -> String {
    let id = "0194e2a0-0000-7000-8000-000000000000";
    let body: Value = json!({
        "personalizations": [{
            "to": [{ "email": requests::recipient(number) }],
            "custom_args": { TAG_MESSAGE: id, TAG_RECIPIENT: "0", TAG_ATTEMPT: id },
        }],
        "from": { "email": "news@example.com", "name": "Bench" },
        "subject": format!("Order {number}"),
        "content": [{ "type": "text/html", "value": requests::html() }],
        "tracking_settings": {
            "click_tracking": { "enable": false, "enable_text": false },
            "open_tracking": { "enable": false },
            "subscription_tracking": { "enable": false },
            "ganalytics": { "enable": false },
        },
        "categories": ["receipt"],
    });
    body.to_string()
}
