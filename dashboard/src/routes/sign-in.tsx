import { createFileRoute, redirect } from "@tanstack/react-router";
import { isSignedOut, queries } from "@/api";
import { safeNext } from "@/pages/sign-in/next";
import { SignIn } from "@/pages/sign-in/sign-in";
import { sessionQuery } from "@/session";

export const Route = createFileRoute("/sign-in")({
  validateSearch: (search: Record<string, unknown>): { next?: string; ended?: true; error?: string } => ({
    ...(typeof search.next === "string" ? { next: search.next } : {}),
    ...(search.ended === true ? { ended: true } : {}),
    ...(typeof search.error === "string" ? { error: search.error } : {}),
  }),
  beforeLoad: async ({ search }) => {
    try {
      await queries.fetchQuery(sessionQuery);
    } catch (error) {
      if (isSignedOut(error)) return;
      throw error;
    }
    throw redirect({ to: safeNext(search.next).pathname as string, replace: true });
  },
  component: function SignInPage() {
    return <SignIn {...Route.useSearch()} />;
  },
});
