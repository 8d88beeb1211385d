//! Amazon SNS, which carries the events of SES. Sources: the Amazon SNS developer guide
//! (sns-verify-signature-of-message.md, SendMessageToHttp.prepare.md) and AWS' validators
//! for PHP and JavaScript.
//!
//! A message is signed with a certificate that it names itself. That proves only that SNS
//! sent it: anyone can subscribe our URL to a topic of their own. So only messages of the
//! account's own topic are accepted.

use std::fmt;

use aws_lc_rs::signature::{
    RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use chrono::TimeDelta;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};
use tracing::{info, warn};
use url::Url;

use super::item::parse_date;
use super::{Inbound, InboundRefusal, Received, SnsFetcher, header, require_recent, ses};
use crate::clock::Timestamp;
use crate::provider::credentials::SesRegion;
use crate::provider::event_secrets::TopicArn;

const MESSAGE_TYPE: &str = "x-amz-sns-message-type";
/// The oldest message accepted. The longest delivery policy repeats it for an hour.
const AGE_MAX: TimeDelta = TimeDelta::hours(24);
/// The longest URL accepted, in bytes.
const URL_BYTES_MAX: usize = 2_048;

/// The document that SNS posts.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Envelope {
    #[serde(rename = "Type")]
    message_type: String,
    message_id: String,
    topic_arn: String,
    message: SignedText,
    timestamp: String,
    signature_version: String,
    signature: String,
    #[serde(rename = "SigningCertURL")]
    signing_cert_url: String,
    subject: Option<SignedText>,
    token: Option<String>,
    #[serde(rename = "SubscribeURL")]
    subscribe_url: Option<String>,
}

/// A text as it was signed: bytes that need not be UTF-8.
struct SignedText(Vec<u8>);

impl<'de> Deserialize<'de> for SignedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SignedTextVisitor;
        impl Visitor<'_> for SignedTextVisitor {
            type Value = SignedText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<SignedText, E> {
                Ok(SignedText(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(SignedTextVisitor)
    }
}

/// Verifies a message of the topic, then reads it or confirms the subscription.
pub(super) async fn receive(
    topic_arn: &TopicArn,
    inbound: &Inbound<'_>,
    fetcher: &SnsFetcher,
) -> Result<Received, InboundRefusal> {
    let envelope = verify(topic_arn, inbound, fetcher).await?;
    match envelope.message_type.as_str() {
        "Notification" => Ok(envelope.read(inbound.now)),
        "SubscriptionConfirmation" => {
            let url = envelope.subscribe_url.as_deref().unwrap_or_default();
            let token = envelope.token.as_deref().unwrap_or_default();
            let url = confirmation_url(url, topic_arn, token).ok_or(InboundRefusal::unverified(
                "its SubscribeURL confirms something else",
            ))?;
            fetcher.confirm(&url).await?;
            info!("Confirmed the subscription of an SNS topic");
            Ok(Received::default())
        }
        // An UnsubscribeConfirmation: `string_to_sign` accepts no other type.
        _ => {
            warn!("SNS ended a subscription; SES events no longer arrive through it");
            Ok(Received {
                skipped: 1,
                ..Received::default()
            })
        }
    }
}

async fn verify(
    topic_arn: &TopicArn,
    inbound: &Inbound<'_>,
    fetcher: &SnsFetcher,
) -> Result<Envelope, InboundRefusal> {
    let declared = header(inbound.headers, MESSAGE_TYPE);
    let declared = declared.ok_or(InboundRefusal::unverified("it lacks the header of SNS"))?;
    let envelope: Envelope = serde_json::from_slice(inbound.body)
        .map_err(|_| InboundRefusal::unverified("it is not an SNS message"))?;
    if envelope.message_type != declared {
        return Err(InboundRefusal::unverified(
            "its type differs from its header",
        ));
    }
    if envelope.topic_arn != topic_arn.as_str() {
        return Err(InboundRefusal::unverified("it belongs to another topic"));
    }
    let signed = envelope
        .string_to_sign()
        .ok_or(InboundRefusal::unverified("it lacks a field of its type"))?;
    let algorithm: &'static dyn VerificationAlgorithm = match envelope.signature_version.as_str() {
        "1" => &RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY,
        "2" => &RSA_PKCS1_2048_8192_SHA256,
        _ => {
            return Err(InboundRefusal::unverified(
                "its signature version is unknown",
            ));
        }
    };
    let signature = BASE64
        .decode(&envelope.signature)
        .map_err(|_| InboundRefusal::unverified("its signature is not Base64"))?;
    let url = certificate_url(&envelope.signing_cert_url).ok_or(InboundRefusal::unverified(
        "its certificate URL is not one of SNS",
    ))?;
    let certificate = fetcher.certificate(&url).await?;
    if !certificate.is_valid_at(inbound.now) {
        return Err(InboundRefusal::unverified(
            "its certificate is not valid now",
        ));
    }
    UnparsedPublicKey::new(algorithm, &certificate.public_key)
        .verify(&signed, &signature)
        .map_err(|_| InboundRefusal::unverified("the signature is not that of SNS"))?;
    require_recent(parse_date(&envelope.timestamp), inbound.now, AGE_MAX)?;
    Ok(envelope)
}

