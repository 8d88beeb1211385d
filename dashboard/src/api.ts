/** The client of the API: the TypeScript SDK, with the session's cookie in place of an API key. */

import { QueryClient } from "@tanstack/react-query";
import { Waypost, WaypostError } from "waypost";

/** The address under which Waypost is reached: the page's <base>, so that it may live below a path. */
export const baseUrl = new URL(".", document.baseURI).href.replace(/\/$/, "");

export const waypost = new Waypost("session", {
  baseUrl,
  maxRetries: 1,
  fetch: (input, init) => {
    const headers = new Headers(init?.headers);
    // The SDK wants a key; the service looks at the cookie only if there is none.
    headers.delete("authorization");
    headers.set("x-waypost-csrf", "1");
    return fetch(input, { ...init, headers, credentials: "same-origin" });
  },
});

/** Whether the call failed because nobody is signed in. */
export const isSignedOut = (error: unknown): boolean => error instanceof WaypostError && error.status === 401;

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      // The SDK repeats what may be repeated.
      retry: false,
      refetchOnWindowFocus: true,
    },
  },
});

/** What went wrong, in words for a person. */
export function errorText(error: unknown): string {
  if (error instanceof WaypostError) {
    if (error.status === undefined) return "Waypost does not answer. Check your connection, then try again.";
    return error.message;
  }
  return error instanceof Error ? error.message : String(error);
}
