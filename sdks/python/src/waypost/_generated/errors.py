# Written by sdks/generator from openapi/waypost.v1.json. Do not edit: `make generate` replaces this file.

from typing import Dict, Type

from .._runtime.errors import WaypostError

__all__ = [
    "ValidationError",
    "AuthenticationError",
    "ForbiddenError",
    "NotFoundError",
    "MethodNotAllowedError",
    "ConflictError",
    "PayloadTooLargeError",
    "UnsupportedMediaTypeError",
    "ProviderInvalidCredentialsError",
    "RateLimitExceededError",
    "ServiceUnavailableError",
    "InternalError",
]


class ValidationError(WaypostError):
    """The service answered with the code `VALIDATION_ERROR`."""


class AuthenticationError(WaypostError):
    """The service answered with the code `AUTHENTICATION_ERROR`."""


class ForbiddenError(WaypostError):
    """The service answered with the code `FORBIDDEN`."""


class NotFoundError(WaypostError):
    """The service answered with the code `NOT_FOUND`."""


class MethodNotAllowedError(WaypostError):
    """The service answered with the code `METHOD_NOT_ALLOWED`."""


class ConflictError(WaypostError):
    """The service answered with the code `CONFLICT`."""


class PayloadTooLargeError(WaypostError):
    """The service answered with the code `PAYLOAD_TOO_LARGE`."""


class UnsupportedMediaTypeError(WaypostError):
    """The service answered with the code `UNSUPPORTED_MEDIA_TYPE`."""


class ProviderInvalidCredentialsError(WaypostError):
    """The service answered with the code `PROVIDER_INVALID_CREDENTIALS`."""


class RateLimitExceededError(WaypostError):
    """The service answered with the code `RATE_LIMIT_EXCEEDED`."""


class ServiceUnavailableError(WaypostError):
    """The service answered with the code `SERVICE_UNAVAILABLE`."""


class InternalError(WaypostError):
    """The service answered with the code `INTERNAL_ERROR`."""


ERROR_CLASSES: Dict[str, Type[WaypostError]] = {
    "VALIDATION_ERROR": ValidationError,
    "AUTHENTICATION_ERROR": AuthenticationError,
    "FORBIDDEN": ForbiddenError,
    "NOT_FOUND": NotFoundError,
    "METHOD_NOT_ALLOWED": MethodNotAllowedError,
    "CONFLICT": ConflictError,
    "PAYLOAD_TOO_LARGE": PayloadTooLargeError,
    "UNSUPPORTED_MEDIA_TYPE": UnsupportedMediaTypeError,
    "PROVIDER_INVALID_CREDENTIALS": ProviderInvalidCredentialsError,
    "RATE_LIMIT_EXCEEDED": RateLimitExceededError,
    "SERVICE_UNAVAILABLE": ServiceUnavailableError,
    "INTERNAL_ERROR": InternalError,
}
"""The class of each code. A code that is not here is a plain `WaypostError`."""
