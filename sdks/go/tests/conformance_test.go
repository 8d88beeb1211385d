// The cases of sdks/conformance/cases.md, live. Needs WAYPOST_URL, WAYPOST_API_KEY, SIMULATOR_URL and
// CONFORMANCE_PROXY_URL; scripts/test-sdks.sh starts the proxy.
package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"waypost"
)

var (
	run      = strconv.FormatInt(time.Now().UnixMilli(), 36)
	client   *waypost.Client
	sessions atomic.Int64
)

func TestMain(m *testing.M) {
	for _, name := range []string{"WAYPOST_URL", "WAYPOST_API_KEY", "SIMULATOR_URL", "CONFORMANCE_PROXY_URL"} {
		if os.Getenv(name) == "" {
			fmt.Println(name, "is not set: run scripts/test-sdks.sh")
			os.Exit(1)
		}
	}
	if err := prepare(context.Background()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// prepare lets messages be sent: from any domain, by the simulator.
func prepare(ctx context.Context) (err error) {
	if client, err = waypost.New(); err != nil {
		return err
	}
	settings := &waypost.UpdateSettingsRequest{UnverifiedDomains: waypost.UnverifiedDomainsAccept}
	if _, err := client.Settings.Update(ctx, settings); err != nil {
		return err
	}
	accounts, err := client.Providers.List().Page(ctx)
	if err != nil || len(accounts.Data) > 0 {
		return err
	}
	_, err = client.Providers.Create(ctx, &waypost.ConnectProviderRequest{
		ProviderType: waypost.ProviderTypeSendgrid,
		DisplayName:  "Simulated",
		Credentials:  waypost.SendgridCredentials{APIKey: "SG.simulator"},
	})
	return err
}

// tests runs a case, beside the others.
func tests(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		test(t)
	})
}

func TestConformance(t *testing.T) {
	t.Run("C01 a missing key or address fails at construction", missingSettings)
	tests(t, "C02 the environment is enough", theEnvironmentIsEnough)
	tests(t, "C03 a key with a line break is refused and not shown", keyWithLineBreak)
	tests(t, "C04 a message is sent and delivered", sendAndDeliver)
	tests(t, "C05 a batch has a result for each message", batch)
	tests(t, "C06 a scheduled message is read, moved and cancelled", scheduled)
	tests(t, "C07 sub-resources", subResources)
	tests(t, "C08 a file comes as it was sent", file)
	tests(t, "C09 an id that is none is refused before anything is sent", wrongID)
	tests(t, "C10 a send whose answer is lost is done once", func(t *testing.T) { lostAnswer(t, "lose") })
	tests(t, "C11 a send whose answer breaks off is done once", func(t *testing.T) { lostAnswer(t, "cut") })
	tests(t, "C12 two sends have two keys", twoKeys)
	tests(t, "C13 one key of the caller's is one message", oneKey)
	tests(t, "C20 a wrong request names its mistakes", wrongRequest)
	tests(t, "C21 a wrong key", wrongKey)
	tests(t, "C22 an unknown id", unknownID)
	tests(t, "C23 each code has an error", eachCode)
	tests(t, "C24 an unknown code keeps its text", unknownCode)
	tests(t, "C25 an answer that is not Waypost's", anotherAnswer)
	tests(t, "C26 a redirect is not followed", redirect)
	tests(t, "C27 nothing listens", nothingListens)
	tests(t, "C30 Retry-After is waited for", retryAfter)
	tests(t, "C31 a service that fails twice", failsTwice)
	tests(t, "C32 a service that fails always", failsAlways)
	tests(t, "C33 a twin that still runs", twin)
	tests(t, "C34 a refusal is not repeated", refusals)
	tests(t, "C35 after a lost answer only what is safe is repeated", onlyWhatIsSafe)
	tests(t, "C36 a long Retry-After is left to the caller", longRetryAfter)
	tests(t, "C40 paging while rows are added", pagingWhileRowsAreAdded)
	tests(t, "C41 pages one by one", pages)
	tests(t, "C42 a short list is a list like the others", shortList)
	tests(t, "C43 filters", filters)
	tests(t, "C50 unknown values and fields pass through", unknownValues)
	tests(t, "C60 the vectors of webhooks", vectors)
	tests(t, "C61 parsed JSON is refused with the reason", parsedJSON)
	tests(t, "C62 sign makes what verify accepts", signAndVerify)
	tests(t, "C63 a live webhook", liveWebhook)
	tests(t, "C70 cancellation", cancellation)
	tests(t, "C71 a timeout", timeout)
	tests(t, "C72 a send that takes too long at first", lateSend)
	tests(t, "C80 the log has nothing private", privateLog)
}

