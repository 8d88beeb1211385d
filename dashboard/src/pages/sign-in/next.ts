import { useRouter } from "@tanstack/react-router";
import { isSignedOut, queries } from "@/api";
import { sessionQuery } from "@/session";
import { CookieRefused } from "./failure";

/**
 * Where to go after signing in, as a path of this dashboard. Anything else in the address, such as another host, is
 * the overview: a link to the sign-in page must not lead away from it.
 */
export function safeNext(next: string | undefined): URL {
  const overview = new URL("/", window.location.origin);
  if (!next?.startsWith("/")) return overview;
  try {
    const url = new URL(next, window.location.origin);
    return url.origin === overview.origin && !/^\/(sign-in|invitation|reset)\b/.test(url.pathname) ? url : overview;
  } catch {
    return overview;
  }
}

/** Goes on after a session has begun: nothing of one before it stays in memory, and its cookie must have been taken. */
export function useEnter(): (next?: string) => Promise<void> {
  const router = useRouter();
  return async (next) => {
    queries.clear();
    try {
      await queries.fetchQuery(sessionQuery);
    } catch (error) {
      throw isSignedOut(error) ? new CookieRefused() : error;
    }
    const { pathname, search, hash } = safeNext(next);
    await router.navigate({ to: pathname, search: router.options.parseSearch?.(search) ?? {}, hash: hash.slice(1), replace: true } as never);
  };
}