impl Envelope {
    /// The signed bytes: names and values, a line each, in this order, the subject only if
    /// there is one. `None` for an unknown type or a missing field.
    fn string_to_sign(&self) -> Option<Vec<u8>> {
        let message = ("Message", self.message.0.as_slice());
        let id = ("MessageId", self.message_id.as_bytes());
        let timestamp = ("Timestamp", self.timestamp.as_bytes());
        let topic = ("TopicArn", self.topic_arn.as_bytes());
        let message_type = ("Type", self.message_type.as_bytes());
        let fields = match self.message_type.as_str() {
            "Notification" => {
                let subject = self.subject.as_ref().map(|text| ("Subject", &text.0[..]));
                let mut fields = vec![message, id];
                fields.extend(subject);
                fields.extend([timestamp, topic, message_type]);
                fields
            }
            "SubscriptionConfirmation" | "UnsubscribeConfirmation" => {
                let url = ("SubscribeURL", self.subscribe_url.as_ref()?.as_bytes());
                let token = ("Token", self.token.as_ref()?.as_bytes());
                vec![message, id, url, timestamp, token, topic, message_type]
            }
            _ => return None,
        };
        let lines = fields
            .iter()
            .flat_map(|(name, value)| [name.as_bytes(), b"\n", *value, b"\n"]);
        Some(lines.collect::<Vec<_>>().concat())
    }

    fn read(&self, now: Timestamp) -> Received {
        let mut received = Received::default();
        let message = String::from_utf8_lossy(&self.message.0);
        received.add(ses::read(&message, &self.message_id, now));
        received
    }
}

/// Reads a notification without verifying it.
#[cfg(fuzzing)]
pub(super) fn read_unverified(body: &[u8], now: Timestamp) -> Result<Received, InboundRefusal> {
    let envelope: Envelope = serde_json::from_slice(body)
        .map_err(|_| InboundRefusal::unverified("it is not an SNS message"))?;
    let _signed = envelope.string_to_sign();
    let _url = certificate_url(&envelope.signing_cert_url);
    Ok(envelope.read(now))
}

/// A URL of an SNS host, `sns.<region>.amazonaws.com` (`.cn` in China), without user, port
/// or fragment.
fn sns_url(text: &str) -> Option<(Url, SesRegion)> {
    // SNS writes nothing that the URL parser would correct (tabs, backslashes, a missing
    // slash, spaces).
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'\\' && byte != b'@' && byte != b'#');
    if text.len() > URL_BYTES_MAX || !is_plain || !text.starts_with("https://") {
        return None;
    }
    let url = Url::parse(text).ok()?;
    let host = url.host_str()?.strip_prefix("sns.")?;
    let (region, is_china) = match host.strip_suffix(".amazonaws.com.cn") {
        Some(region) => (region, true),
        None => (host.strip_suffix(".amazonaws.com")?, false),
    };
    let region = SesRegion::parse(region)?;
    let fits = url.scheme() == "https"
        && url.port().is_none()
        && url.username().is_empty()
        && url.password().is_none()
        && region.as_str().starts_with("cn-") == is_china;
    fits.then_some((url, region))
}

/// The URL of an SNS certificate.
fn certificate_url(text: &str) -> Option<Url> {
    let (url, _) = sns_url(text)?;
    (url.path().ends_with(".pem") && url.query().is_none()).then_some(url)
}

