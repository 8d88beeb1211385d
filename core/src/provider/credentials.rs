//! The credentials of a provider account: parsed once at the edge, sealed at rest, and
//! opened when a call first needs them. Parsed values are safe in a header, a URL or a
//! host name without another check.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use secrecy::zeroize::Zeroizing;
use serde::Serialize;
use serde_json::{Map, Value};

use super::kind::ProviderType;
use super::smtp::{SmtpAccount, SmtpHost, SmtpLogin, SmtpServer, SmtpTls};
use crate::address::ascii_domain;
use crate::crypto::seal::{Sealed, Sealer};
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId};
use crate::issue::Issue;
use crate::secret::{ExposeSecret, Secret};

/// The longest key or token accepted, in bytes. AWS session tokens are the longest: AWS
/// asks callers to assume no maximum; about 1,000 bytes are usual.
const SECRET_BYTES_MAX: usize = 4_096;
/// The longest name accepted, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The credentials of a provider account.
#[derive(Debug, Clone)]
pub enum Credentials {
    Sendgrid {
        /// An API key with the scope `mail.send`.
        api_key: Secret,
        /// The system that the key belongs to.
        region: SendgridRegion,
    },
    Postmark {
        /// The token of one server: it sends.
        server_token: Secret,
        /// The account's token: it lists the domains.
        account_token: Option<Secret>,
        /// The message stream to send through; `outbound` if `None`.
        message_stream: Option<String>,
    },
    Mailgun {
        /// An account key, or a domain's sending key.
        api_key: Secret,
        /// The sending domain, in lower-case ASCII.
        domain: String,
        /// The system that the domain belongs to.
        region: MailgunRegion,
    },
    Ses {
        access_key_id: Secret,
        secret_access_key: Secret,
        /// The region to send from.
        region: SesRegion,
        /// The token of temporary credentials.
        session_token: Option<Secret>,
        /// The configuration set that publishes events.
        configuration_set: Option<String>,
    },
    Smtp(SmtpAccount),
}

/// An account's sealed credentials, opened on first use and then kept open in memory.
#[derive(Clone)]
pub struct ReadCredentials {
    sealed: Vec<u8>,
    opened: OnceLock<Arc<Credentials>>,
}

impl fmt::Debug for ReadCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadCredentials(sealed)")
    }
}

impl ReadCredentials {
    /// Wraps the sealed credentials.
    #[must_use]
    pub fn new(sealed: Vec<u8>) -> Self {
        let opened = OnceLock::new();
        Self { sealed, opened }
    }

    /// The opened credentials of this account.
    ///
    /// # Errors
    /// Those of [`Credentials::open`].
    pub fn open(
        &self,
        sealer: &Sealer,
        organization_id: OrganizationId,
        id: ProviderAccountId,
        kind: ProviderType,
    ) -> Result<Arc<Credentials>, Fault> {
        if let Some(opened) = self.opened.get() {
            return Ok(Arc::clone(opened));
        }
        let opened = Credentials::open(sealer, organization_id, id, kind, &self.sealed)?;
        Ok(Arc::clone(self.opened.get_or_init(|| Arc::new(opened))))
    }
}

/// SendGrid's systems: `api.sendgrid.com`, and `api.eu.sendgrid.com` for EU regional
/// subusers (`servers` of its OpenAPI documents).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendgridRegion {
    /// `global`, the default.
    Global,
    Eu,
}

/// Mailgun's systems: `api.mailgun.net` and `api.eu.mailgun.net`. A domain belongs to one
/// of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailgunRegion {
    /// `us`, the default.
    Us,
    Eu,
}

/// An AWS region such as `eu-central-1`, safe as part of a host name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SesRegion(String);

impl SesRegion {
    /// Reads `[a-z]{2}(-[a-z]+)+-[0-9]`, at most 32 characters.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let country = parts.next()?;
        let number = parts.next_back()?;
        let names: Vec<&str> = parts.collect();
        let lower = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase());
        let fits = text.len() <= 32
            && country.len() == 2
            && lower(country)
            && !names.is_empty()
            && names.into_iter().all(lower)
            && number.len() == 1
            && number.bytes().all(|b| b.is_ascii_digit());
        fits.then(|| Self(text.to_owned()))
    }

    /// The region's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Credentials that cannot be used for a call: they belong to another provider, or hold
/// characters that a header cannot carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnusableCredentials(pub(super) &'static str);

