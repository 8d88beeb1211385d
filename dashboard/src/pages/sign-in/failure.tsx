import { useEffect, useMemo, useState } from "react";
import { AuthenticationError, RateLimitExceededError, WaypostError } from "waypost";
import { errorText } from "@/api";
import { plural } from "@/format";
import { Notice } from "@/ui/page";

/** The browser did not take the cookie of the session. */
export class CookieRefused extends Error {}

/** Why nobody was signed in, in words. */
export function Failure({ error, wrong }: { error: unknown; wrong: string }) {
  if (error instanceof CookieRefused) {
    return (
      <Notice kind="error">
        Your email address and password are right, but your browser did not take the cookie of the session. It takes it only from an address that
        begins with https://, or from localhost. Check also whether cookies are blocked for this address.
      </Notice>
    );
  }
  if (error instanceof RateLimitExceededError) return <TooMany error={error} />;
  if (error instanceof AuthenticationError) return <Notice kind="error">{wrong}</Notice>;
  if (error instanceof WaypostError && error.issues.length > 0) return null;
  return <Notice kind="error">{errorText(error)}</Notice>;
}

/** How long to wait. The clock runs on; what is read aloud is only the first time. */
function TooMany({ error }: { error: RateLimitExceededError }) {
  const left = useSecondsLeft(error);
  if (left === 0) return <Notice kind="info">You can try again now.</Notice>;
  return (
    <Notice kind="error">
      Too many attempts. {left === undefined ? "Wait a while, then try again." : <>Try again in {waiting(left)}.</>}
    </Notice>
  );
}

const waiting = (seconds: number): string => (seconds > 90 ? plural(Math.ceil(seconds / 60), "minute") : plural(seconds, "second"));

/** How many seconds an answer asks to wait from its arrival; undefined if it does not say. */
export function useSecondsLeft(error: unknown): number | undefined {
  const wait = error instanceof WaypostError ? error.retryAfter : undefined;
  // Each error is an arrival of its own, also with the same wait.
  const arrival = useMemo(() => Date.now(), [error]);
  const [now, setNow] = useState(arrival);
  useEffect(() => {
    if (wait === undefined) return;
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [wait]);
  return wait === undefined ? undefined : Math.max(0, Math.ceil(wait - (Math.max(now, arrival) - arrival) / 1_000));
}
