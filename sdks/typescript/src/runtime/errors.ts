import type { ErrorCode, ErrorDetails, ErrorIssue, ErrorReason } from "../generated/types.js";

/** The service's limit for requests: how many it allows in a second, how many are left, and when all are again. */
export interface RateLimit {
  limit: number;
  remaining: number;
  /** In seconds. */
  reset: number;
}

/** What an error knows besides its message. */
export type ErrorFields = Pick<WaypostError, "code"> &
  Partial<Pick<WaypostError, "status" | "details" | "requestId" | "rateLimit" | "retryAfter" | "cause">>;

/** An error of a call. Each code of the service has a class of its own, such as `NotFoundError`. */
export class WaypostError extends Error {
  override readonly name: string = "WaypostError";
  /** The HTTP status; undefined if there was no answer. */
  readonly status: number | undefined;
  /** The kind of the error, for programs. */
  readonly code!: ErrorCode;
  /** Why a valid request was not done. */
  readonly reason: ErrorReason | undefined;
  /** Every mistake of the request, with its path. */
  readonly issues: readonly ErrorIssue[];
  /** All details of the answer. */
  readonly details: ErrorDetails | undefined;
  /** The id of the request, by which the operator of Waypost finds it in the log. */
  readonly requestId: string | undefined;
  readonly rateLimit: RateLimit | undefined;
  /** How many seconds to wait before another try, if the answer told it. */
  readonly retryAfter: number | undefined;

  constructor(message: string, fields: ErrorFields) {
    super(message);
    Object.assign(this, fields);
    this.reason = fields.details?.reason;
    this.issues = fields.details?.issues ?? [];
  }
}

/** No whole answer came. Nobody knows whether the service did what was asked. */
export class ConnectionError extends WaypostError {
  override readonly name: string = "ConnectionError";
}

/** No answer came in time. */
export class TimeoutError extends ConnectionError {
  override readonly name: string = "TimeoutError";
}

/** A request to your webhook endpoint is not proved to come from Waypost. Answer it with 400. */
export class WebhookVerificationError extends WaypostError {
  override readonly name: string = "WebhookVerificationError";
}