impl UnusableCredentials {
    /// The credentials of another provider were passed to an adapter.
    pub(super) const OTHER_PROVIDER: Self = Self("the credentials belong to another provider");
}

impl fmt::Display for UnusableCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Credentials {
    /// Reads the `credentials` object of a request. A field of another provider is
    /// refused: the customer would believe that it has an effect.
    ///
    /// # Errors
    /// All issues at once, under `credentials`.
    pub fn parse(kind: ProviderType, value: &Value) -> Result<Self, Vec<Issue>> {
        let Some(object) = value.as_object() else {
            return Err(vec![Issue::new("credentials", "must be an object")]);
        };
        let mut fields = Fields {
            object,
            read: Vec::new(),
            issues: Vec::new(),
        };
        let credentials = match kind {
            ProviderType::Sendgrid => fields.sendgrid(),
            ProviderType::Postmark => fields.postmark(),
            ProviderType::Mailgun => fields.mailgun(),
            ProviderType::Ses => fields.ses(),
            ProviderType::Smtp => fields.smtp(),
        };
        let mut issues = fields.issues;
        let given = object.iter().filter(|(_, value)| !value.is_null());
        let foreign = given.filter(|(name, _)| !fields.read.contains(&name.as_str()));
        issues.extend(foreign.map(|(name, _)| {
            Issue::new(
                format!("credentials.{name}"),
                format!("does not belong to {kind}"),
            )
        }));
        match credentials {
            Some(credentials) if issues.is_empty() => Ok(credentials),
            _ => Err(issues),
        }
    }

    /// The plaintext to seal: JSON with the field names of the API.
    #[must_use]
    pub fn to_plaintext(&self) -> Zeroizing<Vec<u8>> {
        let mut text = Zeroizing::new(Vec::with_capacity(2 * SECRET_BYTES_MAX));
        let texts = self.fields().into_iter();
        let mut document: BTreeMap<&str, PlainValue<'_>> = texts
            .map(|(name, text)| (name, PlainValue::Text(text)))
            .collect();
        if let Self::Smtp(account) = self {
            document.insert("port", PlainValue::Number(account.server.port));
        }
        serde_json::to_writer(&mut *text, &document)
            .expect("a map of texts and numbers serializes, and a Vec takes every write");
        text
    }

    /// Reads the plaintext of [`Credentials::to_plaintext`].
    ///
    /// # Errors
    /// A fault if it is malformed.
    pub fn from_plaintext(kind: ProviderType, plaintext: &[u8]) -> Result<Self, Fault> {
        const DOING: &str = "read the stored credentials";
        let value: Value =
            serde_json::from_slice(plaintext).map_err(|error| Fault::internal(DOING, error))?;
        Self::parse(kind, &value).map_err(|issues| {
            let paths: Vec<String> = issues.into_iter().map(|issue| issue.path).collect();
            Fault::internal(DOING, format!("not as written: {}", paths.join(", ")))
        })
    }

    /// Opens an account's sealed credentials.
    ///
    /// # Errors
    /// A fault if the sealing key is not configured, or the text was changed or belongs to
    /// another account.
    pub fn open(
        sealer: &Sealer,
        organization_id: OrganizationId,
        id: ProviderAccountId,
        kind: ProviderType,
        sealed: &[u8],
    ) -> Result<Self, Fault> {
        let plain = sealer.open(organization_id, Sealed::Credentials, id.0, sealed)?;
        Self::from_plaintext(kind, &Zeroizing::new(plain))
    }

    /// The provider that the credentials are for.
    #[must_use]
    pub fn provider_type(&self) -> ProviderType {
        match self {
            Self::Sendgrid { .. } => ProviderType::Sendgrid,
            Self::Postmark { .. } => ProviderType::Postmark,
            Self::Mailgun { .. } => ProviderType::Mailgun,
            Self::Ses { .. } => ProviderType::Ses,
            Self::Smtp(_) => ProviderType::Smtp,
        }
    }

    /// The mail server; `None` for the types with an HTTP API.
    pub(super) fn mail_server(&self) -> Option<&SmtpAccount> {
        match self {
            Self::Smtp(account) => Some(account),
            Self::Sendgrid { .. }
            | Self::Postmark { .. }
            | Self::Mailgun { .. }
            | Self::Ses { .. } => None,
        }
    }

