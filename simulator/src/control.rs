//! The simulator's own interface for tests: captured messages, faults, domains,
//! credentials.

use http::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::faults::{Fault, FaultCalls, FaultKind};
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

const PAGE_DEFAULT: usize = 100;
const PAGE_TO_DEFAULT: usize = 1_000;
const PAGE_MAX: usize = 10_000;
const DOMAINS_MAX: usize = 1_000;

/// `None` if this module does not serve the path.
pub(crate) fn handle(state: &State, request: &Request) -> Option<Answer> {
    if request.too_large {
        return Some(problem(StatusCode::PAYLOAD_TOO_LARGE, "body too large"));
    }
    let answer = match (&request.method, request.path()) {
        (&Method::GET, "/healthz") => reply::text(StatusCode::OK, "ok"),
        (&Method::GET, "/captured") => captured(state, request),
        (&Method::DELETE, "/captured") => {
            state.captures.clear();
            reply::empty(StatusCode::NO_CONTENT)
        }
        (&Method::GET, "/captured/count") => count(state),
        (&Method::GET, "/faults") => faults(state),
        (&Method::POST, "/faults") => answer(set_fault(state, request)),
        (&Method::POST, "/domains") => answer(set_domains(state, request)),
        (&Method::POST, "/ses/credentials") => answer(register_ses_credential(state, request)),
        _ => return None,
    };
    Some(answer)
}

pub(crate) fn not_found(request: &Request) -> Answer {
    let message = format!("The simulator has no {} {}", request.method, request.path());
    problem(StatusCode::NOT_FOUND, &message)
}

fn captured(state: &State, request: &Request) -> Answer {
    let provider = match request.query("provider").as_deref().map(parse_provider) {
        None => None,
        Some(Ok(provider)) => provider,
        Some(Err(message)) => return problem(StatusCode::BAD_REQUEST, &message),
    };
    let messages = match request.query("to") {
        Some(address) => {
            let limit = request.query_number("limit", PAGE_TO_DEFAULT, PAGE_MAX);
            let mut found = state.captures.to(&address, PAGE_MAX);
            found.retain(|one| provider.is_none_or(|own| own == one.provider));
            found.split_off(found.len().saturating_sub(limit))
        }
        None => {
            let limit = request.query_number("limit", PAGE_DEFAULT, PAGE_MAX);
            state.captures.newest(provider, limit)
        }
    };
    reply::json(StatusCode::OK, json!({ "messages": messages }).to_string())
}

fn count(state: &State) -> Answer {
    let counts = state.captures.counts();
    let by_provider: serde_json::Map<String, Value> = Provider::ALL
        .into_iter()
        .filter(|provider| provider.takes_mail())
        .map(|provider| (provider.name().to_owned(), counts[provider as usize].into()))
        .collect();
    let total: u64 = counts.iter().sum();
    let body = json!({"count": total, "byProvider": by_provider});
    reply::json(StatusCode::OK, body.to_string())
}

fn faults(state: &State) -> Answer {
    let faults: Vec<Value> = state
        .faults
        .list()
        .iter()
        .map(|fault| {
            json!({
                "provider": fault.provider.map_or("ALL", Provider::name),
                "kind": fault.kind,
                "rate": fault.rate,
                "latencyMs": fault.latency_ms,
                "calls": fault.calls,
            })
        })
        .collect();
    reply::json(StatusCode::OK, json!({ "faults": faults }).to_string())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FaultBody {
    provider: String,
    kind: FaultBodyKind,
    #[serde(default = "always")]
    rate: f64,
    #[serde(default)]
    latency_ms: u64,
    #[serde(default)]
    calls: FaultCalls,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FaultBodyKind {
    Set(FaultKind),
    Clear(Clear),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Clear {
    None,
}

fn always() -> f64 {
    1.0
}

fn set_fault(state: &State, request: &Request) -> Result<Answer, String> {
    let body: FaultBody = parse(request)?;
    let provider = parse_provider(&body.provider)?;
    if !(0.0..=1.0).contains(&body.rate) {
        return Err("rate must be between 0 and 1".to_owned());
    }
    match body.kind {
        FaultBodyKind::Clear(Clear::None) => state.faults.clear(provider),
        FaultBodyKind::Set(kind) => state.faults.set(Fault {
            provider,
            kind,
            rate: body.rate,
            latency_ms: body.latency_ms,
            calls: body.calls,
        }),
    }
    Ok(faults(state))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DomainsBody {
    provider: String,
    credential: String,
    domains: Vec<String>,
}

fn set_domains(state: &State, request: &Request) -> Result<Answer, String> {
    let body: DomainsBody = parse(request)?;
    let provider = parse_provider(&body.provider)?.ok_or("provider must be one of the four")?;
    if body.domains.len() > DOMAINS_MAX {
        return Err(format!("at most {DOMAINS_MAX} domains"));
    }
    if !state.domains.set(provider, &body.credential, body.domains) {
        return Err("no room for another credential".to_owned());
    }
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SesCredentialBody {
    access_key_id: String,
    secret_access_key: String,
}

fn register_ses_credential(state: &State, request: &Request) -> Result<Answer, String> {
    let body: SesCredentialBody = parse(request)?;
    let (id, secret) = (&body.access_key_id, &body.secret_access_key);
    if !state.ses_secrets.register(id, secret) {
        return Err("no room for another credential".to_owned());
    }
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

/// `ALL` is `None`.
fn parse_provider(name: &str) -> Result<Option<Provider>, String> {
    match (name, Provider::parse(name)) {
        ("ALL", _) => Ok(None),
        (_, Some(provider)) => Ok(Some(provider)),
        _ => Err(format!(
            "'{name}' is none of SENDGRID, POSTMARK, MAILGUN, SES, SMTP, RESEND and ALL"
        )),
    }
}

fn parse<T: DeserializeOwned>(request: &Request) -> Result<T, String> {
    serde_json::from_slice(&request.body).map_err(|cause| cause.to_string())
}

fn answer(result: Result<Answer, String>) -> Answer {
    result.unwrap_or_else(|message| problem(StatusCode::BAD_REQUEST, &message))
}

fn problem(status: StatusCode, message: &str) -> Answer {
    reply::json(status, json!({ "error": message }).to_string())
}