func missingSettings(t *testing.T) {
	fails := func(what string, options ...waypost.Option) {
		t.Helper()
		_, err := waypost.New(options...)
		matches(t, err, what)
	}
	t.Setenv("WAYPOST_API_KEY", "")
	fails("WAYPOST_API_KEY")
	t.Setenv("WAYPOST_URL", "")
	fails("WAYPOST_URL", waypost.WithAPIKey("key"))
	fails("https:", waypost.WithAPIKey("key"), waypost.WithBaseURL("mail.example.com"))
	fails("option of a call", waypost.WithAPIKey("key"), waypost.WithBaseURL("https://mail.example.com"), waypost.WithIdempotencyKey("x"))
}

func theEnvironmentIsEnough(t *testing.T) {
	settings := must(client.Settings.Get(t.Context()))(t)
	equal(t, settings.UnverifiedDomains, waypost.UnverifiedDomainsAccept)
}

func keyWithLineBreak(t *testing.T) {
	_, err := waypost.New(waypost.WithAPIKey("wp_live_secret\n"))
	matches(t, err, "API key")
	if strings.Contains(err.Error(), "secret") {
		t.Error("the message shows the key")
	}
}

func sendAndDeliver(t *testing.T) {
	to := "c04-" + run + "@example.org"
	sent := must(client.Messages.Send(t.Context(), mail(func(m *waypost.SendMessageRequest) { m.To = waypost.To(to) })))(t)
	equal(t, sent.Status, waypost.SendStatusQueued)
	message := delivered(t, sent.MessageID)
	equal(t, message.Subject, "Hello")
	recipients := must(client.Messages.Recipients.List(sent.MessageID, nil).Page(t.Context()))(t)
	equal(t, len(recipients.Data), 1)
	equal(t, recipients.Data[0].Status, waypost.MessageStatusDelivered)
	equal(t, capturedTo(t, to), 1)
}

func batch(t *testing.T) {
	good, bad := batchMail(""), batchMail("")
	bad.To = waypost.To("nobody")
	answer := must(client.Messages.SendBatch(t.Context(), &waypost.SendBatchRequest{Messages: []waypost.BatchMessage{good, bad, good}}))(t)
	equal(t, len(answer.Results), 3)
	if answer.Results[0].MessageID == "" || answer.Results[1].MessageID != "" || answer.Results[2].MessageID == "" {
		t.Errorf("%+v", answer.Results)
	}
	matches(t, errors.New(answer.Results[1].Error), "email address")
}

func scheduled(t *testing.T) {
	ctx, tomorrow := t.Context(), time.Now().Add(24*time.Hour).Truncate(time.Millisecond)
	sent := must(client.Messages.Send(ctx, mail(func(m *waypost.SendMessageRequest) { m.ScheduledAt = tomorrow })))(t)
	read := must(client.Messages.Get(ctx, sent.MessageID))(t)
	if !read.ScheduledAt.Equal(tomorrow) {
		t.Errorf("%v is not %v", read.ScheduledAt, tomorrow)
	}
	later := tomorrow.Add(24 * time.Hour)
	moved := must(client.Messages.Update(ctx, sent.MessageID, &waypost.UpdateMessageRequest{ScheduledAt: waypost.Value(later)}))(t)
	if !moved.ScheduledAt.Equal(later) {
		t.Errorf("%v is not %v", moved.ScheduledAt, later)
	}
	equal(t, must(client.Messages.Cancel(ctx, sent.MessageID))(t).CancelledCount, 1)
	_, err := client.Messages.Update(ctx, sent.MessageID, &waypost.UpdateMessageRequest{ScheduledAt: waypost.Null[time.Time]()})
	if e := failure(t, err, waypost.ErrConflict); e.Reason == "" {
		t.Error("there is no reason")
	}
}

func subResources(t *testing.T) {
	ctx := t.Context()
	template := must(client.Templates.Create(ctx, &waypost.CreateTemplateRequest{Name: "Receipt " + run, Description: waypost.Value("x")}))(t)
	version := must(client.Templates.Versions.Create(ctx, template.ID, &waypost.CreateTemplateVersionRequest{
		Subject: "Hello {{name}}", HTMLContent: "<p>{{name}}</p>", VariablesSchema: map[string]any{"type": "object"},
	}))(t)
	equal(t, must(client.Templates.Versions.Get(ctx, template.ID, version.ID))(t).ID, version.ID)
	equal(t, len(must(client.Templates.Versions.List(ctx, template.ID))(t).Data), 1)
	preview := must(client.Templates.Preview(ctx, template.ID, &waypost.PreviewTemplateRequest{Variables: map[string]any{"name": "Ada"}}))(t)
	equal(t, preview.Subject, "Hello Ada")
	change := func(request *waypost.UpdateTemplateRequest) *waypost.Template {
		return must(client.Templates.Update(ctx, template.ID, request))(t)
	}
	// What is absent stays, null clears.
	equal(t, change(&waypost.UpdateTemplateRequest{Name: "Renamed " + run}).Description, "x")
	cleared := change(&waypost.UpdateTemplateRequest{Description: waypost.Null[string](), Tags: []string{}})
	equal(t, cleared.Description, "")
	equal(t, cleared.Name, "Renamed "+run)
	must(client.Templates.Delete(ctx, template.ID))(t)
	_, err := client.Templates.Get(ctx, template.ID)
	failure(t, err, waypost.ErrNotFound)
}

