import { WebhookVerificationError, webhooks } from "waypost";
import { store } from "@/lib/users";

export async function POST(request: Request) {
  try {
    const event = await webhooks.verify(await request.text(), request.headers, process.env.WAYPOST_WEBHOOK_SECRET!);
    const delivery = request.headers.get("webhook-id") ?? "";
    const user = [...store.users.values()].find(({ email }) => "recipient" in event.data && email === event.data.recipient);
    if (user && !store.deliveries.has(delivery)) {
      if (event.event === "DELIVERED") user.emailStatus = "delivered";
      if (event.event === "BOUNCED") user.emailStatus = "bounced";
      if (event.event === "COMPLAINED") user.emailStatus = "complained";
    }
    store.deliveries.add(delivery);
    return new Response(null, { status: 204 });
  } catch (error) {
    if (error instanceof WebhookVerificationError) return Response.json({ error: error.message }, { status: 400 });
    throw error;
  }
}
