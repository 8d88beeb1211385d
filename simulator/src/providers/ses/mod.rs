//! Amazon SES, API v2: sending, the account and its identities. Every call must be
//! signed. `sns` implements SNS, which delivers the events.

mod check;
pub(super) mod events;
mod identities;
mod model;
mod raw;
mod send;
mod sigv4;
pub(crate) mod sns;
mod suppressions;
mod templates;

use http::{Method, StatusCode};
use serde_json::json;

use crate::clock;
use crate::credentials::{CredentialKind, firewall_page};
use crate::faults::AccountProblem;
use crate::reply::{self, Answer, Outcome};
use crate::request::{Request, decode};
use crate::state::State;
use sigv4::{Authorization, Failure};

/// 40 MB after base64 encoding.
pub(super) const BODY_BYTES_MAX: usize = 40_000_000;

/// The authenticated caller.
struct Caller<'a> {
    access_key_id: &'a str,
    region: &'a str,
    credential_kind: CredentialKind,
}

pub(super) fn is_send(request: &Request) -> bool {
    request.path() == "/v2/email/outbound-emails"
}

pub(super) fn handle(state: &State, request: &Request) -> Outcome {
    let caller = match authenticate(state, request) {
        Ok(caller) => caller,
        Err(refusal) => return refusal.into(),
    };
    let segments = request.segments();
    let get = request.method == Method::GET;
    match segments.as_slice() {
        ["v2", "email", "outbound-emails"] if request.method == Method::POST => {
            send::send(state, request, &caller)
        }
        ["v2", "email", "account"] if get => identities::account(state, &caller).into(),
        ["v2", "email", "suppression", "addresses"] if get => {
            suppressions::list(state, request, &caller).into()
        }
        ["v2", "email", "templates"] if get => templates::list(state, request, &caller).into(),
        ["v2", "email", "templates", name] if get => {
            templates::find(state, &caller, &decode(name)).into()
        }
        ["v2", "email", "identities"] if get => identities::list(state, request, &caller).into(),
        ["v2", "email", "identities"] if request.method == Method::POST => {
            identities::create(state, request, &caller).into()
        }
        ["v2", "email", "identities", name] if get => {
            identities::find(state, &caller, &decode(name)).into()
        }
        ["v2", "email", "identities", name] if request.method == Method::DELETE => {
            identities::remove(state, &caller, &decode(name)).into()
        }
        _ => error(
            state,
            StatusCode::NOT_FOUND,
            "UnknownOperationException",
            "The requested operation is not known to this service.",
        )
        .into(),
    }
}

pub(super) fn throttled(state: &State) -> Answer {
    error(
        state,
        StatusCode::TOO_MANY_REQUESTS,
        "TooManyRequestsException",
        "Maximum sending rate exceeded.",
    )
}

pub(super) fn server_error(state: &State) -> Answer {
    error(
        state,
        StatusCode::INTERNAL_SERVER_ERROR,
        "InternalFailure",
        "The request processing has failed because of an unknown error.",
    )
}

/// Sources: the developer guide for the quota, botocore's model for the suspension, and a
/// response of SES for the pause (GoodServer issue 419).
fn account_refused(state: &State, problem: AccountProblem) -> Answer {
    let (name, message) = match problem {
        AccountProblem::Limit => ("ThrottlingException", "Daily message quota exceeded."),
        AccountProblem::Pause => (
            "MessageRejected",
            "Sending paused for this account. For more information, please check the inbox of the \
             email address associated with your AWS account.",
        ),
        AccountProblem::Suspended => (
            "AccountSuspendedException",
            "The account's ability to send email has been permanently restricted.",
        ),
    };
    error(state, StatusCode::BAD_REQUEST, name, message)
}

fn authenticate<'a>(state: &State, request: &'a Request) -> Result<Caller<'a>, Answer> {
    let refuse = |name, message: &str| Err(error(state, StatusCode::FORBIDDEN, name, message));
    let Some(header) = request.header("authorization") else {
        let message = "Missing Authentication Token";
        return refuse("MissingAuthenticationTokenException", message);
    };
    let authorization = match Authorization::parse(header) {
        Ok(authorization) => authorization,
        Err(message) => return refuse("IncompleteSignatureException", message),
    };
    let credential_kind = CredentialKind::of(authorization.access_key_id);
    match credential_kind {
        CredentialKind::Firewall => return Err(firewall_page()),
        CredentialKind::Invalid => {
            let message = "The security token included in the request is invalid.";
            return refuse("UnrecognizedClientException", message);
        }
        CredentialKind::Good
        | CredentialKind::NoSendScope
        | CredentialKind::SendOnly
        | CredentialKind::NoCredit => {}
    }
    // A body beyond the limit was discarded, so its signature cannot be checked.
    let verified = match request.too_large {
        true => Ok(()),
        false => state
            .ses_secrets
            .with(authorization.access_key_id, |secret| {
                match (
                    secret,
                    sigv4::verify(
                        request,
                        &authorization,
                        secret.unwrap_or_default(),
                        clock::now(),
                    ),
                ) {
                    // People who try things out have no secret that fits.
                    (None, Err(Failure::Mismatch(_))) => Ok(()),
                    (_, verified) => verified,
                }
            }),
    };
    match verified {
        Ok(()) => Ok(Caller {
            access_key_id: authorization.access_key_id,
            region: authorization.region,
            credential_kind,
        }),
        Err(Failure::Expired) => Err(error(
            state,
            StatusCode::BAD_REQUEST,
            "RequestExpired",
            "The request reached the service more than 15 minutes off the date stamp on it.",
        )),
        Err(Failure::Incomplete(message)) => refuse("IncompleteSignatureException", message),
        Err(Failure::Mismatch(message)) => refuse("InvalidSignatureException", &message),
    }
}

fn error(state: &State, status: StatusCode, name: &str, message: &str) -> Answer {
    let answer = reply::json(status, json!({ "message": message }).to_string());
    let answer = answer.with_header("x-amzn-errortype", name);
    answer.with_header("x-amzn-requestid", &state.ids.request())
}

fn access_denied(state: &State, caller: &Caller<'_>, action: &str) -> Answer {
    let message = format!(
        "User: arn:aws:iam::123456789012:user/{} is not authorized to perform: ses:{action}",
        caller.access_key_id
    );
    let name = "AccessDeniedException";
    error(state, StatusCode::FORBIDDEN, name, &message)
}
