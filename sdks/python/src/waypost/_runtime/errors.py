"""The errors of calls. Each code of the service has a class of its own beside these, such as `NotFoundError`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..types import ErrorCode, ErrorDetails, ErrorIssue, ErrorReason


class RateLimit(NamedTuple):
    """The service's limit for requests: how many it allows in a second, how many are left, and when all are again."""

    limit: int
    remaining: int
    reset: int
    """In seconds."""


class WaypostError(Exception):
    """An error of a call."""

    message: str
    """The message alone. `str(error)` also has the issues and the request id."""
    code: ErrorCode = ""
    """The kind of the error, for programs."""
    status: int | None = None
    """The HTTP status; None if there was no answer."""
    details: ErrorDetails | None = None
    """All details of the answer."""
    request_id: str | None = None
    """The id of the request, by which the operator of Waypost finds it in the log."""
    rate_limit: RateLimit | None = None
    retry_after: float | None = None
    """How many seconds to wait before another try, if the answer told it."""

    def __init__(self, message: str, **attributes: Any) -> None:
        super().__init__(message)
        vars(self).update(attributes, message=message)

    @property
    def reason(self) -> ErrorReason | None:
        """Why a valid request was not done."""
        return self.details.reason if self.details else None

    @property
    def issues(self) -> list[ErrorIssue]:
        """Every mistake of the request, with its path."""
        return (self.details.issues if self.details else None) or []

    def __str__(self) -> str:
        # The message of the service says it all if there is one mistake.
        issues = "; ".join(f"{issue.path} {issue.message}" for issue in self.issues) if len(self.issues) > 1 else ""
        return self.message + (f": {issues}" if issues else "") + (f" ({self.request_id})" if self.request_id else "")


class APIConnectionError(WaypostError):
    """No whole answer came. Nobody knows whether the service did what was asked."""

    code = "CONNECTION_ERROR"


class APITimeoutError(APIConnectionError):
    """No answer came in time."""

    code = "TIMEOUT"


class WebhookVerificationError(WaypostError):
    """A request to your webhook endpoint is not proved to come from Waypost. Answer it with 400."""

    code = "WEBHOOK_NOT_VERIFIED"