func file(t *testing.T) {
	content := []byte{0, 255, 10, 13, 128}
	attachments := []waypost.MessageAttachment{{Filename: "data.bin", Content: content}}
	sent := must(client.Messages.Send(t.Context(), mail(func(m *waypost.SendMessageRequest) { m.Attachments = attachments })))(t)
	listed := must(client.Messages.Attachments.List(sent.MessageID).Page(t.Context()))(t)
	equal(t, listed.Data[0].Size, len(content))
	response := must(client.Messages.Attachments.Download(t.Context(), sent.MessageID, "0"))(t)
	defer response.Body.Close()
	equal(t, string(must(io.ReadAll(response.Body))(t)), string(content))
}

func wrongID(t *testing.T) {
	p := proxied(t, nil)
	for _, id := range []string{"", ".", ".."} {
		_, err := p.client.Messages.Get(t.Context(), id)
		matches(t, err, "an id is needed")
	}
	equal(t, len(p.requests(t)), 0)
}

func lostAnswer(t *testing.T, how string) {
	tag, to := how+"-"+run, how+"-"+run+"@example.org"
	p := proxied(t, []rule{{"path": "/v1/send", how: true}})
	sent := must(p.client.Messages.Send(t.Context(), mail(func(m *waypost.SendMessageRequest) {
		m.To, m.Tags = waypost.To(to), []string{tag}
	})))(t)
	requests := p.requests(t)
	equal(t, len(requests), 2)
	if requests[0].IdempotencyKey == "" {
		t.Error("there is no key")
	}
	equal(t, requests[0].IdempotencyKey, requests[1].IdempotencyKey)
	equal(t, len(withTag(t, tag)), 1)
	delivered(t, sent.MessageID)
	equal(t, capturedTo(t, to), 1)
}

func twoKeys(t *testing.T) {
	p := proxied(t, nil)
	one := must(p.client.Messages.Send(t.Context(), mail()))(t)
	two := must(p.client.Messages.Send(t.Context(), mail()))(t)
	requests := p.requests(t)
	if one.MessageID == two.MessageID || requests[0].IdempotencyKey == requests[1].IdempotencyKey {
		t.Error("two sends are one")
	}
}

func oneKey(t *testing.T) {
	key := waypost.WithIdempotencyKey("order-" + run)
	one := must(client.Messages.Send(t.Context(), mail(), key))(t)
	two := must(client.Messages.Send(t.Context(), mail(), key))(t)
	equal(t, one.MessageID, two.MessageID)
	_, err := client.Messages.Send(t.Context(), mail(func(m *waypost.SendMessageRequest) { m.Subject = "Another" }), key)
	equal(t, failure(t, err, waypost.ErrConflict).Reason, waypost.ErrorReasonIdempotencyKeyReused)
}

func wrongRequest(t *testing.T) {
	to := waypost.To("ada@example.org", "nobody")
	_, err := client.Messages.Send(t.Context(), mail(func(m *waypost.SendMessageRequest) { m.To = to }))
	e := failure(t, err, waypost.ErrValidation)
	equal(t, e.Status, 400)
	equal(t, e.Code, waypost.ErrorCodeValidationError)
	equal(t, e.Issues[0].Path, "to.1")
	if e.RequestID == "" || e.RateLimit == nil || e.RateLimit.Limit == 0 {
		t.Errorf("%+v", e)
	}
	matches(t, err, "to.1 must be an email address.*VALIDATION_ERROR, request "+e.RequestID)
}

func wrongKey(t *testing.T) {
	_, err := client.Settings.Get(t.Context(), waypost.WithAPIKey("wp_live_wrong"))
	equal(t, failure(t, err, waypost.ErrAuthentication).Status, 401)
}

func unknownID(t *testing.T) {
	_, err := client.Messages.Get(t.Context(), "01a1fbfa-b12e-763c-a29e-ce02006ba540")
	equal(t, failure(t, err, waypost.ErrNotFound).Status, 404)
}

