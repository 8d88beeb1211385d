//! Amazon SNS, as far as SES needs it: topics that configuration sets publish to, and who is
//! subscribed to them.
//!
//! What an operator does by hand in the console (a topic, its subscription, an event destination)
//! is one call of the simulator's own: `POST /sns/subscriptions`. The rest is as there: a signed
//! confirmation is posted, its URL visited, and only then does anything else come.

use std::sync::Arc;

use chrono::SecondsFormat;
use http::{Method, StatusCode};
use parking_lot::RwLock;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::callbacks::{
    Kinds, Lane, SignatureFault, SnsVersion, Stamp, Subscriber, Target, sns_certificate,
};
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

const SUBSCRIPTIONS_MAX: usize = 10_000;
/// The name of the certificate, as if it were the hash that the real ones have.
const CERTIFICATE: &str = "SimpleNotificationService-00000000000000000000000000000001.pem";
/// What SES publishes when an event destination is made. It is text, not JSON.
const VALIDATED: &str = "Successfully validated SNS topic for Amazon SES event publishing.";

/// All subscriptions, whoever's topics they are for.
#[derive(Default)]
pub(crate) struct Topics(RwLock<Vec<Subscription>>);

struct Subscription {
    topic_arn: String,
    /// The set whose mail is told of; `None` stands for every set.
    configuration_set: Option<String>,
    arn: String,
    token: String,
    is_confirmed: bool,
    lane: Arc<Lane>,
}

impl Topics {
    /// Who is told about mail that was sent with this configuration set.
    pub(crate) fn subscribers(&self, configuration_set: &str) -> Vec<Subscriber> {
        let all = self.0.read();
        all.iter()
            .filter(|one| one.is_confirmed)
            .filter(|one| {
                let own = one.configuration_set.as_deref();
                own.is_none_or(|own| own == configuration_set)
            })
            .map(|one| Subscriber {
                lane: Arc::clone(&one.lane),
                wants: Kinds::ALL,
            })
            .collect()
    }
}

impl Subscription {
    fn is_same(&self, other: &Self) -> bool {
        self.topic_arn == other.topic_arn
            && self.configuration_set == other.configuration_set
            && self.lane.url == other.lane.url
    }

    fn shown(&self) -> Value {
        json!({
            "topicArn": self.topic_arn,
            "url": self.lane.url.as_str(),
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

/// The calls of SNS and the simulator's own about it; `None` when the path is neither.
pub(crate) fn handle(state: &State, request: &Request) -> Option<Answer> {
    let answer = match (&request.method, request.path()) {
        (&Method::POST, "/sns/subscriptions") => {
            subscribe(state, request).unwrap_or_else(|text| problem(StatusCode::BAD_REQUEST, &text))
        }
        (&Method::GET, "/sns/subscriptions") => {
            let all = state.sns_topics.0.read();
            let shown: Vec<Value> = all.iter().map(Subscription::shown).collect();
            reply::json(StatusCode::OK, json!({"subscriptions": shown}).to_string())
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
    let lane = Lane::new(&body.url, target).ok_or("url must be http or https")?;
    let subscription = Subscription {
        topic_arn: body.topic_arn,
        configuration_set: body.configuration_set,
        arn,
        token: state.ids.token(),
        is_confirmed: false,
        lane,
    };
    let shown = subscription.shown();
    let message = confirmation(state, &subscription);
    let lane = Arc::clone(&subscription.lane);
    let mut all = state.sns_topics.0.write();
    if all.len() >= SUBSCRIPTIONS_MAX {
        return Err("no room for another subscription".to_owned());
    }
    // As there, subscribing again asks for confirmation again, unless it was given.
    if let Some(at) = all.iter().position(|one| one.is_same(&subscription)) {
        if all[at].is_confirmed {
            return Ok(reply::json(StatusCode::OK, all[at].shown().to_string()));
        }
        all.remove(at);
    }
    all.push(subscription);
    drop(all);
    state.callbacks.post(lane, message);
    Ok(reply::json(StatusCode::CREATED, shown.to_string()))
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
    let (arn, lane) = (subscription.arn.clone(), Arc::clone(&subscription.lane));
    drop(all);
    if is_new {
        let stamp = state.callbacks.settings().stamp();
        let message = notification(&lane, &state.ids.uuid(), VALIDATED, stamp);
        state.callbacks.post(lane, message);
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

/// The signed invitation to confirm.
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
    let signed = sign(&subscription.lane, &fields, stamp);
    Value::Object(signed).to_string()
}

/// A signed notification; `text` is what was published.
pub(crate) fn notification(lane: &Lane, message_id: &str, text: &str, stamp: Stamp) -> String {
    let Target::Sns {
        topic_arn,
        subscription_arn,
        ..
    } = &lane.target
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
    let mut signed = sign(lane, &fields, stamp);
    let arn = utf8_percent_encode(subscription_arn, NON_ALPHANUMERIC);
    let url = format!(
        "{}/?Action=Unsubscribe&SubscriptionArn={arn}",
        host(topic_arn)
    );
    signed.insert("UnsubscribeURL".to_owned(), Value::String(url));
    Value::Object(signed).to_string()
}

/// The headers that stand on a message beside its body.
pub(crate) fn headers(lane: &Lane, body: &Value) -> Vec<(&'static str, String)> {
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let mut headers = vec![
        ("x-amz-sns-message-type", text("Type")),
        ("x-amz-sns-message-id", text("MessageId")),
        ("x-amz-sns-topic-arn", text("TopicArn")),
    ];
    if let Target::Sns {
        subscription_arn, ..
    } = &lane.target
        && body["Type"] == "Notification"
    {
        headers.push(("x-amz-sns-subscription-arn", subscription_arn.clone()));
    }
    headers
}

/// The fields come in the order in which they are signed.
fn sign(lane: &Lane, fields: &[(&str, String)], stamp: Stamp) -> Map<String, Value> {
    let Target::Sns {
        topic_arn, version, ..
    } = &lane.target
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