/// A URL that confirms the subscription of this topic with this token, and does nothing
/// else.
fn confirmation_url(text: &str, topic_arn: &TopicArn, token: &str) -> Option<Url> {
    let (url, region) = sns_url(text)?;
    let mut pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    pairs.sort();
    let pairs: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let confirms = [
        ("Action", "ConfirmSubscription"),
        ("Token", token),
        ("TopicArn", topic_arn.as_str()),
    ];
    let topic_region = topic_arn.as_str().split(':').nth(3)?;
    let fits = url.path() == "/"
        && !token.is_empty()
        && pairs == confirms
        && region.as_str() == topic_region;
    fits.then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = "https://sns.eu-west-1.amazonaws.com/Sim-0123.pem";

    #[test]
    fn certificates_come_from_sns_hosts_only() {
        for good in [
            CERTIFICATE,
            "https://sns.us-gov-west-1.amazonaws.com/x.pem",
            "https://sns.cn-north-1.amazonaws.com.cn/x.pem",
        ] {
            assert_eq!(certificate_url(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "http://sns.eu-west-1.amazonaws.com/x.pem",
            "HTTPS://sns.eu-west-1.amazonaws.com/x.pem",
            "https:\\\\sns.eu-west-1.amazonaws.com\\x.pem",
            "https://sns.eu-west-1.amazonaws.com:8443/x.pem",
            "https://sns.eu-west-1.amazonaws.com@evil.example/x.pem",
            "https://user@sns.eu-west-1.amazonaws.com/x.pem",
            "https://evil.example/sns.eu-west-1.amazonaws.com/x.pem",
            "https://sns.eu-west-1.amazonaws.com.evil.example/x.pem",
            "https://sns.eu-west-1.amazonaws.com.cn/x.pem",
            "https://sns.cn-north-1.amazonaws.com/x.pem",
            "https://evil.sns.eu-west-1.amazonaws.com/x.pem",
            "https://s3.eu-west-1.amazonaws.com/x.pem",
            "https://sns.s3.amazonaws.com/x.pem",
            "https://sns.amazonaws.com/x.pem",
            "https://sns..amazonaws.com/x.pem",
            "https://sns.eu-west-1.amazonaws.com/x.pem?y",
            "https://sns.eu-west-1.amazonaws.com/x.pem#y",
            "https://sns.eu-west-1.amazonaws.com/x#.pem",
            "https://sns.eu-west-1.amazonaws.com/x?.pem",
            "https://sns.eu-west-1.amazonaws.com/x.txt",
            "https://sns.eu-west-1.amazonaws.com/x\t.pem",
            " https://sns.eu-west-1.amazonaws.com/x.pem",
        ] {
            assert_eq!(certificate_url(bad), None, "{bad}");
        }
        let long = format!(
            "https://sns.eu-west-1.amazonaws.com/{}.pem",
            "x".repeat(2_048)
        );
        assert_eq!(certificate_url(&long), None);
    }

    #[test]
    fn only_a_url_that_confirms_the_topic_is_followed() {
        let topic = TopicArn::parse("arn:aws:sns:eu-west-1:123456789012:ses").unwrap();
        let host = "https://sns.eu-west-1.amazonaws.com";
        let arn = topic.as_str();
        let url = |query: &str| confirmation_url(&format!("{host}/?{query}"), &topic, "t0k");
        let escaped = arn.replace(':', "%3A");
        for good in [
            format!("Action=ConfirmSubscription&TopicArn={arn}&Token=t0k"),
            format!("Token=t0k&TopicArn={escaped}&Action=ConfirmSubscription"),
        ] {
            assert!(url(&good).is_some(), "{good}");
        }
        for bad in [
            String::new(),
            format!("Action=Unsubscribe&TopicArn={arn}&Token=t0k"),
            format!("Action=ConfirmSubscription&TopicArn={arn}&Token=other"),
            format!("Action=ConfirmSubscription&TopicArn={arn}s&Token=t0k"),
            format!("Action=ConfirmSubscription&TopicArn={arn}"),
            format!("Action=ConfirmSubscription&TopicArn={arn}&Token=t0k&Token=t0k"),
            format!("Action=ConfirmSubscription&TopicArn={arn}&Token=t0k&More=1"),
        ] {
            assert_eq!(url(&bad), None, "{bad}");
        }
        let query = format!("Action=ConfirmSubscription&TopicArn={arn}&Token=t0k");
        for bad in [
            format!("https://sns.us-east-1.amazonaws.com/?{query}"),
            format!("http://sns.eu-west-1.amazonaws.com/?{query}"),
            format!("https://evil.example/?{query}"),
            format!("{host}/path?{query}"),
        ] {
            assert_eq!(confirmation_url(&bad, &topic, "t0k"), None, "{bad}");
        }
        assert_eq!(
            confirmation_url(&format!("{host}/?{query}"), &topic, ""),
            None
        );
    }
}