func eachCode(t *testing.T) {
	document := struct {
		Components struct {
			Schemas struct {
				ErrorCode struct{ Enum []string }
			}
		}
	}{}
	unmarshal(t, must(os.ReadFile("../../../openapi/waypost.v1.json"))(t), &document)
	codes := document.Components.Schemas.ErrorCode.Enum
	if len(codes) < 12 {
		t.Fatal(codes)
	}
	source := string(must(os.ReadFile("../errors_gen.go"))(t))
	for _, code := range codes {
		p := proxied(t, []rule{refusal(422, code, "SOME_REASON")})
		_, err := p.client.Settings.Get(t.Context())
		e := failure(t, err, sentinelOf(t, source, code))
		equal(t, string(e.Code), code)
		equal(t, e.Message, "No.")
		equal(t, e.Reason, "SOME_REASON")
		equal(t, e.RequestID, "request-1")
	}
}

// sentinelOf gives the error of a code, after a look whether it is declared under the name that follows from the code.
func sentinelOf(t *testing.T, source, code string) error {
	t.Helper()
	name := "Err"
	for _, word := range strings.Split(strings.TrimSuffix(code, "_ERROR"), "_") {
		name += string(unicode.ToUpper(rune(word[0]))) + strings.ToLower(word[1:])
	}
	if !strings.Contains(source, fmt.Sprintf("\t%s error = ErrorCode(%q)\n", name, code)) {
		t.Fatalf("%s is not declared for %s", name, code)
	}
	return waypost.ErrorCode(code)
}

func unknownCode(t *testing.T) {
	p := proxied(t, []rule{refusal(418, "CODE_OF_TOMORROW", "NEW")})
	_, err := p.client.Settings.Get(t.Context())
	e := general(t, failure(t, err, waypost.ErrorCode("CODE_OF_TOMORROW")))
	equal(t, e.Code, "CODE_OF_TOMORROW")
	equal(t, e.Reason, "NEW")
	equal(t, e.Status, 418)
}

func anotherAnswer(t *testing.T) {
	for _, status := range []int{502, 200} {
		p := proxied(t, []rule{answer(status, "<h1>Hello</h1>", nil)}, waypost.WithMaxRetries(0))
		_, err := p.client.Settings.Get(t.Context())
		e := general(t, err)
		equal(t, e.Code, "UNEXPECTED_ANSWER")
		equal(t, e.Status, status)
		matches(t, err, "not one of Waypost's.*base URL")
	}
}

func redirect(t *testing.T) {
	p := proxied(t, []rule{answer(301, "", header{"Location": "https://mail.example.com/v1/send"})})
	_, err := p.client.Messages.Send(t.Context(), mail())
	equal(t, general(t, err).Status, 301)
	matches(t, err, "https://mail.example.com")
	equal(t, len(p.requests(t)), 1)
}

func nothingListens(t *testing.T) {
	_, err := client.Settings.Get(t.Context(), waypost.WithBaseURL("http://127.0.0.1:9"), waypost.WithMaxRetries(0))
	equal(t, failure(t, err, waypost.ErrConnection).Status, 0)
	matches(t, err, "127.0.0.1:9.*refused")
	if errors.Is(err, waypost.ErrTimeout) {
		t.Error("it is no timeout")
	}
	private := &waypost.ListMessagesParams{Recipient: "ada@example.org"}
	_, err = client.Messages.List(private, waypost.WithBaseURL("http://127.0.0.1:9"), waypost.WithMaxRetries(0)).Page(t.Context())
	if failure(t, err, waypost.ErrConnection); strings.Contains(err.Error(), "ada") {
		t.Errorf("%v shows an address", err)
	}
}

func retryAfter(t *testing.T) {
	p := proxied(t, []rule{answer(429, refused("RATE_LIMIT_EXCEEDED", ""), header{"Retry-After": "1"})})
	must(p.client.Messages.Send(t.Context(), mail()))(t)
	requests := p.requests(t)
	equal(t, len(requests), 2)
	if requests[1].At-requests[0].At < 1 {
		t.Error("it waited too short")
	}
	equal(t, requests[0].IdempotencyKey, requests[1].IdempotencyKey)
}

func failsTwice(t *testing.T) {
	unavailable := refusal(503, "SERVICE_UNAVAILABLE", "")
	unavailable["times"] = 2
	p := proxied(t, []rule{unavailable})
	must(p.client.Messages.Send(t.Context(), mail()))(t)
	equal(t, len(p.requests(t)), 3)
}

func failsAlways(t *testing.T) {
	for retries, expected := range []int{1, 2, 3} {
		broken := refusal(500, "INTERNAL_ERROR", "")
		broken["times"] = 0
		p := proxied(t, []rule{broken})
		var options []waypost.Option
		if retries < 2 {
			options = append(options, waypost.WithMaxRetries(retries))
		}
		_, err := p.client.Settings.Get(t.Context(), options...)
		failure(t, err, waypost.ErrInternal)
		equal(t, len(p.requests(t)), expected)
	}
}

