package waypost

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Option says how to call Waypost. An option of [New] holds for all calls, an option of a call for that one.
type Option func(*caller)

// WithAPIKey says which API key to use. The default is the environment variable WAYPOST_API_KEY.
func WithAPIKey(key string) Option { return func(c *caller) { c.apiKey = key } }

// WithBaseURL says where Waypost is, such as https://mail.example.com. The default is the environment variable WAYPOST_URL.
func WithBaseURL(address string) Option { return func(c *caller) { c.baseURL = address } }

// WithTransport says what makes the requests. The default is [http.DefaultTransport]. Redirects are never followed.
func WithTransport(t http.RoundTripper) Option { return func(c *caller) { c.http.Transport = t } }

// WithLogger says where to report each attempt, with the level Debug. Keys, addresses and bodies are never reported.
func WithLogger(logger *slog.Logger) Option { return func(c *caller) { c.logger = logger } }

// WithTimeout says how long to wait for the answer to each attempt. The default is 30 seconds; 0 is without end.
func WithTimeout(timeout time.Duration) Option { return func(c *caller) { c.http.Timeout = timeout } }

// WithMaxRetries says how often to repeat a call that failed and is safe to repeat. The default is 2.
func WithMaxRetries(retries int) Option { return func(c *caller) { c.retries = retries } }

// WithIdempotencyKey makes a call that creates something safe to repeat, even by another process: what has the same key is
// done once. Without it each call has a key of its own, which its attempts share. It is an option of a call only.
func WithIdempotencyKey(key string) Option { return func(c *caller) { c.idempotencyKey = key } }

// WithHeader adds a header to the requests.
func WithHeader(name, value string) Option {
	return func(c *caller) {
		c.header = c.header.Clone()
		c.header.Set(name, value)
	}
}

// caller does calls: with retries, timeouts and errors.
type caller struct {
	apiKey, baseURL, idempotencyKey string
	http                            http.Client
	logger                          *slog.Logger
	retries                         int
	header                          http.Header
}

func newCaller(options []Option) (*caller, error) {
	defaults := caller{
		apiKey: os.Getenv("WAYPOST_API_KEY"), baseURL: os.Getenv("WAYPOST_URL"), logger: slog.New(slog.DiscardHandler),
		http: http.Client{Timeout: timeoutDefault}, retries: retriesDefault, header: http.Header{"User-Agent": {"waypost-go/" + Version}},
	}
	c, err := defaults.with(options)
	if err == nil && c.idempotencyKey != "" {
		err = errors.New("waypost: WithIdempotencyKey is an option of a call: all calls of a client would have the same key")
	}
	return &c, err
}

func (c caller) with(options []Option) (caller, error) {
	for _, option := range options {
		option(&c)
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.baseURL = strings.TrimRight(c.baseURL, "/")
	base, err := url.Parse(c.baseURL)
	switch {
	case c.apiKey == "" || strings.ContainsFunc(c.apiKey, func(r rune) bool { return r < '!' || r > '~' }):
		return c, errors.New("waypost: an API key without blanks and line breaks is needed: use WithAPIKey, or set WAYPOST_API_KEY")
	case err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || strings.ContainsAny(c.baseURL, "?#@"):
		return c, errors.New("waypost: the address of the service, such as https://mail.example.com, is needed: use WithBaseURL, or set WAYPOST_URL")
	}
	return c, nil
}
