//! The secrets that verify the event webhooks of an account's provider: never shown,
//! sealed like credentials.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use secrecy::zeroize::Zeroizing;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::credentials::Credentials;
use super::kind::ProviderType;
use crate::crypto::seal::{Sealed, Sealer};
use crate::fault::Fault;
use crate::ids::{Ids, OrganizationId, ProviderAccountId};
use crate::issue::Issue;
use crate::secret::{ExposeSecret, Secret};

/// The fields that event secrets can have in a request, for all providers.
pub const FIELDS: [&str; 3] = ["publicKey", "signingKey", "topicArn"];
/// The longest signing key accepted, in bytes; Mailgun's have 32.
const SIGNING_KEY_BYTES_MAX: usize = 256;
/// The first bytes of a DER SubjectPublicKeyInfo of an uncompressed P-256 point (RFC 5480,
/// 2): `id-ecPublicKey`, `secp256r1`, a bit string of 65 bytes that begins with 4.
const P256_PREFIX: [u8; 27] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
];
/// The length of the whole key in bytes.
const P256_BYTES: usize = 91;
/// The length of a generated user name and of a generated password: 190 and 285 bits.
const USERNAME_CHARS: usize = 32;
const PASSWORD_CHARS: usize = 48;

/// The secrets that verify the events of one account.
#[derive(Debug, Clone)]
pub enum EventSecrets {
    /// SendGrid: the public key of its signatures.
    Sendgrid {
        /// Base64 of the DER SubjectPublicKeyInfo of a P-256 key.
        public_key: String,
    },
    /// Postmark signs nothing: a generated user name and password.
    Postmark {
        /// The user name of HTTP Basic.
        username: String,
        password: Secret,
    },
    /// Mailgun: the account-wide webhook signing key.
    Mailgun {
        /// The key of its HMAC.
        signing_key: Secret,
    },
    /// SES: anyone can subscribe our URL to a topic of their own, so only messages of this
    /// topic count.
    Ses {
        /// The ARN of the SNS topic that the configuration set publishes to.
        topic_arn: TopicArn,
    },
}

impl EventSecrets {
    /// Reads the `eventSecrets` object of a request. A field of another provider is
    /// refused: the customer would believe that it verifies events.
    ///
    /// # Errors
    /// All issues at once, under `eventSecrets`.
    pub fn parse(kind: ProviderType, value: &Value) -> Result<Self, Vec<Issue>> {
        let Some(object) = value.as_object() else {
            return Err(vec![Issue::new("eventSecrets", "must be an object")]);
        };
        let own = secret_field(kind);
        let is_given = |field: &str| object.get(field).is_some_and(|value| !value.is_null());
        let foreign = FIELDS
            .into_iter()
            .filter(|field| own != Some(*field) && is_given(field))
            .map(|field| Issue::new(field, format!("does not belong to {kind}")));
        let mut issues: Vec<Issue> = foreign.collect();
        let secrets = match own {
            Some(field) => Self::read(kind, field, object)
                .map_err(|message| issues.push(Issue::new(field, message)))
                .ok(),
            None => {
                let message = format!("must not be given for {kind}");
                issues.push(Issue::new("", message));
                None
            }
        };
        let issues = issues.into_iter();
        let issues: Vec<Issue> = issues.map(|issue| issue.under("eventSecrets")).collect();
        secrets.filter(|_| issues.is_empty()).ok_or(issues)
    }

