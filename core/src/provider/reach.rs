//! Whether a provider answers at all, for `waypost-api doctor`.

use super::call::{CallStep, ProviderCall};
use super::kind::ProviderType;
use super::outcome::CredentialCheck;
use super::transport::Transport;
use super::{AccountAccess, adapter};

/// The host that an account's calls go to, such as `api.sendgrid.com`.
#[must_use]
pub fn host(kind: ProviderType, access: &AccountAccess<'_>) -> Option<String> {
    if let Some(account) = access.credentials.mail_server() {
        let server = &account.server;
        return Some(format!("{}:{}", server.host.as_str(), server.port));
    }
    let url = first_call(kind, access)?.url;
    let host = url.host_str()?.to_owned();
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host,
    })
}

/// Calls the provider. An HTTP API is called without credentials, because any answer proves that
/// it is there. A mail server is logged in to, because it may encrypt only after its greeting.
///
/// # Errors
/// Why no answer came.
pub async fn reach(
    transport: &Transport,
    kind: ProviderType,
    access: &AccountAccess<'_>,
) -> Result<(), String> {
    if access.credentials.mail_server().is_some() {
        return match transport.check(adapter(kind), access).await {
            CredentialCheck::Undecided { reason } => Err(reason),
            CredentialCheck::Valid | CredentialCheck::Invalid { .. } => Ok(()),
        };
    }
    let Some(call) = first_call(kind, access) else {
        return Ok(());
    };
    let mut url = call.url;
    url.set_path("/");
    url.set_query(None);
    let reply = transport.call(ProviderCall::get(url)).await;
    reply
        .map(|_any| ())
        .map_err(|error| error.reason().to_owned())
}

fn first_call(kind: ProviderType, access: &AccountAccess<'_>) -> Option<ProviderCall> {
    match adapter(kind).check(access) {
        CallStep::Call { call, .. } => Some(*call),
        CallStep::Done(_) => None,
    }
}
