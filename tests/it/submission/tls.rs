//! TLS: by STARTTLS, from the first byte, required in production, and renewed certificates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use waypost_tests::{SmtpClient, auth_plain, wait_until};

use super::{accepting_with, id_of, key, mail};

/// The files of a certificate for a test, which are removed at its end.
struct Certificate {
    folder: PathBuf,
    der: CertificateDer<'static>,
}

impl Certificate {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("waypost-it-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let der = write(&folder);
        Self { folder, der }
    }

    fn renew(&mut self) {
        self.der = write(&self.folder);
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    fn connector(&self) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let config = builder.with_root_certificates(roots).with_no_client_auth();
        TlsConnector::from(Arc::new(config))
    }

    async fn try_handshake(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from("smtp.example.com").unwrap();
        self.connector().connect(name, stream).await
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _already_gone = std::fs::remove_dir_all(&self.folder);
    }
}

fn write(folder: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["smtp.example.com".to_owned()]).unwrap();
    std::fs::write(folder.join("key.pem"), signing_key.serialize_pem()).unwrap();
    std::fs::write(folder.join("certificate.pem"), cert.pem()).unwrap();
    cert.der().clone()
}

fn settings(certificate: &Certificate) -> [(&'static str, String); 2] {
    [
        (
            "WAYPOST_SUBMISSION_TLS_CERTIFICATE",
            certificate.path("certificate.pem"),
        ),
        ("WAYPOST_SUBMISSION_TLS_KEY", certificate.path("key.pem")),
    ]
}

const PRODUCTION: [(&str, &str); 3] = [
    ("WAYPOST_ENV", "production"),
    (
        "WAYPOST_ENCRYPTION_KEYS",
        "1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    ),
    ("WAYPOST_PUBLIC_URL", "https://mail.example.com"),
];

#[tokio::test]
async fn mail_is_accepted_after_starttls_and_over_tls() {
    let certificate = Certificate::new("both");
    let own = settings(&certificate);
    let own: Vec<(&str, &str)> = own.iter().map(|(name, value)| (*name, &**value)).collect();
    let (app, server) = accepting_with(&own).await;
    let key = key(&app).await;
    let mut client = SmtpClient::connect(server.address).await;
    let offered = client.command("EHLO x").await;
    assert!(offered.contains("STARTTLS"), "{offered}");
    assert!(client.command("STARTTLS").await.starts_with("220 2.0.0 "));
    let stream = certificate.try_handshake(client.into_stream()).await;
    let mut secured = SmtpClient::over(stream.unwrap());
    // What was said before TLS is forgotten.
    let reply = secured.command("MAIL FROM:<a@b.c>").await;
    assert!(reply.starts_with("503 5.5.1 "), "{reply}");
    let offered = secured.command("EHLO x").await;
    assert!(!offered.contains("STARTTLS"), "{offered}");
    secured.authenticate(&key).await;
    id_of(&secured.mail(&["a@example.org"], &mail("Hello")).await);
    let stream = TcpStream::connect(server.tls_address).await.unwrap();
    let mut client = SmtpClient::over(certificate.try_handshake(stream).await.unwrap());
    assert!(client.reply().await.starts_with("220 "));
    client.authenticate(&key).await;
    id_of(&client.mail(&["a@example.org"], &mail("Hello")).await);
}

#[tokio::test]
async fn commands_that_came_before_the_handshake_do_not_count_after_it() {
    let certificate = Certificate::new("injected");
    let own = settings(&certificate);
    let own: Vec<(&str, &str)> = own.iter().map(|(name, value)| (*name, &**value)).collect();
    let (_app, server) = accepting_with(&own).await;
    let mut client = SmtpClient::connect(server.address).await;
    client.command("EHLO x").await;
    client.send(b"STARTTLS\r\nEHLO injected\r\nNOOP\r\n").await;
    assert!(client.reply().await.starts_with("220 2.0.0 "));
    let stream = certificate.try_handshake(client.into_stream()).await;
    let mut secured = SmtpClient::over(stream.unwrap());
    let reply = secured.command("VRFY a").await;
    assert!(reply.starts_with("252 "), "{reply}");
}

#[tokio::test]
async fn in_production_nobody_logs_in_without_tls() {
    let certificate = Certificate::new("production");
    let own = settings(&certificate);
    let own = own.iter().map(|(name, value)| (*name, &**value));
    let own: Vec<(&str, &str)> = own.chain(PRODUCTION).collect();
    let app = waypost_tests::TestApp::builder()
        .without_worker()
        .without_scheduler()
        .setting(PRODUCTION[1].0, PRODUCTION[1].1)
        .start()
        .await;
    let server = app.start_submission(&own).await;
    let mut client = SmtpClient::connect(server.address).await;
    let offered = client.command("EHLO x").await;
    assert!(!offered.contains("AUTH"), "{offered}");
    let key = key(&app).await;
    let reply = client.command(&auth_plain(&key)).await;
    assert!(reply.starts_with("538 5.7.11 "), "{reply}");
    let reply = client.command("MAIL FROM:<a@b.c>").await;
    assert!(reply.starts_with("530 5.7.0 "), "{reply}");
    client.command("STARTTLS").await;
    let stream = certificate.try_handshake(client.into_stream()).await;
    SmtpClient::over(stream.unwrap()).authenticate(&key).await;
}

#[tokio::test]
async fn a_renewed_certificate_is_used_without_a_restart() {
    let mut certificate = Certificate::new("renewed");
    let own = settings(&certificate);
    let own: Vec<(&str, &str)> = own.iter().map(|(name, value)| (*name, &**value)).collect();
    let (_app, server) = accepting_with(&own).await;
    let connect = async |certificate: &Certificate| {
        let stream = TcpStream::connect(server.tls_address).await.unwrap();
        certificate.try_handshake(stream).await.is_ok()
    };
    assert!(connect(&certificate).await);
    certificate.renew();
    wait_until("the new certificate is used", async || {
        connect(&certificate).await
    })
    .await;
}