func twin(t *testing.T) {
	running := proxied(t, []rule{refusal(409, "CONFLICT", "IDEMPOTENCY_IN_PROGRESS")})
	must(running.client.Messages.Send(t.Context(), mail()))(t)
	equal(t, len(running.requests(t)), 2)
	other := proxied(t, []rule{refusal(409, "CONFLICT", "TEST_KEY")})
	_, err := other.client.Messages.Send(t.Context(), mail())
	failure(t, err, waypost.ErrConflict)
	equal(t, len(other.requests(t)), 1)
}

func refusals(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 413, 422} {
		p := proxied(t, []rule{refusal(status, "VALIDATION_ERROR", "")})
		_, err := p.client.Messages.Send(t.Context(), mail())
		equal(t, failure(t, err, waypost.ErrValidation).Status, status)
		equal(t, len(p.requests(t)), 1)
	}
}

func onlyWhatIsSafe(t *testing.T) {
	ctx := t.Context()
	template := must(client.Templates.Create(ctx, &waypost.CreateTemplateRequest{Name: "Lost " + run}))(t)
	post := proxied(t, []rule{{"drop": true}})
	_, err := post.client.Messages.Retry(ctx, template.ID)
	failure(t, err, waypost.ErrConnection)
	equal(t, len(post.requests(t)), 1)
	preview := proxied(t, []rule{{"drop": true}})
	_, err = preview.client.Templates.Preview(ctx, template.ID, &waypost.PreviewTemplateRequest{})
	failure(t, err, waypost.ErrValidation) // there is no version
	equal(t, len(preview.requests(t)), 2)
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		p := proxied(t, []rule{{"method": method, "drop": true}})
		switch method {
		case "GET":
			must(p.client.Templates.Get(ctx, template.ID))(t)
		case "PATCH":
			must(p.client.Templates.Update(ctx, template.ID, &waypost.UpdateTemplateRequest{Name: "Lost again " + run}))(t)
		case "DELETE":
			must(p.client.Templates.Delete(ctx, template.ID))(t)
		}
		equal(t, len(p.requests(t)), 2)
	}
}

func longRetryAfter(t *testing.T) {
	p := proxied(t, []rule{answer(429, refused("RATE_LIMIT_EXCEEDED", ""), header{"Retry-After": "3600"})})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := p.client.Settings.Get(ctx)
	equal(t, failure(t, err, waypost.ErrRateLimitExceeded).RetryAfter, time.Hour)
	equal(t, len(p.requests(t)), 1)
}

func pagingWhileRowsAreAdded(t *testing.T) {
	tag := "paging-" + run
	first := sendTagged(t, tag, 25)
	var seen []string
	for message, err := range client.Messages.List(&waypost.ListMessagesParams{Tag: tag, Limit: 5}).All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if len(seen)%5 == 0 {
			sendTagged(t, tag, 3)
		}
		seen = append(seen, message.ID)
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(seen))); len(distinct) != len(seen) {
		t.Error("a row came twice")
	}
	for _, id := range first {
		if !slices.Contains(seen, id) {
			t.Errorf("%s is missing", id)
		}
	}
}

func pages(t *testing.T) {
	tag := "pages-" + run
	sendTagged(t, tag, 3)
	page := must(client.Messages.List(&waypost.ListMessagesParams{Tag: tag, Limit: 2, Page: 1}).Page(t.Context()))(t)
	equal(t, len(page.Data), 2)
	equal(t, page.Pagination.Total, 3)
	next := must(page.Next(t.Context()))(t)
	equal(t, len(next.Data), 1)
	if end := must(next.Next(t.Context()))(t); end != nil {
		t.Errorf("there is a third page: %+v", end)
	}
	for _, err := range client.Messages.List(nil, waypost.WithAPIKey("wp_live_wrong")).All(t.Context()) {
		failure(t, err, waypost.ErrAuthentication)
	}
}

func shortList(t *testing.T) {
	page := must(client.Providers.List().Page(t.Context()))(t)
	var all []waypost.ProviderAccount
	for account, err := range client.Providers.List().All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, account)
	}
	if len(all) == 0 || !reflect.DeepEqual(all, page.Data) {
		t.Errorf("%v is not %v", all, page.Data)
	}
}

