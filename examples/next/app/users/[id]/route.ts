import { store } from "@/lib/users";

export async function GET(_: Request, { params }: { params: Promise<{ id: string }> }) {
  const user = store.users.get((await params).id);
  return user ? Response.json(user) : Response.json({ error: "There is no such user" }, { status: 404 });
}
