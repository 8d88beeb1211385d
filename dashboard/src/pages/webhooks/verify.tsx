import { CodeTabs } from "@/ui/code";

const TYPESCRIPT = `import { WebhookVerificationError, webhooks } from "waypost";

// Workers, Deno, Bun, Next.js, Hono: anything with a Request.
export async function POST(request: Request) {
  try {
    const secret = process.env.WAYPOST_WEBHOOK_SECRET!;
    const event = await webhooks.verify(await request.text(), request.headers, secret);
    if (event.event === "BOUNCED") await markAsBounced(event.data.recipient, event.data.bounceType);
    return new Response(null, { status: 204 });
  } catch (error) {
    if (error instanceof WebhookVerificationError) return new Response(null, { status: 400 });
    throw error;
  }
}`;

const PYTHON = `from waypost import WebhookVerificationError, webhooks


@csrf_exempt
@require_POST
def waypost_webhook(request: HttpRequest) -> HttpResponse:  # Django
    try:
        event = webhooks.verify(request.body, request.headers, os.environ["WAYPOST_WEBHOOK_SECRET"])
    except WebhookVerificationError:
        return HttpResponse(status=400)
    if event.event == "BOUNCED":
        mark_as_bounced(event.data.recipient, event.data.bounce_type)
    return HttpResponse(status=204)`;

const GO = `func receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	event, err := waypost.VerifyWebhook(body, r.Header, os.Getenv("WAYPOST_WEBHOOK_SECRET"))
	if err != nil {
		http.Error(w, "not verified", http.StatusBadRequest)
		return
	}
	if bounced, ok := event.(*waypost.BouncedEvent); ok {
		markAsBounced(bounced.Data.Recipient, bounced.Data.BounceType)
	}
	w.WriteHeader(http.StatusNoContent)
}`;

const RUST = `use waypost::{Error, reqwest::header::HeaderMap, types::WebhookEvent, webhooks};

// axum, poem, hyper: anything with the headers of the crate \`http\`. Answer 400 to an error.
fn receive(headers: &HeaderMap, body: &[u8], secret: &str) -> Result<(), Error> {
    match webhooks::verify(body, headers, [secret])? {
        WebhookEvent::Bounced(event) => mark_as_bounced(&event.data.recipient),
        _ => {} // other types, and those that a newer Waypost sends
    }
    Ok(())
}`;

const SAMPLES = [
  ["TypeScript", TYPESCRIPT],
  ["Python", PYTHON],
  ["Go", GO],
  ["Rust", RUST],
] as const;

/** How a receiver verifies a request, with each SDK. */
export const VerifySamples = () => <CodeTabs samples={SAMPLES} />;

/** The page's part on signatures: with an SDK, and by hand. */
export function VerifyHelp() {
  return (
    <div className="space-y-6">
      <section>
        <h2 className="mb-1 text-sm font-semibold">With an SDK</h2>
        <p className="mb-3 max-w-2xl text-text-2">
          Verify each request by its raw body, before you parse it. Anybody can post to your URL; only Waypost can sign. During a rotation
          give both secrets.
        </p>
        <VerifySamples />
      </section>
      <section>
        <h2 className="mb-1 text-sm font-semibold">By hand</h2>
        <ol className="max-w-2xl list-decimal space-y-1.5 pl-5 text-text-2">
          <li>
            Refuse the request if <Name>X-Waypost-Timestamp</Name> (Unix seconds) is more than 5 minutes away from now.
          </li>
          <li>
            Compute the HMAC-SHA256 of <Name>timestamp.body</Name>: that header, a dot and the raw body, keyed with the whole secret (
            <Name>whsec_…</Name>), in lower-case hexadecimal.
          </li>
          <li>
            Compare it with <Name>X-Waypost-Signature</Name> in constant time.
          </li>
          <li>
            Ignore a delivery whose <Name>webhook-id</Name> you have seen: one comes again if your answer was lost.
          </li>
        </ol>
        <p className="mt-3 max-w-2xl text-text-2">
          Any library of Standard Webhooks works too: <Name>webhook-id</Name>, <Name>webhook-timestamp</Name> and{" "}
          <Name>webhook-signature</Name> are its headers.
        </p>
      </section>
      <section>
        <h2 className="mb-1 text-sm font-semibold">What to answer</h2>
        <p className="max-w-2xl text-text-2">
          Any status from 200 to 299, soon; the operator's limit is 15 seconds unless it was changed. Everything else is tried again: ten
          tries over three days. 410 switches the endpoint off at once, and so do five days of failures.
        </p>
      </section>
    </div>
  );
}

const Name = ({ children }: { children: string }) => <code className="font-mono text-[13px] break-words text-text">{children}</code>;