func filters(t *testing.T) {
	p := proxied(t, nil)
	must(p.client.Messages.List(&waypost.ListMessagesParams{
		Status:      []waypost.MessageStatus{waypost.MessageStatusBounced, waypost.MessageStatusFailed},
		CreatedFrom: time.UnixMilli(1).UTC(),
		Test:        waypost.Value(false),
		Search:      "a & b",
		Limit:       7,
	}).Page(t.Context()))(t)
	query := must(url.ParseQuery(p.requests(t)[0].Query))(t)
	expected := url.Values{
		"status": {"BOUNCED,FAILED"}, "createdFrom": {"1970-01-01T00:00:00.001Z"}, "test": {"false"}, "search": {"a & b"}, "limit": {"7"},
	}
	if !reflect.DeepEqual(query, expected) {
		t.Errorf("%v is not %v", query, expected)
	}
}

func unknownValues(t *testing.T) {
	sent := must(client.Messages.Send(t.Context(), mail()))(t)
	p := proxied(t, []rule{{"set": []any{
		[]any{[]any{"data", "status"}, "OF_TOMORROW"},
		[]any{[]any{"data", "newField"}, map[string]any{"deep": []int{1}}},
		[]any{[]any{"data", "events", "*", "eventType"}, "NEW"},
	}}})
	message := must(p.client.Messages.Get(t.Context(), sent.MessageID))(t)
	equal(t, message.Status, "OF_TOMORROW")
	equal(t, string(message.Extra["newField"]), `{"deep": [1]}`)
	equal(t, len(message.Extra), 1)
	equal(t, message.Events[0].EventType, "NEW")
}

