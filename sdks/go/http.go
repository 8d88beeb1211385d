package waypost

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	timeoutDefault = 30 * time.Second
	retriesDefault = 2
	backoff        = 500 * time.Millisecond
	backoffMax     = 8 * time.Second
	retryAfterMax  = time.Minute // a longer Retry-After is left to the program
)

// call is an operation, and what to send. The path has the names and values of the parameters of the route.
type call struct {
	method, route string
	path          []string
	query, body   any
	// In place of a body: a text of the type mediaType.
	text              []byte
	mediaType, cursor string
	// Whether the service takes an idempotency key; whether a second POST changes nothing more; whether the answer is in the
	// field data; whether to give it as it comes.
	idempotent, repeatable, data, raw bool
}

// read does a call, and reads the JSON of its answer.
func read[T any](ctx context.Context, c *caller, call call, options []Option) (*T, error) {
	response, err := c.do(ctx, call, options)
	if err != nil {
		return nil, err
	}
	answer := new(T)
	target := any(answer)
	if call.data {
		target = &struct{ Data *T }{answer}
	}
	if err := json.NewDecoder(response.Body).Decode(target); err != nil {
		return nil, errorOf(response, nil, err)
	}
	return answer, nil
}

func (c *caller) do(ctx context.Context, call call, options []Option) (*http.Response, error) {
	with, err := c.with(options)
	if err != nil {
		return nil, err
	}
	request, err := with.request(ctx, call)
	if err != nil {
		return nil, fmt.Errorf("waypost: %s %s: %w", call.method, call.route, err)
	}
	for attempt := 0; ; attempt++ {
		begun, wait := time.Now(), time.Duration(0)
		response, failed := with.attempt(request, call.raw)
		if failed != nil && attempt < with.retries {
			wait = retryIn(failed, call, attempt)
		}
		with.logger.DebugContext(ctx, "waypost: "+call.method+" "+call.route, "attempt", attempt+1, "duration", time.Since(begun),
			"status", response.StatusCode, "request_id", response.Header.Get("X-Request-Id"), "failed", failed != nil, "retry_in", wait)
		if failed == nil {
			return response, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("waypost: %s %s: %w", call.method, call.route, ctx.Err())
		} else if wait == 0 {
			return nil, failed
		}
	}
}

// request makes what all attempts have in common: so they have the same idempotency key.
func (c *caller) request(ctx context.Context, call call) (*http.Request, error) {
	path := call.route
	for pair := range slices.Chunk(call.path, 2) {
		if strings.Trim(pair[1], ".") == "" {
			return nil, fmt.Errorf("an id is needed, not %q", pair[1]) // else it would be the path of another operation
		}
		path = strings.Replace(path, pair[0], url.PathEscape(pair[1]), 1)
	}
	params, err := json.Marshal(call.query)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // escaped, an HTML body would be much longer
	if err := encoder.Encode(call.body); err != nil {
		return nil, err
	}
	content := body.Bytes()
	if string(content) == "null\n" {
		content = call.text
	}
	request, err := http.NewRequestWithContext(ctx, call.method, c.baseURL+path+search(params, call.cursor), bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header = c.header.Clone()
	request.Header.Set("Authorization", "Bearer "+c.apiKey)
	if len(content) > 0 {
		request.Header.Set("Content-Type", cmp.Or(call.mediaType, "application/json"))
	}
	if call.idempotent || c.idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", cmp.Or(c.idempotencyKey, rand.Text()))
	}
	return request, nil
}

// attempt gives an answer of status 2xx, or an error. The response is never nil; unless it is raw its body is in memory.
func (c *caller) attempt(request *http.Request, raw bool) (*http.Response, *Error) {
	request = request.Clone(request.Context())
	request.Body, _ = request.GetBody() // that of a bytes.Reader cannot fail
	response, err := c.http.Do(request)
	if err == nil {
		good := response.StatusCode/100 == 2
		if good && raw {
			return response, nil
		}
		defer response.Body.Close()
		body, broken := io.ReadAll(response.Body)
		response.Body = io.NopCloser(bytes.NewReader(body))
		if broken == nil && good {
			return response, nil
		} else if broken == nil {
			return response, errorOf(response, body, nil)
		}
		err = broken
	}
	failed := &Error{Code: "CONNECTION_ERROR", Message: "Waypost at " + c.baseURL + " cannot be reached, or broke off", Err: err}
	if os.IsTimeout(err) {
		failed.Code, failed.Message = "TIMEOUT", fmt.Sprintf("Waypost did not answer within %v: see WithTimeout", c.http.Timeout)
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		failed.Err = outer.Err // without the URL, which may have addresses
	}
	return &http.Response{}, failed
}

func errorOf(response *http.Response, body []byte, cause error) *Error {
	header := response.Header
	number := func(name string) time.Duration {
		value, _ := strconv.ParseUint(header.Get(name), 10, 31)
		return time.Duration(value)
	}
	e := new(Error)
	_ = json.Unmarshal(body, &struct{ Error *Error }{e}) // what cannot be read of the details must not hide the error
	e.Status, e.RequestID, e.Err = response.StatusCode, header.Get("X-Request-Id"), cause
	if header.Get("X-RateLimit-Limit") != "" {
		e.RateLimit = &RateLimit{int(number("X-RateLimit-Limit")), int(number("X-RateLimit-Remaining")), number("X-RateLimit-Reset") * time.Second}
	}
	e.RetryAfter = number("Retry-After") * time.Second
	if at, err := http.ParseTime(header.Get("Retry-After")); err == nil {
		e.RetryAfter = max(0, time.Until(at))
	}
	if e.Code != "" {
		e.Reason, e.Issues = e.Details.Reason, e.Details.Issues
		return e
	}
	hint := "is the base URL right? Is a proxy in between?"
	if location := header.Get("Location"); location != "" {
		hint = "it leads to " + location + ": use WithBaseURL with that, or set WAYPOST_URL"
	}
	e.Code, e.Message = "UNEXPECTED_ANSWER", fmt.Sprintf("the answer (status %d) is not one of Waypost's: %s", e.Status, hint)
	return e
}

// retryIn says when to repeat a call; 0 is never. What was surely not done is repeated always. After a lost answer, or a
// fault of the service, nobody knows whether it was done: then only what may be done twice is repeated. These are GET,
// PUT, DELETE and PATCH, which here lead to the same state however often they are done (a repeated DELETE may answer 404),
// and a POST with an idempotency key that the service knows.
func retryIn(e *Error, call call, attempt int) time.Duration {
	notDone := e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooManyRequests ||
		e.Status == http.StatusConflict && e.Reason == ErrorReasonIdempotencyInProgress
	safe := call.method != http.MethodPost || call.idempotent || call.repeatable
	if !notDone && !(safe && (e.Status == 0 || e.Status >= 500)) || e.RetryAfter > retryAfterMax {
		return 0
	}
	return 1 + e.RetryAfter + mathrand.N(min(backoffMax, backoff<<min(attempt, 8)))
}

// search makes the query from the JSON of the parameters.
func search(params []byte, cursor string) string {
	fields, decoder := map[string]any{}, json.NewDecoder(bytes.NewReader(params))
	decoder.UseNumber()
	_ = decoder.Decode(&fields) // it was just written
	query := url.Values{}
	for name, value := range fields {
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, item := range list {
			query.Add(name, fmt.Sprint(item))
		}
		query.Set(name, strings.Join(query[name], ","))
	}
	if cursor != "" {
		query.Del("page")
		query.Set("cursor", cursor)
	}
	return strings.TrimSuffix("?"+query.Encode(), "?")
}
