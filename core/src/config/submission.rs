//! The settings of SMTP submission, the program `waypost-smtp`.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::reader::Reader;
use super::{Environment, LinkSettings, smtp};

/// The settings of SMTP submission.
#[derive(Debug, Clone)]
pub struct SubmissionSettings {
    /// Address of sessions that begin without TLS.
    pub listen: SocketAddr,
    /// Address of sessions that begin with TLS.
    pub tls_listen: Option<SocketAddr>,
    pub certificate: Option<CertificateFiles>,
    /// Whether a client must use TLS before it logs in.
    pub requires_tls: bool,
    /// The name in the greeting.
    pub hostname: String,
    pub sessions_max: usize,
    pub sessions_per_address_max: usize,
    pub message_bytes_max: usize,
}

/// PEM files of a certificate and its private key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, then those that issued it.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

const LISTEN: &str = "WAYPOST_SUBMISSION_LISTEN";
const CERTIFICATE: &str = "WAYPOST_SUBMISSION_TLS_CERTIFICATE";
const KEY: &str = "WAYPOST_SUBMISSION_TLS_KEY";
const TLS_LISTEN: &str = "WAYPOST_SUBMISSION_TLS_LISTEN";

/// Reads the settings. The host in the public URL of `links` becomes the name in the greeting.
pub(super) fn read(
    reader: &mut Reader<'_>,
    environment: Option<Environment>,
    links: Option<&LinkSettings>,
) -> Option<SubmissionSettings> {
    let is_development = environment == Some(Environment::Development);
    let listen = reader.given(
        LISTEN,
        "0.0.0.0:587",
        "Address and port on which `waypost-smtp` listens for mail; clients begin TLS with STARTTLS. In development the default is `127.0.0.1:2587`.",
    );
    let default = if is_development {
        "127.0.0.1:2587"
    } else {
        "0.0.0.0:587"
    };
    let listen = listen.unwrap_or_else(|| default.to_owned()).parse().ok();
    if listen.is_none() {
        reader.reject(
            LISTEN,
            &format!("cannot be parsed; a valid value is {default}"),
        );
    }
    let tls_listen = reader.optional(
        TLS_LISTEN,
        "Address and port on which `waypost-smtp` listens for mail over TLS from the first byte, such as `0.0.0.0:465`. Unset: it does not.",
        |text| text.parse().ok(),
    );
    let certificate = read_certificate(reader);
    if tls_listen.is_some() && certificate.is_none() {
        reader.reject(
            TLS_LISTEN,
            &format!("must not be set without {CERTIFICATE} and {KEY}"),
        );
    }
    let hostname = reader.optional(
        "WAYPOST_SUBMISSION_HOSTNAME",
        "Name of the server in the greeting of `waypost-smtp`. Unset: the host of `WAYPOST_PUBLIC_URL`.",
        |text| is_hostname(text).then(|| text.to_owned()),
    );
    let sessions_max = reader.parse(
        "WAYPOST_SUBMISSION_SESSIONS_MAX",
        "2000",
        "Maximum number of SMTP sessions that one `waypost-smtp` has at the same time. A further one is answered 421. Keep it a few hundred below the process's limit on open files.",
        1..=100_000,
    );
    let sessions_per_address_max = reader.parse(
        "WAYPOST_SUBMISSION_SESSIONS_PER_ADDRESS_MAX",
        "200",
        "Maximum number of these sessions from one IP address, or one IPv6 network of 64 bits. Behind a load balancer that hides the addresses of clients, set it as `WAYPOST_SUBMISSION_SESSIONS_MAX`.",
        1..=100_000,
    );
    let message_bytes_max = reader.parse(
        "WAYPOST_SUBMISSION_MESSAGE_BYTES_MAX",
        "36700160",
        "Maximum size of a mail over SMTP, in bytes. Attachments take a third more there than their size: see `WAYPOST_ATTACHMENTS_MAX_BYTES`.",
        65_536..=104_857_600,
    );
    Some(SubmissionSettings {
        listen: listen?,
        tls_listen,
        certificate,
        requires_tls: !is_development,
        hostname: hostname.or_else(|| links.map(smtp::hello))?,
        sessions_max: sessions_max?,
        sessions_per_address_max: sessions_per_address_max?,
        message_bytes_max: message_bytes_max?,
    })
}

fn read_certificate(reader: &mut Reader<'_>) -> Option<CertificateFiles> {
    let path = |text: &str| Some(PathBuf::from(text));
    let certificate = reader.optional(
        CERTIFICATE,
        "PEM file of the certificate of `waypost-smtp`, followed by those that issued it. Required by that program in production. A renewed file is used without a restart.",
        path,
    );
    let key = reader.optional(
        KEY,
        "PEM file of the private key of this certificate.",
        path,
    );
    match (certificate, key) {
        (Some(certificate), Some(key)) => Some(CertificateFiles { certificate, key }),
        (None, None) => None,
        (Some(_), None) => {
            reader.reject(KEY, &format!("is required with {CERTIFICATE}"));
            None
        }
        (None, Some(_)) => {
            reader.reject(CERTIFICATE, &format!("is required with {KEY}"));
            None
        }
    }
}

/// Whether a text can stand in a greeting.
fn is_hostname(text: &str) -> bool {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b".-[]:".contains(&byte);
    text.len() <= 255 && text.bytes().all(is_name_byte)
}

#[cfg(test)]
mod tests {
    use super::super::{ConfigError, Settings};
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<SubmissionSettings, ConfigError> {
        let common = [
            ("DATABASE_URL", "postgres://localhost/waypost"),
            ("WAYPOST_PUBLIC_URL", "https://mail.example.com/waypost"),
            (
                "WAYPOST_ENCRYPTION_KEYS",
                "1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            ),
        ];
        let variables = common.iter().chain(pairs);
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::from_map(&variables.collect()).map(|settings| settings.submission)
    }

    #[test]
    fn development_listens_on_this_machine_and_needs_no_tls() {
        let production = read(&[]).unwrap();
        assert_eq!(production.listen, "0.0.0.0:587".parse().unwrap());
        assert!(production.requires_tls && production.tls_listen.is_none());
        assert_eq!(production.hostname, "mail.example.com");
        let development = read(&[("WAYPOST_ENV", "development")]).unwrap();
        assert_eq!(development.listen, "127.0.0.1:2587".parse().unwrap());
        assert!(!development.requires_tls);
    }

    #[test]
    fn a_certificate_is_given_with_its_key() {
        let certificate = (CERTIFICATE, "/etc/waypost/smtp.pem");
        let key = (KEY, "/etc/waypost/smtp.key");
        let tls = (TLS_LISTEN, "0.0.0.0:465");
        let settings = read(&[certificate, key, tls]).unwrap();
        assert_eq!(settings.certificate.unwrap().key, PathBuf::from(key.1));
        for (given, wrong) in [
            (&[certificate][..], KEY),
            (&[key], CERTIFICATE),
            (&[tls], TLS_LISTEN),
            (&[(LISTEN, "587")], LISTEN),
            (
                &[("WAYPOST_SUBMISSION_HOSTNAME", "a b")],
                "WAYPOST_SUBMISSION_HOSTNAME",
            ),
        ] {
            let issues = read(given).unwrap_err().issues;
            assert_eq!(issues[0].path, wrong, "{given:?}");
        }
    }
}