    fn fields(&self) -> Vec<(&'static str, &str)> {
        let fields = match self {
            Self::Sendgrid { api_key, region } => vec![
                ("apiKey", Some(api_key.expose_secret())),
                ("region", Some(region.as_str())),
            ],
            Self::Postmark {
                server_token,
                account_token,
                message_stream,
            } => vec![
                ("serverToken", Some(server_token.expose_secret())),
                (
                    "accountToken",
                    account_token.as_ref().map(ExposeSecret::expose_secret),
                ),
                ("messageStream", message_stream.as_deref()),
            ],
            Self::Mailgun {
                api_key,
                domain,
                region,
            } => vec![
                ("apiKey", Some(api_key.expose_secret())),
                ("domain", Some(domain)),
                ("region", Some(region.as_str())),
            ],
            Self::Ses {
                access_key_id,
                secret_access_key,
                region,
                session_token,
                configuration_set,
            } => vec![
                ("accessKeyId", Some(access_key_id.expose_secret())),
                ("secretAccessKey", Some(secret_access_key.expose_secret())),
                ("region", Some(region.as_str())),
                (
                    "sessionToken",
                    session_token.as_ref().map(ExposeSecret::expose_secret),
                ),
                ("configurationSet", configuration_set.as_deref()),
            ],
            Self::Smtp(account) => {
                let login = account.login.as_ref();
                vec![
                    ("host", Some(account.server.host.as_str())),
                    (
                        "username",
                        login.map(|login| login.username.expose_secret()),
                    ),
                    (
                        "password",
                        login.map(|login| login.password.expose_secret()),
                    ),
                    ("tls", Some(account.tls.as_str())),
                ]
            }
        };
        let given = fields.into_iter();
        given
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}

/// A value in the sealed form.
#[derive(Serialize)]
#[serde(untagged)]
enum PlainValue<'a> {
    Text(&'a str),
    Number(u16),
}

impl SendgridRegion {
    fn parse(text: &str) -> Option<Self> {
        [Self::Global, Self::Eu]
            .into_iter()
            .find(|region| region.as_str() == text)
    }

    /// The region's name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Eu => "eu",
        }
    }
}

impl MailgunRegion {
    fn parse(text: &str) -> Option<Self> {
        [Self::Us, Self::Eu]
            .into_iter()
            .find(|region| region.as_str() == text)
    }

    /// The region's name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Us => "us",
            Self::Eu => "eu",
        }
    }
}

/// The fields of a credentials object, and the issues found while reading them. A reader
/// notes an issue and returns `None`, so that every field is read before the parse fails.
struct Fields<'a> {
    object: &'a Map<String, Value>,
    /// The names of the fields that belong to the provider.
    read: Vec<&'static str>,
    issues: Vec<Issue>,
}

