//! How SES reports events: a configuration set publishes them to an SNS topic, and the
//! topic posts them to us. Credentials that may only send cannot create a topic, and a
//! topic costs money, so the customer follows these steps. Waypost confirms the
//! subscription.

use super::SesApi;
use crate::provider::event_secrets::EventSecrets;
use crate::provider::management::{EventTarget, Registration};

/// Fifty retries, a minute apart: SNS allows an hour in total, and by default retries three
/// times, 20 s apart (SNS developer guide, "Message delivery retries").
const DELIVERY_POLICY: &str = r#"{"healthyRetryPolicy":{"numRetries":50,"minDelayTarget":60,"maxDelayTarget":60,"backoffFunction":"linear"}}"#;

/// The remaining steps.
pub(super) fn steps(
    api: &SesApi,
    configuration_set: Option<&str>,
    target: &EventTarget,
) -> Registration {
    let region = &api.region;
    let mut steps = Vec::with_capacity(6);
    let topic = match &target.secrets {
        Some(EventSecrets::Ses { topic_arn }) => topic_arn.as_str().to_owned(),
        Some(_) | None => {
            steps.push(format!("In Amazon SNS, in the region {region}, create a standard topic, and let Amazon SES publish to it."));
            steps.push("Give its ARN to this account as eventSecrets.topicArn: Waypost accepts only messages of this topic.".to_owned());
            "the topic".to_owned()
        }
    };
    steps.push(format!("Subscribe this account's webhookUrl to {topic} with the protocol HTTPS, without raw message delivery. Waypost confirms the subscription."));
    steps.push(format!("Give the subscription to {topic} the delivery policy {DELIVERY_POLICY}: by default Amazon SNS gives up after a minute, and its events are lost."));
    let set = match configuration_set {
        Some(name) => format!("the configuration set {name}"),
        None => {
            steps.push("In Amazon SES, create a configuration set and give its name to this account as credentials.configurationSet.".to_owned());
            "it".to_owned()
        }
    };
    steps.push(format!("In Amazon SES, add an event destination of the type SNS to {set}, with {topic} and the event types sends, deliveries, delivery delays, hard bounces, complaints, rejects and rendering failures. Leave out opens and clicks: with them Amazon SES rewrites links and adds a pixel of its own, and Waypost records both itself."));
    Registration::ByHand { steps }
}
