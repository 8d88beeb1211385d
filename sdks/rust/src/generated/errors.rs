// Written by sdks/generator from openapi/waypost.v1.json. Do not edit: `make generate` replaces this file.

use std::fmt;

use crate::runtime::errors::ApiError;

/// Why a call failed. Each error code of the service has a variant of its own.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// The service answered with the code `VALIDATION_ERROR`.
    Validation(Box<ApiError>),
    /// The service answered with the code `AUTHENTICATION_ERROR`.
    Authentication(Box<ApiError>),
    /// The service answered with the code `FORBIDDEN`.
    Forbidden(Box<ApiError>),
    /// The service answered with the code `NOT_FOUND`.
    NotFound(Box<ApiError>),
    /// The service answered with the code `METHOD_NOT_ALLOWED`.
    MethodNotAllowed(Box<ApiError>),
    /// The service answered with the code `CONFLICT`.
    Conflict(Box<ApiError>),
    /// The service answered with the code `PAYLOAD_TOO_LARGE`.
    PayloadTooLarge(Box<ApiError>),
    /// The service answered with the code `UNSUPPORTED_MEDIA_TYPE`.
    UnsupportedMediaType(Box<ApiError>),
    /// The service answered with the code `PROVIDER_INVALID_CREDENTIALS`.
    ProviderInvalidCredentials(Box<ApiError>),
    /// The service answered with the code `RATE_LIMIT_EXCEEDED`.
    RateLimitExceeded(Box<ApiError>),
    /// The service answered with the code `SERVICE_UNAVAILABLE`.
    ServiceUnavailable(Box<ApiError>),
    /// The service answered with the code `INTERNAL_ERROR`.
    Internal(Box<ApiError>),
    /// The service answered with a code that this version does not know, or the answer is not one of Waypost's.
    Other(Box<ApiError>),
    /// No whole answer came. Nobody knows whether the service did what was asked.
    Connection(String),
    /// No answer came in time. This is an error of the connection, too.
    Timeout(String),
    /// A request to your webhook endpoint is not proved to come from Waypost. Answer it with 400.
    Webhook(String),
    /// The client or the call is not set up right. The text says what to change.
    Usage(String),
}

impl Error {
    /// What the service answered; `None` if there was no answer.
    #[must_use]
    pub fn answer(&self) -> Option<&ApiError> {
        match self {
            Self::Validation(answer) => Some(answer),
            Self::Authentication(answer) => Some(answer),
            Self::Forbidden(answer) => Some(answer),
            Self::NotFound(answer) => Some(answer),
            Self::MethodNotAllowed(answer) => Some(answer),
            Self::Conflict(answer) => Some(answer),
            Self::PayloadTooLarge(answer) => Some(answer),
            Self::UnsupportedMediaType(answer) => Some(answer),
            Self::ProviderInvalidCredentials(answer) => Some(answer),
            Self::RateLimitExceeded(answer) => Some(answer),
            Self::ServiceUnavailable(answer) => Some(answer),
            Self::Internal(answer) => Some(answer),
            Self::Other(answer) => Some(answer),
            Self::Connection(_) | Self::Timeout(_) | Self::Webhook(_) | Self::Usage(_) => None,
        }
    }

    /// Whether no whole answer came, or none in time.
    #[must_use]
    pub fn is_connection(&self) -> bool {
        matches!(self, Self::Connection(_) | Self::Timeout(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, answer) = match self {
            Self::Validation(answer) => (&answer.message, Some(answer)),
            Self::Authentication(answer) => (&answer.message, Some(answer)),
            Self::Forbidden(answer) => (&answer.message, Some(answer)),
            Self::NotFound(answer) => (&answer.message, Some(answer)),
            Self::MethodNotAllowed(answer) => (&answer.message, Some(answer)),
            Self::Conflict(answer) => (&answer.message, Some(answer)),
            Self::PayloadTooLarge(answer) => (&answer.message, Some(answer)),
            Self::UnsupportedMediaType(answer) => (&answer.message, Some(answer)),
            Self::ProviderInvalidCredentials(answer) => (&answer.message, Some(answer)),
            Self::RateLimitExceeded(answer) => (&answer.message, Some(answer)),
            Self::ServiceUnavailable(answer) => (&answer.message, Some(answer)),
            Self::Internal(answer) => (&answer.message, Some(answer)),
            Self::Other(answer) => (&answer.message, Some(answer)),
            Self::Connection(text) | Self::Timeout(text) | Self::Webhook(text) | Self::Usage(text) => (text, None),
        };
        formatter.write_str(text)?;
        if let Some(answer) = answer {
            write!(formatter, " ({} {}", answer.status, answer.code)?;
            if let Some(id) = &answer.request_id {
                write!(formatter, ", request {id}")?;
            }
            formatter.write_str(")")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<ApiError> for Error {
    fn from(answer: ApiError) -> Self {
        let variant = match answer.code.as_str() {
            "VALIDATION_ERROR" => Self::Validation,
            "AUTHENTICATION_ERROR" => Self::Authentication,
            "FORBIDDEN" => Self::Forbidden,
            "NOT_FOUND" => Self::NotFound,
            "METHOD_NOT_ALLOWED" => Self::MethodNotAllowed,
            "CONFLICT" => Self::Conflict,
            "PAYLOAD_TOO_LARGE" => Self::PayloadTooLarge,
            "UNSUPPORTED_MEDIA_TYPE" => Self::UnsupportedMediaType,
            "PROVIDER_INVALID_CREDENTIALS" => Self::ProviderInvalidCredentials,
            "RATE_LIMIT_EXCEEDED" => Self::RateLimitExceeded,
            "SERVICE_UNAVAILABLE" => Self::ServiceUnavailable,
            "INTERNAL_ERROR" => Self::Internal,
            _ => Self::Other,
        };
        variant(Box::new(answer))
    }
}