func vectors(t *testing.T) {
	var file struct {
		Vectors []struct {
			Name    string
			Valid   bool
			Now     int64
			Secrets []string
			Headers map[string]string
			Body    string
		}
	}
	unmarshal(t, must(os.ReadFile("../../conformance/webhooks.json"))(t), &file)
	if len(file.Vectors) <= 20 {
		t.Fatal("vectors are missing")
	}
	for _, v := range file.Vectors {
		given := http.Header{}
		for name, value := range v.Headers {
			given.Set(name, value)
		}
		event, err := waypost.VerifyWebhookAt(time.Unix(v.Now, 0), []byte(v.Body), given, v.Secrets...)
		if !v.Valid {
			failure(t, err, waypost.ErrWebhookNotVerified)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		var expected struct{ Event string }
		unmarshal(t, []byte(v.Body), &expected)
		equal(t, event.EventType(), expected.Event)
		switch event := event.(type) {
		case *waypost.DeliveredEvent:
			equal(t, event.Data.Recipient, "ada@example.org")
		case *waypost.UnknownWebhookEvent:
			equal(t, event.EventType(), "A_TYPE_OF_TOMORROW")
			if !strings.Contains(string(event.Extra["data"]), "ada@example.org") {
				t.Errorf("%s is lost", event.Extra["data"])
			}
		default:
			t.Errorf("%s: %T", v.Name, event)
		}
	}
}

func parsedJSON(t *testing.T) {
	secret, body := "whsec_MDEyMzQ1Njc4OWFiY2RlZg==", []byte(`{"event": "SENT", "data": {}}`)
	signed := waypost.SignWebhook(body, secret)
	var parsed any
	unmarshal(t, body, &parsed)
	for _, again := range [][]byte{must(json.Marshal(parsed))(t), nil} {
		_, err := waypost.VerifyWebhook(again, signed, secret)
		failure(t, err, waypost.ErrWebhookNotVerified)
		matches(t, err, "raw body")
	}
	_, err := waypost.VerifyWebhook(body, signed, "")
	matches(t, err, "secret is empty")
}

func signAndVerify(t *testing.T) {
	secret := "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	body := []byte(`{"event": "SENT", "timestamp": "2026-11-20T12:00:00.000Z", "data": {}}`)
	signed := waypost.SignWebhook(body, secret)
	for _, prefix := range []string{"X-Waypost", "Webhook"} {
		one := http.Header{}
		for name, values := range signed {
			if strings.HasPrefix(name, prefix) {
				one[name] = values
			}
		}
		equal(t, must(waypost.VerifyWebhook(body, one, secret))(t).EventType(), "SENT")
	}
	_, err := waypost.VerifyWebhook(append(body, ' '), signed, secret)
	failure(t, err, waypost.ErrWebhookNotVerified)
	// A secret that is not base64 makes no signature of Standard Webhooks: not an empty one either.
	signed.Set("webhook-signature", "v1,x  v1,y")
	_, err = waypost.VerifyWebhook(body, signed, "no base64")
	failure(t, err, waypost.ErrWebhookNotVerified)
}

func liveWebhook(t *testing.T) {
	ctx, p := t.Context(), proxied(t, nil)
	endpoint := must(client.WebhookEndpoints.Create(ctx, &waypost.CreateWebhookEndpointRequest{
		URL:    os.Getenv("CONFORMANCE_PROXY_URL") + "/hook/" + p.name,
		Events: []waypost.WebhookEventType{waypost.WebhookEventTypeQueued, waypost.WebhookEventTypeDelivered},
	}))(t)
	defer func() { must(client.WebhookEndpoints.Delete(ctx, endpoint.ID))(t) }()
	must(client.WebhookEndpoints.Test(ctx, endpoint.ID))(t)
	sent := must(client.Messages.Send(ctx, mail()))(t)
	until(t, "the webhook", func() bool {
		for _, hook := range p.seen(t).Hooks {
			given := http.Header{}
			for name, value := range hook.Headers {
				given.Set(name, value)
			}
			if given.Get("X-Waypost-Signature") == "" {
				continue
			}
			event := must(waypost.VerifyWebhook(hook.Body, given, endpoint.Secret))(t)
			if event, ok := event.(*waypost.DeliveredEvent); ok && event.Data.MessageID == sent.MessageID {
				equal(t, event.Data.Recipient, "ada-"+run+"@example.org")
				return true
			}
		}
		return false
	})
}

func cancellation(t *testing.T) {
	unavailable := answer(503, refused("SERVICE_UNAVAILABLE", ""), header{"Retry-After": "5"})
	for _, rules := range [][]rule{{{"wait": 3}}, {unavailable}} {
		p := proxied(t, rules)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		begun := time.Now()
		_, err := p.client.Settings.Get(ctx)
		var e *waypost.Error
		if !errors.Is(err, context.Canceled) || errors.As(err, &e) {
			t.Errorf("%v", err)
		}
		if took := time.Since(begun); took > 1500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		equal(t, len(p.requests(t)), 1)
	}
	ctx, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	if _, err := client.Settings.Get(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, waypost.ErrTimeout) {
		t.Errorf("%v", err)
	}
}

func timeout(t *testing.T) {
	p := proxied(t, []rule{{"wait": 2, "times": 0}}, waypost.WithTimeout(200*time.Millisecond), waypost.WithMaxRetries(0))
	_, err := p.client.Settings.Get(t.Context())
	failure(t, err, waypost.ErrTimeout)
	failure(t, err, waypost.ErrConnection)
	matches(t, err, "200ms.*WithTimeout")
}

func lateSend(t *testing.T) {
	tag := "late-" + run
	p := proxied(t, []rule{{"wait": 1}})
	request := mail(func(m *waypost.SendMessageRequest) { m.Tags = []string{tag} })
	must(p.client.Messages.Send(t.Context(), request, waypost.WithTimeout(700*time.Millisecond), waypost.WithMaxRetries(5)))(t)
	var requests []recorded
	until(t, "the late answer", func() bool {
		requests = p.requests(t)
		return !slices.ContainsFunc(requests, func(r recorded) bool { return r.Status == 0 })
	})
	if len(requests) < 2 {
		t.Error("it was not repeated")
	}
	for _, request := range requests {
		equal(t, request.IdempotencyKey, requests[0].IdempotencyKey)
	}
	equal(t, len(withTag(t, tag)), 1)
}

func privateLog(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p := proxied(t, []rule{refusal(503, "SERVICE_UNAVAILABLE", "")}, waypost.WithLogger(logger))
	request := mail(func(m *waypost.SendMessageRequest) { m.Subject = "A private subject" })
	must(p.client.Messages.Send(t.Context(), request, waypost.WithIdempotencyKey("private-"+run)))(t)
	must(p.client.Messages.List(&waypost.ListMessagesParams{Recipient: "ada@example.org"}).Page(t.Context()))(t)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	equal(t, len(lines), 3)
	matches(t, errors.New(lines[0]), "POST /v1/send.* status=503 request_id=request-1")
	if found := regexp.MustCompile("ada-" + run + "|ada@|private|wp_live|Hello").FindString(log.String()); found != "" {
		t.Errorf("%q is in the log", found)
	}
}

// What the tests need.

type (
	rule     map[string]any
	header   map[string]string
	recorded struct {
		Query, IdempotencyKey string
		At                    float64
		Status                int
	}
	proxy struct {
		client *waypost.Client
		name   string
	}
)

// proxied makes a client by the proxy, with rules.
func proxied(t *testing.T, rules []rule, options ...waypost.Option) proxy {
	t.Helper()
	name := fmt.Sprintf("go-%s-%d", run, sessions.Add(1))
	body := must(json.Marshal(map[string]any{"rules": append([]rule{}, rules...)}))(t)
	base := os.Getenv("CONFORMANCE_PROXY_URL")
	request := must(http.NewRequest(http.MethodPut, base+"/control/"+name, bytes.NewReader(body)))(t)
	must(http.DefaultClient.Do(request))(t).Body.Close()
	options = append([]waypost.Option{waypost.WithBaseURL(base + "/s/" + name + "/")}, options...)
	return proxy{must(waypost.New(options...))(t), name}
}

// seen is what the proxy recorded.
func (p proxy) seen(t *testing.T) (record struct {
	Requests []recorded
	Hooks    []struct {
		Headers map[string]string
		Body    []byte
	}
}) {
	t.Helper()
	get(t, os.Getenv("CONFORMANCE_PROXY_URL")+"/control/"+p.name, &record)
	return record
}

func (p proxy) requests(t *testing.T) []recorded {
	t.Helper()
	return p.seen(t).Requests
}

func answer(status int, body any, headers header) rule {
	if headers == nil {
		headers = header{}
	}
	return rule{"answer": map[string]any{"status": status, "headers": headers, "body": body}}
}

func refused(code, reason string) any {
	details := map[string]any{}
	if reason != "" {
		details["reason"] = reason
	}
	return map[string]any{"error": map[string]any{"code": code, "message": "No.", "details": details}}
}

func refusal(status int, code, reason string) rule {
	return answer(status, refused(code, reason), header{"X-Request-Id": "request-1"})
}

func mail(changes ...func(*waypost.SendMessageRequest)) *waypost.SendMessageRequest {
	message := &waypost.SendMessageRequest{
		From: "Shop <shop@example.com>", To: waypost.To("ada-" + run + "@example.org"), Subject: "Hello", Text: "Hello, Ada",
	}
	for _, change := range changes {
		change(message)
	}
	return message
}

func batchMail(tag string) waypost.BatchMessage {
	message := waypost.BatchMessage{
		From: "Shop <shop@example.com>", To: waypost.To("ada-" + run + "@example.org"), Subject: "Hello", Text: "Hello, Ada",
	}
	if tag != "" {
		message.Tags = []string{tag}
	}
	return message
}

func sendTagged(t *testing.T, tag string, count int) (ids []string) {
	t.Helper()
	request := &waypost.SendBatchRequest{Messages: slices.Repeat([]waypost.BatchMessage{batchMail(tag)}, count)}
	for _, result := range must(client.Messages.SendBatch(t.Context(), request))(t).Results {
		ids = append(ids, result.MessageID)
	}
	return ids
}

func withTag(t *testing.T, tag string) (messages []waypost.MessageSummary) {
	t.Helper()
	for message, err := range client.Messages.List(&waypost.ListMessagesParams{Tag: tag}).All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, message)
	}
	return messages
}

