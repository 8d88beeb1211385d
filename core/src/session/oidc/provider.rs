//! The conversation with the provider, by the crate `openidconnect`: discovery, the code flow
//! with PKCE, and the verification of the ID token (signature, issuer, audience, expiry, nonce).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreErrorResponseType, CoreGenderClaim, CoreJsonWebKey,
    CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreProviderMetadata,
    CoreResponseType, CoreRevocableToken, CoreRevocationErrorResponse,
    CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::{
    AdditionalClaims, AsyncHttpClient, AuthenticationFlow, AuthorizationCode, Client, ClientId,
    ClientSecret, CsrfToken, EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet,
    HttpResponse, IdTokenFields, IssuerUrl, Nonce, OAuth2TokenResponse as _, PkceCodeChallenge,
    PkceCodeVerifier, RedirectUrl, Scope, StandardErrorResponse, StandardTokenResponse,
    SubjectIdentifier, TokenResponse as _, UserInfoClaims,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Mutex;
use url::Url;

use super::{OidcRefusal, ProviderIdentity, SignInState};
use crate::clock::Clock;
use crate::config::OidcSettings;
use crate::fault::Fault;
use crate::http::{HttpBody, HttpClient, HttpError, HttpRequest, HttpSettings};
use crate::secret::ExposeSecret;

/// How long the provider's metadata and keys are used before they are fetched again.
const METADATA_TTL: Duration = Duration::from_secs(600);
/// The least time between two fetches because a token did not verify: the provider may have new
/// keys, and somebody may send wrong tokens.
const REFETCH_AFTER: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// What is asked for beside `openid`: the claims that a user needs.
const SCOPES: [&str; 2] = ["email", "profile"];

/// Signatures that are accepted. None without a signature, and none with the client's secret as
/// key: a token must be the provider's.
fn algorithms() -> [CoreJwsSigningAlgorithm; 9] {
    [
        CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
        CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
        CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
        CoreJwsSigningAlgorithm::RsaSsaPssSha256,
        CoreJwsSigningAlgorithm::RsaSsaPssSha384,
        CoreJwsSigningAlgorithm::RsaSsaPssSha512,
        CoreJwsSigningAlgorithm::EcdsaP256Sha256,
        CoreJwsSigningAlgorithm::EcdsaP384Sha384,
        CoreJwsSigningAlgorithm::EdDsa,
    ]
}

/// The claims that the standard does not name, such as the groups.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct OtherClaims(HashMap<String, Value>);

impl AdditionalClaims for OtherClaims {}

type IdFields = IdTokenFields<
    OtherClaims,
    EmptyExtraTokenFields,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm,
>;
type Tokens = StandardTokenResponse<IdFields, CoreTokenType>;
type OidcClient = Client<
    OtherClaims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    Tokens,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;
type MoreClaims = UserInfoClaims<OtherClaims, CoreGenderClaim>;

/// The provider's metadata and keys, and when they were fetched.
type CachedMetadata = (Instant, Arc<CoreProviderMetadata>);

pub(super) struct Provider {
    settings: OidcSettings,
    redirect_url: RedirectUrl,
    http: ProviderHttp,
    clock: Clock,
    fetched: Mutex<Option<CachedMetadata>>,
}

impl Provider {
    /// `callback` is the URL that the provider sends the user back to.
    pub(super) fn new(
        settings: OidcSettings,
        callback: String,
        clock: Clock,
    ) -> Result<Self, Fault> {
        let doing = "set up the OpenID Connect client";
        let client = HttpClient::new(&HttpSettings {
            connect_timeout: ANSWER_TIMEOUT / 2,
            answer_timeout: ANSWER_TIMEOUT,
            idle_connections_max: 2,
            idle_timeout: Duration::from_secs(60),
            answer_bytes_max: ANSWER_BYTES_MAX,
        })?;
        Ok(Self {
            http: ProviderHttp {
                client,
                settings: settings.clone(),
            },
            settings,
            redirect_url: RedirectUrl::new(callback)
                .map_err(|error| Fault::internal(doing, error))?,
            clock,
            fetched: Mutex::default(),
        })
    }

    /// The URL at the provider at which the user signs in.
    pub(super) async fn authorize_url(&self, state: &SignInState) -> Result<Url, OidcRefusal> {
        let client = self.client(Duration::ZERO).await?;
        let verifier = PkceCodeVerifier::new(state.verifier.clone());
        let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier);
        let csrf = CsrfToken::new(state.state.clone());
        let nonce = Nonce::new(state.nonce.clone());
        let request = client.authorize_url(
            AuthenticationFlow::<CoreResponseType>::AuthorizationCode,
            move || csrf,
            move || nonce,
        );
        let scopes = SCOPES.map(|scope| Scope::new(scope.to_owned()));
        let (url, _state, _nonce) = request
            .add_scopes(scopes)
            .set_pkce_challenge(challenge)
            .url();
        Ok(url)
    }

    /// Redeems the code of a sign-in and verifies who signed in.
    pub(super) async fn identify(
        &self,
        code: String,
        state: SignInState,
    ) -> Result<ProviderIdentity, OidcRefusal> {
        let client = self.client(Duration::ZERO).await?;
        let exchange = client
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|error| OidcRefusal::invalid(&error))?
            .set_pkce_verifier(PkceCodeVerifier::new(state.verifier));
        let tokens = exchange.request_async(&self.http).await;
        let tokens = tokens.map_err(|error| OidcRefusal::invalid(&error))?;
        let nonce = Nonce::new(state.nonce);
        let claims = match self.verify(&client, &tokens, &nonce) {
            Err(_) => {
                // The provider may have changed its keys.
                let fresh = self.client(REFETCH_AFTER).await?;
                self.verify(&fresh, &tokens, &nonce)?
            }
            Ok(claims) => claims,
        };
        self.completed(&client, &tokens, claims).await
    }

    /// Who the ID token says signed in, if it verifies.
    fn verify(
        &self,
        client: &OidcClient,
        tokens: &Tokens,
        nonce: &Nonce,
    ) -> Result<ProviderIdentity, OidcRefusal> {
        let clock = self.clock.clone();
        let verifier = client
            .id_token_verifier()
            .set_allowed_algs(algorithms())
            .set_time_fn(move || clock.now());
        let token = tokens.id_token().ok_or(OidcRefusal::Invalid)?;
        let claims = token
            .claims(&verifier, nonce)
            .map_err(|error| OidcRefusal::invalid(&error))?;
        let name = claims.name().and_then(|name| name.get(None));
        Ok(ProviderIdentity {
            issuer: claims.issuer().as_str().to_owned(),
            subject: claims.subject().as_str().to_owned(),
            email: claims.email().map(|email| email.as_str().to_owned()),
            email_verified: claims.email_verified().unwrap_or_default(),
            name: name.map(|name| name.as_str().to_owned()),
            groups: self.groups(&claims.additional_claims().0),
        })
    }

    /// The same identity, with the claims that the provider shows at its user-info endpoint
    /// only.
    async fn completed(
        &self,
        client: &OidcClient,
        tokens: &Tokens,
        mut identity: ProviderIdentity,
    ) -> Result<ProviderIdentity, OidcRefusal> {
        let is_complete = identity.email.is_some() && identity.groups.is_some();
        if is_complete || client.user_info_url().is_none() {
            return Ok(identity);
        }
        let subject = SubjectIdentifier::new(identity.subject.clone());
        let request = client
            .user_info(tokens.access_token().clone(), Some(subject))
            .map_err(|error| OidcRefusal::invalid(&error))?;
        let more: MoreClaims = request
            .request_async(&self.http)
            .await
            .map_err(|error| OidcRefusal::invalid(&error))?;
        if identity.email.is_none() {
            identity.email = more.email().map(|email| email.as_str().to_owned());
            identity.email_verified = more.email_verified().unwrap_or_default();
        }
        if identity.name.is_none() {
            let name = more.name().and_then(|name| name.get(None));
            identity.name = name.map(|name| name.as_str().to_owned());
        }
        if identity.groups.is_none() {
            identity.groups = self.groups(&more.additional_claims().0);
        }
        Ok(identity)
    }

    /// The groups of a user; `None` if the claim is missing.
    fn groups(&self, claims: &HashMap<String, Value>) -> Option<Vec<String>> {
        match claims.get(&self.settings.groups_claim)? {
            Value::String(group) => Some(vec![group.clone()]),
            Value::Array(groups) => {
                let groups = groups.iter().filter_map(Value::as_str);
                Some(groups.map(str::to_owned).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        }
    }

    /// The client with the provider's metadata. Those older than `age_max` are fetched again,
    /// unless it is zero: then the usual age counts.
    async fn client(&self, age_max: Duration) -> Result<OidcClient, OidcRefusal> {
        let metadata = self.metadata(age_max).await?;
        let secret = self.settings.client_secret.as_ref();
        let secret = secret.map(|secret| ClientSecret::new(secret.expose_secret().to_owned()));
        let id = ClientId::new(self.settings.client_id.clone());
        let client =
            OidcClient::from_provider_metadata(CoreProviderMetadata::clone(&metadata), id, secret);
        Ok(client.set_redirect_uri(self.redirect_url.clone()))
    }

    async fn metadata(&self, age_max: Duration) -> Result<Arc<CoreProviderMetadata>, OidcRefusal> {
        let age_max = if age_max.is_zero() {
            METADATA_TTL
        } else {
            age_max
        };
        // Held while it is fetched: others wait for the result.
        let mut fetched = self.fetched.lock().await;
        if let Some((at, metadata)) = &*fetched
            && at.elapsed() < age_max
        {
            return Ok(Arc::clone(metadata));
        }
        let issuer = IssuerUrl::new(self.settings.issuer.clone());
        let issuer = issuer.map_err(|error| OidcRefusal::invalid(&error))?;
        let found = CoreProviderMetadata::discover_async(issuer, &self.http).await;
        let found = Arc::new(found.map_err(|error| OidcRefusal::unreachable(&error))?);
        *fetched = Some((Instant::now(), Arc::clone(&found)));
        Ok(found)
    }
}

/// Our HTTP client, as the crate wants it.
struct ProviderHttp {
    client: HttpClient,
    settings: OidcSettings,
}

impl<'c> AsyncHttpClient<'c> for ProviderHttp {
    type Error = HttpError;
    type Future = BoxFuture<'c, Result<HttpResponse, HttpError>>;

    fn call(&'c self, request: openidconnect::HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}

impl ProviderHttp {
    async fn send(&self, request: openidconnect::HttpRequest) -> Result<HttpResponse, HttpError> {
        let not_sent = |reason: String| HttpError::NotSent { reason };
        let (parts, body) = request.into_parts();
        let url = parts.uri.to_string();
        let url = Url::parse(&url).map_err(|error| not_sent(error.to_string()))?;
        // The provider's document names its endpoints. They must be as safe as the issuer.
        if !self.settings.allows(&url) {
            return Err(not_sent("the endpoint is not https".to_owned()));
        }
        let reply = self.client.call(HttpRequest {
            method: parts.method,
            url,
            headers: parts.headers,
            body: if body.is_empty() {
                HttpBody::Empty
            } else {
                HttpBody::Bytes(body.into())
            },
        });
        let reply = reply.await?;
        let mut response = HttpResponse::new(reply.body.to_vec());
        *response.status_mut() = http::StatusCode::from_u16(reply.status).unwrap_or_default();
        *response.headers_mut() = reply.headers;
        Ok(response)
    }
}
