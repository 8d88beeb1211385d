import { ValidationError, Waypost } from "waypost";
import { type User, store } from "@/lib/users";

export async function POST(request: Request) {
  const { name, email } = await request.json();
  const user: User = { id: crypto.randomUUID(), email, emailStatus: "sent" };
  const waypost = new Waypost(); // WAYPOST_URL and WAYPOST_API_KEY
  try {
    await waypost.messages.send(
      { from: "Shop <welcome@example.com>", to: email, subject: `Welcome, ${name}`, text: `Hello ${name}, good to have you.` },
      { idempotencyKey: `welcome-${user.id}` },
    );
  } catch (error) {
    if (error instanceof ValidationError) return Response.json({ error: error.message }, { status: 422 });
    throw error;
  }
  store.users.set(user.id, user);
  return Response.json(user, { status: 201 });
}
