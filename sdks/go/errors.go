package waypost

import (
	"cmp"
	"strings"
	"time"
)

// Error is an error of a call: [errors.As] finds it. [errors.Is] tells what kind it is: each code of the service has an
// error of its own, such as [ErrNotFound].
type Error struct {
	// Status is the HTTP status; 0 if there was no answer.
	Status int
	// Code is the kind of the error, for programs.
	Code ErrorCode
	// Reason says why a valid request was not done.
	Reason ErrorReason
	// Message says what is wrong.
	Message string
	// Issues are the mistakes of the request, each with its path.
	Issues []ErrorIssue
	// Details are all details of the answer.
	Details ErrorDetails
	// RequestID is the id by which the operator of Waypost finds the request in the log.
	RequestID string
	// RateLimit is the service's limit for requests; nil if the answer does not tell it.
	RateLimit *RateLimit
	// RetryAfter is how long to wait before another try; 0 if the answer does not tell it.
	RetryAfter time.Duration
	// Err is the cause, if there is one.
	Err error
}

// RateLimit is the service's limit for requests.
type RateLimit struct {
	// Limit is how many requests it allows in a second, Remaining how many are left.
	Limit, Remaining int
	// Reset is when all are left again, from now.
	Reset time.Duration
}

var (
	// ErrConnection says that no whole answer came. Nobody knows whether the service did what was asked.
	ErrConnection error = ErrorCode("CONNECTION_ERROR")
	// ErrTimeout says that no answer came in time. It is also an [ErrConnection].
	ErrTimeout error = ErrorCode("TIMEOUT")
	// ErrWebhookNotVerified says that a request is not proved to come from Waypost. Answer it with 400.
	ErrWebhookNotVerified error = ErrorCode("WEBHOOK_NOT_VERIFIED")
)

// Error makes an [ErrorCode] what [errors.Is] finds, even if this package does not know the code.
func (c ErrorCode) Error() string { return "waypost: " + string(c) }

// Error says what is wrong, with the id by which the operator of Waypost finds the request.
func (e *Error) Error() string {
	text := "waypost: " + e.Message
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return strings.TrimSuffix(text+" ("+cmp.Or(string(e.Reason), string(e.Code))+", request "+e.RequestID, ", request ") + ")"
}

// Is says whether the error is of the code of target, such as [ErrNotFound].
func (e *Error) Is(target error) bool {
	return target == e.Code || target == ErrConnection && e.Code == "TIMEOUT"
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
