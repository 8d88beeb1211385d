// Written by sdks/generator from openapi/waypost.v1.json. Do not edit: `make generate` replaces this file.

import { WaypostError } from "../runtime/errors.js";

/** The service answered with the code `VALIDATION_ERROR`. */
export class ValidationError extends WaypostError {
  override readonly name: string = "ValidationError";
}

/** The service answered with the code `AUTHENTICATION_ERROR`. */
export class AuthenticationError extends WaypostError {
  override readonly name: string = "AuthenticationError";
}

/** The service answered with the code `FORBIDDEN`. */
export class ForbiddenError extends WaypostError {
  override readonly name: string = "ForbiddenError";
}

/** The service answered with the code `NOT_FOUND`. */
export class NotFoundError extends WaypostError {
  override readonly name: string = "NotFoundError";
}

/** The service answered with the code `METHOD_NOT_ALLOWED`. */
export class MethodNotAllowedError extends WaypostError {
  override readonly name: string = "MethodNotAllowedError";
}

/** The service answered with the code `CONFLICT`. */
export class ConflictError extends WaypostError {
  override readonly name: string = "ConflictError";
}

/** The service answered with the code `PAYLOAD_TOO_LARGE`. */
export class PayloadTooLargeError extends WaypostError {
  override readonly name: string = "PayloadTooLargeError";
}

/** The service answered with the code `UNSUPPORTED_MEDIA_TYPE`. */
export class UnsupportedMediaTypeError extends WaypostError {
  override readonly name: string = "UnsupportedMediaTypeError";
}

/** The service answered with the code `PROVIDER_INVALID_CREDENTIALS`. */
export class ProviderInvalidCredentialsError extends WaypostError {
  override readonly name: string = "ProviderInvalidCredentialsError";
}

/** The service answered with the code `RATE_LIMIT_EXCEEDED`. */
export class RateLimitExceededError extends WaypostError {
  override readonly name: string = "RateLimitExceededError";
}

/** The service answered with the code `SERVICE_UNAVAILABLE`. */
export class ServiceUnavailableError extends WaypostError {
  override readonly name: string = "ServiceUnavailableError";
}

/** The service answered with the code `INTERNAL_ERROR`. */
export class InternalError extends WaypostError {
  override readonly name: string = "InternalError";
}

/** The class of each code. A code that is not here is a plain {@link WaypostError}. */
export const errorClasses: Readonly<Record<string, typeof WaypostError>> = {
  VALIDATION_ERROR: ValidationError,
  AUTHENTICATION_ERROR: AuthenticationError,
  FORBIDDEN: ForbiddenError,
  NOT_FOUND: NotFoundError,
  METHOD_NOT_ALLOWED: MethodNotAllowedError,
  CONFLICT: ConflictError,
  PAYLOAD_TOO_LARGE: PayloadTooLargeError,
  UNSUPPORTED_MEDIA_TYPE: UnsupportedMediaTypeError,
  PROVIDER_INVALID_CREDENTIALS: ProviderInvalidCredentialsError,
  RATE_LIMIT_EXCEEDED: RateLimitExceededError,
  SERVICE_UNAVAILABLE: ServiceUnavailableError,
  INTERNAL_ERROR: InternalError,
};
