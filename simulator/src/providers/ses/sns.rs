//! Amazon SNS, as far as SES needs it: topics to which configuration sets publish, and
//! their subscriptions.
//!
//! The steps of an operator in the console (a topic, its subscription, an event
//! destination) are one call of the simulator's own: `POST /sns/subscriptions`. The rest
//! is as in the real service: a signed confirmation is posted, its URL is requested, and
//! then notifications follow.

use std::sync::Arc;

use chrono::SecondsFormat;
use http::{Method, StatusCode};
use parking_lot::RwLock;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::callbacks::{
    Endpoint, Kinds, SignatureFault, SnsVersion, Stamp, Subscriber, Target, sns_certificate,
};
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

const SUBSCRIPTIONS_MAX: usize = 10_000;
/// The name of the certificate, in the form of the real ones, which contain a hash.
const CERTIFICATE: &str = "SimpleNotificationService-00000000000000000000000000000001.pem";
/// SES publishes this text, which is no JSON, when an event destination is created.
const VALIDATED: &str = "Successfully validated SNS topic for Amazon SES event publishing.";

/// The subscriptions of all topics.
#[derive(Default)]
pub(crate) struct Topics(RwLock<Vec<Subscription>>);

struct Subscription {
    topic_arn: String,
    /// The configuration set whose messages it reports; `None` is every set.
    configuration_set: Option<String>,
    arn: String,
    token: String,
    is_confirmed: bool,
    endpoint: Arc<Endpoint>,
}

impl Topics {
    /// The subscribers for a message that was sent with this configuration set.
    pub(crate) fn subscribers(&self, configuration_set: &str) -> Vec<Subscriber> {
        let all = self.0.read();
        all.iter()
            .filter(|one| one.is_confirmed)
            .filter(|one| {
                let own = one.configuration_set.as_deref();
                own.is_none_or(|own| own == configuration_set)
            })
            .map(|one| Subscriber {
                endpoint: Arc::clone(&one.endpoint),
                subscribed_kinds: Kinds::ALL,
            })
            .collect()
    }
}

impl Subscription {
    fn is_same(&self, other: &Self) -> bool {
        self.topic_arn == other.topic_arn
            && self.configuration_set == other.configuration_set
            && self.endpoint.url == other.endpoint.url
    }