impl Fields<'_> {
    fn sendgrid(&mut self) -> Option<Credentials> {
        let api_key = self.required("apiKey", read_secret);
        let region = self.optional("region", read_sendgrid_region);
        Some(Credentials::Sendgrid {
            api_key: api_key?,
            region: region.unwrap_or(SendgridRegion::Global),
        })
    }

    fn postmark(&mut self) -> Option<Credentials> {
        let server_token = self.required("serverToken", read_secret);
        let account_token = self.optional("accountToken", read_secret);
        let message_stream = self.optional("messageStream", read_name);
        Some(Credentials::Postmark {
            server_token: server_token?,
            account_token,
            message_stream,
        })
    }

    fn mailgun(&mut self) -> Option<Credentials> {
        let api_key = self.required("apiKey", read_secret);
        let domain = self.required("domain", read_domain);
        let region = self.optional("region", read_mailgun_region);
        Some(Credentials::Mailgun {
            api_key: api_key?,
            domain: domain?,
            region: region.unwrap_or(MailgunRegion::Us),
        })
    }

    fn ses(&mut self) -> Option<Credentials> {
        let access_key_id = self.required("accessKeyId", read_secret);
        let secret_access_key = self.required("secretAccessKey", read_secret);
        let region = self.required("region", read_ses_region);
        let session_token = self.optional("sessionToken", read_secret);
        let configuration_set = self.optional("configurationSet", read_name);
        Some(Credentials::Ses {
            access_key_id: access_key_id?,
            secret_access_key: secret_access_key?,
            region: region?,
            session_token,
            configuration_set,
        })
    }

    fn smtp(&mut self) -> Option<Credentials> {
        let host = self.required("host", read_host);
        let port = self.port();
        let username = self.optional("username", read_login);
        let password = self.optional("password", read_login);
        for (name, other) in [("username", "password"), ("password", "username")] {
            if self.is_absent(name) && !self.is_absent(other) {
                self.add_issue(name, &format!("is required with a {other}"));
            }
        }
        let tls = self.optional("tls", read_smtp_tls);
        let tls = tls.unwrap_or(SmtpTls::StartTls);
        let login = username.zip(password);
        Some(Credentials::Smtp(SmtpAccount {
            server: SmtpServer {
                host: host?,
                port: port.unwrap_or_else(|| tls.usual_port()),
            },
            login: login.map(|(username, password)| SmtpLogin { username, password }),
            tls,
        }))
    }

    /// The port; `None` if it is absent or invalid.
    fn port(&mut self) -> Option<u16> {
        self.read.push("port");
        if self.is_absent("port") {
            return None;
        }
        let number = self.object["port"].as_u64();
        let port = number.and_then(|number| u16::try_from(number).ok());
        let port = port.filter(|port| *port > 0);
        if port.is_none() {
            self.add_issue("port", "must be a whole number from 1 to 65535");
        }
        port
    }

    fn is_absent(&self, name: &str) -> bool {
        matches!(self.object.get(name), None | Some(Value::Null))
    }

    fn required<T>(
        &mut self,
        name: &'static str,
        read: fn(&str) -> Result<T, &'static str>,
    ) -> Option<T> {
        if self.is_absent(name) {
            self.add_issue(name, "is required");
            return None;
        }
        self.optional(name, read)
    }

    fn optional<T>(
        &mut self,
        name: &'static str,
        read: fn(&str) -> Result<T, &'static str>,
    ) -> Option<T> {
        self.read.push(name);
        let text = match self.object.get(name)? {
            Value::Null => return None,
            Value::String(text) => text.trim(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                self.add_issue(name, "must be a string");
                return None;
            }
        };
        let read = if text.is_empty() {
            Err("must not be empty")
        } else {
            read(text)
        };
        read.map_err(|message| self.add_issue(name, message)).ok()
    }

    fn add_issue(&mut self, name: &str, message: &str) {
        self.issues
            .push(Issue::new(name, message).under("credentials"));
    }
}

fn read_secret(text: &str) -> Result<Secret, &'static str> {
    if text.len() > SECRET_BYTES_MAX {
        return Err("must not be longer than 4096 characters");
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("must consist of visible ASCII characters without spaces");
    }
    Ok(Secret::from(text))
}

/// A user name or password for SMTP. Any text without control characters, since it is sent
/// in base64; NUL separates the two (RFC 4616).
fn read_login(text: &str) -> Result<Secret, &'static str> {
    if text.len() > SECRET_BYTES_MAX {
        return Err("must not be longer than 4096 bytes");
    }
    if text.chars().any(char::is_control) {
        return Err("must not contain control characters");
    }
    Ok(Secret::from(text))
}

fn read_host(text: &str) -> Result<SmtpHost, &'static str> {
    SmtpHost::parse(text)
        .ok_or("must be a host name such as smtp.example.com or an IP address, without a port")
}

fn read_smtp_tls(text: &str) -> Result<SmtpTls, &'static str> {
    SmtpTls::parse(text).ok_or("must be one of starttls, implicit, none")
}

/// A Postmark stream's id or an SES configuration set's name. SES allows exactly these 64
/// characters; Postmark's ids look the same.
fn read_name(text: &str) -> Result<String, &'static str> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if text.len() > NAME_BYTES_MAX || !text.bytes().all(allowed) {
        return Err("must be at most 64 letters, digits, hyphens and underscores");
    }
    Ok(text.to_owned())
}

fn read_domain(text: &str) -> Result<String, &'static str> {
    ascii_domain(text).ok_or("must be a domain name such as mg.example.com")
}

fn read_sendgrid_region(text: &str) -> Result<SendgridRegion, &'static str> {
    SendgridRegion::parse(text).ok_or("must be one of global, eu")
}

fn read_mailgun_region(text: &str) -> Result<MailgunRegion, &'static str> {
    MailgunRegion::parse(text).ok_or("must be one of us, eu")
}

fn read_ses_region(text: &str) -> Result<SesRegion, &'static str> {
    SesRegion::parse(text).ok_or("must be an AWS region such as eu-central-1")
}
