//! An OpenID Connect provider that says whatever a test wants. It does not share a line with
//! Waypost's client.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::Response;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(super) const CLIENT: &str = "waypost";
pub(super) const SECRET: &str = "the secret of the client";

/// How an ID token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signature {
    Right,
    /// By a key that is not among the published ones.
    OfAnother,
    /// Of other claims.
    OfOtherClaims,
    None,
    /// HMAC with the client's secret.
    Secret,
}

#[derive(Debug)]
struct State {
    /// The claims of the next ID token.
    claims: Value,
    signature: Signature,
    /// The PKCE challenge that the code must be redeemed for.
    challenge: String,
    redeemed: usize,
}

pub(super) struct Issuer {
    pub(super) url: String,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Issuer {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State {
            claims: json!({}),
            signature: Signature::Right,
            challenge: String::new(),
            redeemed: 0,
        }));
        let keys = Arc::new([generate(), generate()]);
        let task = tokio::spawn(serve(listener, url.clone(), Arc::clone(&state), keys));
        Self { url, state, task }
    }

    /// What the next token says, and how it is signed.
    pub(super) fn prepare(&self, claims: Value, signature: Signature, challenge: &str) {
        let mut state = self.state.lock().unwrap();
        state.claims = claims;
        state.signature = signature;
        challenge.clone_into(&mut state.challenge);
    }

    /// How many codes were redeemed.
    pub(super) fn redeemed(&self) -> usize {
        self.state.lock().unwrap().redeemed
    }
}

fn generate() -> EcdsaKeyPair {
    EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap()
}

async fn serve(
    listener: TcpListener,
    url: String,
    state: Arc<Mutex<State>>,
    keys: Arc<[EcdsaKeyPair; 2]>,
) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (url, state, keys) = (url.clone(), Arc::clone(&state), Arc::clone(&keys));
        tokio::spawn(async move {
            let service = service_fn(|request: http::Request<Incoming>| {
                let (url, state, keys) = (url.clone(), Arc::clone(&state), Arc::clone(&keys));
                async move {
                    let path = request.uri().path().to_owned();
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let answer = answer(&url, &path, &body, (&state, &keys));
                    let status = if answer.is_null() { 400 } else { 200 };
                    let body = Full::new(Bytes::from(answer.to_string()));
                    let response = Response::builder()
                        .status(status)
                        .header("content-type", "application/json");
                    Ok::<_, Infallible>(response.body(body).unwrap())
                }
            });
            let connection = hyper::server::conn::http1::Builder::new();
            let _ended = connection
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

fn answer(
    url: &str,
    path: &str,
    body: &Bytes,
    (state, keys): (&Mutex<State>, &[EcdsaKeyPair; 2]),
) -> Value {
    match path {
        "/.well-known/openid-configuration" => json!({
            "issuer": url,
            "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"),
            "jwks_uri": format!("{url}/jwks"),
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }),
        "/jwks" => json!({ "keys": [jwk(&keys[0])] }),
        "/token" => {
            let mut state = state.lock().unwrap();
            let form: Vec<(String, String)> =
                url::form_urlencoded::parse(body).into_owned().collect();
            let field = |wanted: &str| {
                let mut fields = form.iter();
                fields
                    .find(|(name, _)| name == wanted)
                    .map(|(_, value)| value.as_str())
            };
            let verifier = field("code_verifier").unwrap_or_default();
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
            if challenge != state.challenge || field("code") != Some("the code") {
                return Value::Null;
            }
            state.redeemed += 1;
            json!({
                "access_token": "access", "token_type": "Bearer", "expires_in": 60,
                "id_token": token(&state.claims, state.signature, keys),
            })
        }
        _ => Value::Null,
    }
}

fn jwk(key: &EcdsaKeyPair) -> Value {
    let point = key.public_key().as_ref();
    json!({
        "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "one",
        "x": URL_SAFE_NO_PAD.encode(&point[1..33]),
        "y": URL_SAFE_NO_PAD.encode(&point[33..65]),
    })
}

fn token(claims: &Value, signature: Signature, keys: &[EcdsaKeyPair; 2]) -> String {
    let algorithm = match signature {
        Signature::None => "none",
        Signature::Secret => "HS256",
        Signature::Right | Signature::OfAnother | Signature::OfOtherClaims => "ES256",
    };
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = part(&json!({ "alg": algorithm, "kid": "one", "typ": "JWT" }));
    let signed = format!("{header}.{}", part(claims));
    let by = |key: &EcdsaKeyPair, text: &str| {
        let random = SystemRandom::new();
        let signature = key.sign(&random, text.as_bytes()).unwrap();
        URL_SAFE_NO_PAD.encode(signature.as_ref())
    };
    let signature = match signature {
        Signature::Right => by(&keys[0], &signed),
        Signature::OfAnother => by(&keys[1], &signed),
        Signature::OfOtherClaims => by(&keys[0], &format!("{header}.{}", part(&json!({})))),
        Signature::None => String::new(),
        Signature::Secret => {
            let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
            mac.update(signed.as_bytes());
            URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
        }
    };
    format!("{signed}.{signature}")
}