    fn to_json(&self) -> Value {
        json!({
            "topicArn": self.topic_arn,
            "url": self.endpoint.url.as_str(),
            "configurationSet": self.configuration_set,
            "subscriptionArn": self.arn,
            "isConfirmed": self.is_confirmed,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SubscriptionBody {
    topic_arn: String,
    url: String,
    configuration_set: Option<String>,
    signature_version: Option<String>,
}

/// The calls of SNS and the simulator's own call for subscriptions; `None` for other
/// paths.
pub(crate) fn handle(state: &State, request: &Request) -> Option<Answer> {
    let answer = match (&request.method, request.path()) {
        (&Method::POST, "/sns/subscriptions") => {
            subscribe(state, request).unwrap_or_else(|text| problem(StatusCode::BAD_REQUEST, &text))
        }
        (&Method::GET, "/sns/subscriptions") => {
            let all = state.sns_topics.0.read();
            let to_json: Vec<Value> = all.iter().map(Subscription::to_json).collect();
            reply::json(
                StatusCode::OK,
                json!({"subscriptions": to_json}).to_string(),
            )
        }
        (&Method::DELETE, "/sns/subscriptions") => {
            state.sns_topics.0.write().clear();
            reply::empty(StatusCode::NO_CONTENT)
        }
        (&Method::GET, "/") => match request.query("Action")?.as_str() {
            "ConfirmSubscription" => confirm(state, request),
            "Unsubscribe" => unsubscribe(state, request),
            _ => failure(
                "InvalidAction",
                "The action is not valid for this endpoint.",
            ),
        },
        (&Method::GET, path) if path.strip_prefix('/') == Some(CERTIFICATE) => {
            reply::text(StatusCode::OK, sns_certificate())
        }
        _ => return None,
    };
    Some(answer)
}

fn subscribe(state: &State, request: &Request) -> Result<Answer, String> {
    let body: SubscriptionBody =
        serde_json::from_slice(&request.body).map_err(|cause| cause.to_string())?;
    let parts: Vec<&str> = body.topic_arn.split(':').collect();
    if parts.len() != 6 || parts[..1] != ["arn"] || parts[2] != "sns" {
        return Err("topicArn must be arn:aws:sns:<region>:<account>:<name>".to_owned());
    }
    let version = match body.signature_version.as_deref() {
        Some("1") => SnsVersion::One,
        None | Some("2") => SnsVersion::Two,
        Some(_) => return Err("signatureVersion must be \"1\" or \"2\"".to_owned()),
    };
    let arn = format!("{}:{}", body.topic_arn, state.ids.uuid());
    let target = Target::Sns {
        topic_arn: body.topic_arn.clone(),
        subscription_arn: arn.clone(),
        version,
    };
    let endpoint = Endpoint::new(&body.url, target).ok_or("url must be http or https")?;
    let subscription = Subscription {
        topic_arn: body.topic_arn,
        configuration_set: body.configuration_set,
        arn,
        token: state.ids.token(),
        is_confirmed: false,
        endpoint,
    };
    let to_json = subscription.to_json();
    let message = confirmation(state, &subscription);
    let endpoint = Arc::clone(&subscription.endpoint);
    let mut all = state.sns_topics.0.write();
    if all.len() >= SUBSCRIPTIONS_MAX {
        return Err("no room for another subscription".to_owned());
    }
    // As in the real service, a second subscription asks for confirmation again, unless
    // it is confirmed.
    if let Some(at) = all.iter().position(|one| one.is_same(&subscription)) {
        if all[at].is_confirmed {
            return Ok(reply::json(StatusCode::OK, all[at].to_json().to_string()));
        }
        all.remove(at);
    }
    all.push(subscription);
    drop(all);
    state.callbacks.post(endpoint, message);
    Ok(reply::json(StatusCode::CREATED, to_json.to_string()))
}

fn confirm(state: &State, request: &Request) -> Answer {
    let (topic, token) = (request.query("TopicArn"), request.query("Token"));
    let mut all = state.sns_topics.0.write();
    let found = all
        .iter_mut()
        .find(|one| Some(&one.topic_arn) == topic.as_ref() && Some(&one.token) == token.as_ref());
    let Some(subscription) = found else {
        return failure("InvalidParameter", "Invalid parameter: Token");
    };
    let is_new = !std::mem::replace(&mut subscription.is_confirmed, true);
    let (arn, endpoint) = (subscription.arn.clone(), Arc::clone(&subscription.endpoint));
    drop(all);
    if is_new {
        let stamp = state.callbacks.settings().stamp();
        let message = notification(&endpoint, &state.ids.uuid(), VALIDATED, stamp);
        state.callbacks.post(endpoint, message);
    }
    let result = format!(
        "<ConfirmSubscriptionResult><SubscriptionArn>{arn}</SubscriptionArn>\
         </ConfirmSubscriptionResult>"
    );
    xml(state, "ConfirmSubscription", &result)
}

fn unsubscribe(state: &State, request: &Request) -> Answer {
    let arn = request.query("SubscriptionArn");
    let mut all = state.sns_topics.0.write();
    all.retain(|one| Some(&one.arn) != arn.as_ref());
    drop(all);
    xml(state, "Unsubscribe", "")
}

/// The signed request for confirmation.
fn confirmation(state: &State, subscription: &Subscription) -> String {
    let topic = &subscription.topic_arn;
    let text = format!(
        "You have chosen to subscribe to the topic {topic}.\nTo confirm the subscription, visit \
         the SubscribeURL included in this message."
    );
    let url = format!(
        "{}/?Action=ConfirmSubscription&TopicArn={topic}&Token={}",
        host(topic),
        subscription.token
    );
    let stamp = state.callbacks.settings().stamp();
    let fields = [
        ("Message", text),
        ("MessageId", state.ids.uuid()),
        ("SubscribeURL", url),
        ("Timestamp", timestamp(stamp)),
        ("Token", subscription.token.clone()),
        ("TopicArn", topic.clone()),
        ("Type", "SubscriptionConfirmation".to_owned()),
    ];
    let signed = sign(&subscription.endpoint, &fields, stamp);
    Value::Object(signed).to_string()
}

/// A signed notification; `text` is the published message.
pub(crate) fn notification(
    endpoint: &Endpoint,
    message_id: &str,
    text: &str,
    stamp: Stamp,
) -> String {
    let Target::Sns {
        topic_arn,
        subscription_arn,
        ..
    } = &endpoint.target
    else {
        return String::new();
    };
    let fields = [
        ("Message", text.to_owned()),
        ("MessageId", message_id.to_owned()),
        ("Subject", "Amazon SES Email Event Notification".to_owned()),
        ("Timestamp", timestamp(stamp)),
        ("TopicArn", topic_arn.clone()),
        ("Type", "Notification".to_owned()),
    ];
    let mut signed = sign(endpoint, &fields, stamp);
    let arn = utf8_percent_encode(subscription_arn, NON_ALPHANUMERIC);
    let url = format!(
        "{}/?Action=Unsubscribe&SubscriptionArn={arn}",
        host(topic_arn)
    );
    signed.insert("UnsubscribeURL".to_owned(), Value::String(url));
    Value::Object(signed).to_string()
}

/// The HTTP headers that repeat parts of a message.
pub(crate) fn headers(endpoint: &Endpoint, body: &Value) -> Vec<(&'static str, String)> {
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let mut headers = vec![
        ("x-amz-sns-message-type", text("Type")),
        ("x-amz-sns-message-id", text("MessageId")),
        ("x-amz-sns-topic-arn", text("TopicArn")),
    ];
    if let Target::Sns {
        subscription_arn, ..
    } = &endpoint.target
        && body["Type"] == "Notification"
    {
        headers.push(("x-amz-sns-subscription-arn", subscription_arn.clone()));
    }
    headers
}

/// The fields must be in the order in which they are signed.
fn sign(endpoint: &Endpoint, fields: &[(&str, String)], stamp: Stamp) -> Map<String, Value> {
    let Target::Sns {
        topic_arn, version, ..
    } = &endpoint.target
    else {
        return Map::new();
    };
    let mut text = String::new();
    for (name, value) in fields {
        text.extend([name, "\n", value, "\n"]);
    }
    if stamp.fault == SignatureFault::Wrong {
        text.push('!');
    }
    let pairs = fields.iter();
    let mut body: Map<String, Value> = pairs
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    let certificate = format!("{}/{CERTIFICATE}", host(topic_arn));
    if stamp.fault != SignatureFault::None {
        body.insert("SignatureVersion".to_owned(), json!(version.name()));
        body.insert("Signature".to_owned(), json!(version.sign(&text)));
        body.insert("SigningCertURL".to_owned(), json!(certificate));
    }
    body
}

/// `https://sns.<region>.amazonaws.com`, of the topic's region.
fn host(topic_arn: &str) -> String {
    let mut parts = topic_arn.split(':').skip(1);
    let partition = parts.next().unwrap_or_default();
    let region = parts.nth(1).unwrap_or_default();
    let end = if partition == "aws-cn" { ".cn" } else { "" };
    format!("https://sns.{region}.amazonaws.com{end}")
}

fn timestamp(stamp: Stamp) -> String {
    stamp.now.to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn xml(state: &State, action: &str, result: &str) -> Answer {
    let body = format!(
        "<{action}Response xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\">{result}\
         <ResponseMetadata><RequestId>{}</RequestId></ResponseMetadata></{action}Response>",
        state.ids.request()
    );
    reply::xml(StatusCode::OK, body)
}

fn failure(code: &str, text: &str) -> Answer {
    let body = format!(
        "<ErrorResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\"><Error>\
         <Type>Sender</Type><Code>{code}</Code><Message>{text}</Message></Error></ErrorResponse>"
    );
    reply::xml(StatusCode::BAD_REQUEST, body)
}

fn problem(status: StatusCode, text: &str) -> Answer {
    reply::json(status, json!({ "error": text }).to_string())
}
