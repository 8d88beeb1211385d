//! SMTP submission: from the bytes of a client to what the providers get.

mod conversation;
mod delivered;
mod hostile;
mod idempotency;
mod login;
mod mime;
mod recipients;
mod refused;
mod shutdown;
mod tls;

use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{SmtpClient, SubmissionServer, TestApp};

/// The header of a mail to one address.
const HEADER: &str = "From: News <news@example.com>\nTo: a@example.org\nSubject: Hello\n";

/// An API without a worker, so that the rows stay as they were accepted, an account, and SMTP
/// submission.
async fn accepting() -> (TestApp, SubmissionServer) {
    accepting_with(&[]).await
}

async fn accepting_with(own: &[(&str, &str)]) -> (TestApp, SubmissionServer) {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    app.leave_work();
    let server = app.start_submission(own).await;
    (app, server)
}

async fn key(app: &TestApp) -> String {
    app.key(app.organization_id(), &[Permission::Send]).await
}

/// A client that has logged in.
async fn client(app: &TestApp, server: &SubmissionServer) -> SmtpClient {
    SmtpClient::log_in(server.address, &key(app).await).await
}

/// A mail to one address.
fn mail(text: &str) -> String {
    format!("{HEADER}\n{text}\n")
}

/// A mail with further headers.
fn mail_with(headers: &str) -> String {
    format!("{HEADER}{headers}\n\nHello\n")
}

/// The id of an accepted mail.
fn id_of(reply: &str) -> String {
    let id = reply.strip_prefix("250 2.0.0 Accepted as ");
    let id = id.unwrap_or_else(|| panic!("not accepted: {reply}"));
    id.split(';').next().unwrap_or_default().to_owned()
}

async fn count(app: &TestApp) -> u32 {
    let count = app.value("SELECT count(*) FROM messages").await.unwrap();
    count.parse().unwrap()
}
