package waypost

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const tolerance = 5 * time.Minute

// More signatures than a rotation can make are not looked at.
const signaturesMax = 10

// VerifyWebhook gives the event of a request to your webhook endpoint, if Waypost signed it in the last five minutes; else
// an error that is [ErrWebhookNotVerified].
//
// The body must be the raw body, as it came, before anything parses it. The header is that of the request (r.Header). Each
// of the secrets (whsec_…) may have signed it.
func VerifyWebhook(rawBody []byte, header http.Header, secrets ...string) (WebhookEvent, error) {
	return VerifyWebhookAt(time.Now(), rawBody, header, secrets...)
}

// VerifyWebhookAt is [VerifyWebhook] at another time than now, for tests.
func VerifyWebhookAt(now time.Time, rawBody []byte, header http.Header, secrets ...string) (WebhookEvent, error) {
	problem := "the request has no signature: neither X-Waypost-Signature nor webhook-signature, each with its timestamp; pass all headers"
	genuine := func(timestamp, signatures string, sign func(secret, id, timestamp string, body []byte) string) (ok bool) {
		if timestamp == "" || strings.TrimSpace(signatures) == "" {
			return false
		}
		seconds, err := strconv.ParseUint(timestamp, 10, 32)
		if err != nil || now.Sub(time.Unix(int64(seconds), 0)).Abs() > tolerance {
			problem = "the request was not signed within five minutes of now: it is an old one, or a clock is wrong"
			return false
		}
		problem = "no signature is by this secret: is it this endpoint's, and is this the raw body, rather than parsed JSON written again?"
		for _, secret := range secrets {
			expected := sign(secret, header.Get("webhook-id"), timestamp, rawBody)
			for _, given := range strings.SplitN(signatures, " ", signaturesMax) {
				ok = ok || secret != "" && expected != "" && hmac.Equal([]byte(given), []byte(expected))
			}
		}
		return ok
	}
	own := header.Get("X-Waypost-Signature") + " " + header.Get("X-Waypost-Signature-Other")
	switch {
	case !slices.ContainsFunc(secrets, func(secret string) bool { return secret != "" }):
		problem = "the secret is empty: Waypost shows it once, when the endpoint is made (whsec_…)"
	case len(rawBody) == 0:
		problem = "the body is empty: pass the raw body, as it came, before anything else reads it"
	case genuine(header.Get("X-Waypost-Timestamp"), own, ownSignature),
		genuine(header.Get("webhook-timestamp"), header.Get("webhook-signature"), standardSignature):
		return decodeWebhookEvent(rawBody)
	}
	return nil, &Error{Code: "WEBHOOK_NOT_VERIFIED", Message: problem}
}

// SignWebhook makes the headers that Waypost would send with this body now, to test your receiver.
func SignWebhook(rawBody []byte, secret string) http.Header {
	id, timestamp := rand.Text(), strconv.FormatInt(time.Now().Unix(), 10)
	return http.Header{
		"X-Waypost-Timestamp": {timestamp},
		"X-Waypost-Signature": {ownSignature(secret, "", timestamp, rawBody)},
		"Webhook-Id":          {id},
		"Webhook-Timestamp":   {timestamp},
		"Webhook-Signature":   {standardSignature(secret, id, timestamp, rawBody)},
	}
}

func ownSignature(secret, _, timestamp string, body []byte) string {
	return hex.EncodeToString(sum([]byte(secret), timestamp+".", body))
}

// standardSignature is that of Standard Webhooks, whose key is what the secret says in base64; empty if it is not base64.
func standardSignature(secret, id, timestamp string, body []byte) string {
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimPrefix(secret, "whsec_"), "="))
	if err != nil || len(key) == 0 {
		return ""
	}
	return "v1," + base64.StdEncoding.EncodeToString(sum(key, id+"."+timestamp+".", body))
}

func sum(key []byte, prefix string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s%s", prefix, body)
	return mac.Sum(nil)
}