    fn read(
        kind: ProviderType,
        field: &str,
        object: &Map<String, Value>,
    ) -> Result<Self, &'static str> {
        let text = match object.get(field) {
            None | Some(Value::Null) => return Err("is required"),
            Some(value) => value.as_str().ok_or("must be a string")?.trim(),
        };
        match kind {
            ProviderType::Sendgrid => Ok(Self::Sendgrid {
                public_key: read_public_key(text)?,
            }),
            ProviderType::Mailgun => Ok(Self::Mailgun {
                signing_key: read_signing_key(text)?,
            }),
            ProviderType::Ses => {
                let topic_arn = TopicArn::parse(text)
                    .ok_or("must be the ARN of a standard SNS topic, such as arn:aws:sns:eu-central-1:123456789012:ses-events")?;
                Ok(Self::Ses { topic_arn })
            }
            ProviderType::Postmark | ProviderType::Smtp => Err("does not belong to this type"),
        }
    }

    /// The secrets of a new account: a generated user name and password for Postmark, `None`
    /// for the other types, whose secrets come from the provider.
    #[must_use]
    pub fn initial(kind: ProviderType, ids: &Ids) -> Option<Self> {
        match kind {
            ProviderType::Postmark => Some(Self::Postmark {
                username: ids.alphanumeric(USERNAME_CHARS),
                password: Secret::from(ids.alphanumeric(PASSWORD_CHARS)),
            }),
            ProviderType::Sendgrid
            | ProviderType::Mailgun
            | ProviderType::Ses
            | ProviderType::Smtp => None,
        }
    }

    /// The issue if the secrets do not fit the credentials: SES publishes only to topics of
    /// its own region.
    #[must_use]
    pub fn mismatch(&self, credentials: &Credentials) -> Option<Issue> {
        let (Self::Ses { topic_arn }, Credentials::Ses { region, .. }) = (self, credentials) else {
            return None;
        };
        let message = format!("must be of the account's region, {}", region.as_str());
        (topic_arn.region() != region.as_str())
            .then(|| Issue::new("eventSecrets.topicArn", message))
    }

    /// A SendGrid key as its API returns it; `None` if it is malformed.
    #[must_use]
    pub fn sendgrid(public_key: &str) -> Option<Self> {
        let public_key = read_public_key(public_key.trim()).ok()?;
        Some(Self::Sendgrid { public_key })
    }

    /// A Mailgun signing key as its API returns it; `None` if it is malformed.
    #[must_use]
    pub fn mailgun(signing_key: &str) -> Option<Self> {
        let signing_key = read_signing_key(signing_key.trim()).ok()?;
        Some(Self::Mailgun { signing_key })
    }

    /// Seals the secrets for the row of their account.
    #[must_use]
    pub fn seal(
        &self,
        sealer: &Sealer,
        organization_id: OrganizationId,
        id: ProviderAccountId,
    ) -> Vec<u8> {
        let plain = self.to_plaintext();
        sealer.seal(
            organization_id,
            Sealed::EventSecrets,
            id.0,
            plain.as_bytes(),
        )
    }

    /// Whether both verify the same events.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.to_plaintext() == other.to_plaintext()
    }

    fn to_plaintext(&self) -> Zeroizing<String> {
        let document = match self {
            Self::Sendgrid { public_key } => json!({ "publicKey": public_key }),
            Self::Postmark { username, password } => {
                json!({ "username": username, "password": password.expose_secret() })
            }
            Self::Mailgun { signing_key } => json!({ "signingKey": signing_key.expose_secret() }),
            Self::Ses { topic_arn } => json!({ "topicArn": topic_arn }),
        };
        Zeroizing::new(document.to_string())
    }

    /// Opens the secrets that [`EventSecrets::seal`] sealed for this account.
    ///
    /// # Errors
    /// A fault if they are malformed or their key is not configured.
    pub fn open(
        sealer: &Sealer,
        organization_id: OrganizationId,
        id: ProviderAccountId,
        provider_type: ProviderType,
        sealed: &[u8],
    ) -> Result<Self, Fault> {
        const DOING: &str = "read the stored event secrets";
        let plain =
            Zeroizing::new(sealer.open(organization_id, Sealed::EventSecrets, id.0, sealed)?);
        let document: Value =
            serde_json::from_slice(&plain).map_err(|error| Fault::internal(DOING, error))?;
        let text = |field: &str| document[field].as_str();
        let secrets = match provider_type {
            ProviderType::Sendgrid => text("publicKey").and_then(Self::sendgrid),
            ProviderType::Mailgun => text("signingKey").and_then(Self::mailgun),
            ProviderType::Ses => text("topicArn")
                .and_then(TopicArn::parse)
                .map(|topic_arn| Self::Ses { topic_arn }),
            ProviderType::Postmark => text("username").zip(text("password")).map(|pair| {
                let (username, password) = pair;
                Self::Postmark {
                    username: username.to_owned(),
                    password: Secret::from(password),
                }
            }),
            ProviderType::Smtp => None,
        };
        secrets.ok_or_else(|| Fault::internal(DOING, "not as written"))
    }
}

