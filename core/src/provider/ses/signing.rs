//! AWS Signature Version 4, by the `aws-sigv4` crate. A call is signed as it will be sent:
//! method, URL with the actual host, headers, body.

use std::time::SystemTime;

use aws_credential_types::Credentials as AwsCredentials;
use aws_sigv4::http_request::{
    SignableBody, SignableRequest, SigningSettings, sign as sign_request,
};
use aws_sigv4::sign::v4::SigningParams;
use http::{HeaderName, HeaderValue};
use sha2::{Digest as _, Sha256};

use crate::clock::Timestamp;
use crate::http::encoded;
use crate::provider::call::{CallBody, ProviderCall};
use crate::provider::credentials::UnusableCredentials;
use crate::secret::{ExposeSecret, Secret};

/// The key and scope of a signature.
#[derive(Debug)]
pub struct SigningKey<'a> {
    pub access_key_id: &'a Secret,
    pub secret_access_key: &'a Secret,
    /// The token of temporary credentials: it is sent and signed too.
    pub session_token: Option<&'a Secret>,
    /// The region of the endpoint.
    pub region: &'a str,
    pub service: &'a str,
}

/// Adds the headers that sign a call: `x-amz-date`, `authorization` and, for temporary
/// credentials, `x-amz-security-token`.
///
/// # Errors
/// If the call cannot be signed: its body is a form, or a header is not text.
pub fn sign(
    call: &mut ProviderCall,
    key: &SigningKey<'_>,
    now: Timestamp,
) -> Result<(), UnusableCredentials> {
    let token = key
        .session_token
        .map(|token| token.expose_secret().to_owned());
    let identity = AwsCredentials::new(
        key.access_key_id.expose_secret(),
        key.secret_access_key.expose_secret(),
        token,
        None,
        "waypost",
    )
    .into();
    let params = SigningParams::builder()
        .identity(&identity)
        .region(key.region)
        .name(key.service)
        .time(SystemTime::from(now))
        .settings(SigningSettings::default())
        .build()
        .map_err(|_| UNSIGNABLE)?
        .into();
    let signed = sign_request(signable(call)?, &params).map_err(|_| UNSIGNABLE)?;
    let (instructions, _signature) = signed.into_parts();
    let (headers, _query) = instructions.into_parts();
    for header in headers {
        let name = HeaderName::from_static(header.name());
        let mut value = HeaderValue::from_str(header.value()).map_err(|_| UNSIGNABLE)?;
        value.set_sensitive(header.sensitive() || name == http::header::AUTHORIZATION);
        call.headers.insert(name, value);
    }
    Ok(())
}

const UNSIGNABLE: UnusableCredentials =
    UnusableCredentials("the request cannot be signed with these credentials");

/// The call in the form of the signing crate, which takes the host from the URL, with a
/// port that is not the scheme's default: exactly as it will be sent.
fn signable(call: &ProviderCall) -> Result<SignableRequest<'_>, UnusableCredentials> {
    let body = match &call.body {
        CallBody::Empty => SignableBody::Bytes(&[]),
        CallBody::Json(bytes) => SignableBody::Bytes(bytes),
        CallBody::Pieces(pieces) => {
            let mut digest = Sha256::new();
            encoded(pieces.iter().cloned()).for_each(|bytes| digest.update(bytes));
            SignableBody::Precomputed(hex::encode(digest.finalize()))
        }
        CallBody::Form(_) => return Err(UNSIGNABLE),
    };
    let headers: Vec<(&str, &str)> = call
        .headers
        .iter()
        .map(|(name, value)| Ok((name.as_str(), value.to_str().map_err(|_| UNSIGNABLE)?)))
        .collect::<Result<_, UnusableCredentials>>()?;
    SignableRequest::new(
        call.method.as_str(),
        call.url.as_str(),
        headers.into_iter(),
        body,
    )
    .map_err(|_| UNSIGNABLE)
}