func delivered(t *testing.T, id string) (message *waypost.MessageDetail) {
	t.Helper()
	until(t, "the delivery", func() bool {
		message = must(client.Messages.Get(t.Context(), id))(t)
		return message.Status == waypost.MessageStatusDelivered
	})
	return message
}

// capturedTo says how many mails the simulator got for an address.
func capturedTo(t *testing.T, address string) int {
	t.Helper()
	var captured struct{ Messages []any }
	get(t, os.Getenv("SIMULATOR_URL")+"/captured?to="+url.QueryEscape(address), &captured)
	return len(captured.Messages)
}

func get(t *testing.T, address string, into any) {
	t.Helper()
	response := must(http.Get(address))(t)
	defer response.Body.Close()
	unmarshal(t, must(io.ReadAll(response.Body))(t), into)
}

func unmarshal(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for range 150 {
		if condition() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s did not happen within 15 seconds", what)
}

// must gives a value, and fails the test if there is an error: must(f())(t).
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func equal[T comparable](t *testing.T, got, expected T) {
	t.Helper()
	if got != expected {
		t.Errorf("%v is not %v", got, expected)
	}
}

func matches(t *testing.T, err error, pattern string) {
	t.Helper()
	if err == nil || !regexp.MustCompile(pattern).MatchString(err.Error()) {
		t.Errorf("%v does not match %q", err, pattern)
	}
}

// failure gives an error of a call, which must be of the kind.
func failure(t *testing.T, err, kind error) *waypost.Error {
	t.Helper()
	var e *waypost.Error
	if !errors.As(err, &e) || !errors.Is(err, kind) {
		t.Fatalf("%v is not %v", err, kind)
	}
	return e
}

// general gives an error of a call that is of no kind.
func general(t *testing.T, err error) *waypost.Error {
	t.Helper()
	var e *waypost.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	for _, kind := range []error{
		waypost.ErrValidation, waypost.ErrNotFound, waypost.ErrInternal, waypost.ErrServiceUnavailable, waypost.ErrConnection, waypost.ErrTimeout,
	} {
		if errors.Is(err, kind) {
			t.Errorf("%v is %v", err, kind)
		}
	}
	return e
}