/// The request field of an account's secrets; `None` if the customer provides none.
fn secret_field(kind: ProviderType) -> Option<&'static str> {
    match kind {
        ProviderType::Sendgrid => Some("publicKey"),
        ProviderType::Mailgun => Some("signingKey"),
        ProviderType::Ses => Some("topicArn"),
        ProviderType::Postmark | ProviderType::Smtp => None,
    }
}

fn read_public_key(text: &str) -> Result<String, &'static str> {
    let der = BASE64.decode(text).unwrap_or_default();
    if der.len() != P256_BYTES || !der.starts_with(&P256_PREFIX) {
        return Err("must be a P-256 key as SendGrid shows it: base64 of its DER form");
    }
    Ok(text.to_owned())
}

fn read_signing_key(text: &str) -> Result<Secret, &'static str> {
    if text.is_empty() {
        return Err("must not be empty");
    }
    if text.len() > SIGNING_KEY_BYTES_MAX || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("must be at most 256 visible ASCII characters without spaces");
    }
    Ok(Secret::from(text))
}

/// The last part of an account's `webhookUrl`, which identifies the account. Shown only to
/// callers that may read the account.
#[derive(Clone, PartialEq, Eq, sqlx::Type)]
#[sqlx(transparent)]
pub struct EventToken(String);

impl EventToken {
    /// Generates a token: 32 characters of base62, 190 bits.
    #[must_use]
    pub fn generate(ids: &Ids) -> Self {
        Self(ids.alphanumeric(32))
    }

    /// The token as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Tokens do not belong in logs.
impl fmt::Debug for EventToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventToken")
    }
}

/// The ARN of an SNS topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicArn(String);

impl TopicArn {
    /// Parses `arn:aws(-cn|-us-gov)?:sns:<region>:<12 digits>:<name>`, the name 1 to 256 of
    /// `A-Za-z0-9_-` (SNS CreateTopic). FIFO topics are refused: they cannot post to
    /// HTTPS.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let [arn, partition, service, region, account, name] = parts[..] else {
            return None;
        };
        let region_fits = super::credentials::SesRegion::parse(region).is_some();
        let account_fits = account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit());
        let name_fits = (1..=256).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        let fits = arn == "arn"
            && matches!(partition, "aws" | "aws-cn" | "aws-us-gov")
            && service == "sns"
            && region_fits
            && account_fits
            && name_fits;
        fits.then(|| Self(text.to_owned()))
    }

    /// The ARN.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The region that the topic is in.
    #[must_use]
    pub fn region(&self) -> &str {
        self.0.split(':').nth(3).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_arns_of_standard_topics_are_accepted() {
        let good = "arn:aws:sns:eu-west-1:123456789012:ses-events";
        assert_eq!(TopicArn::parse(good).unwrap().as_str(), good);
        assert_eq!(TopicArn::parse(good).unwrap().region(), "eu-west-1");
        for bad in [
            "",
            "arn:aws:sns:eu-west-1:123456789012:ses.fifo",
            "arn:aws:sqs:eu-west-1:123456789012:ses",
            "arn:aws:sns:eu-west-1:12345678901:ses",
            "arn:aws:sns:evil/:123456789012:ses",
            "arn:aws:sns:eu-west-1:123456789012:ses:5ef1f0c1",
        ] {
            assert_eq!(TopicArn::parse(bad), None, "{bad}");
        }
    }
}
