import { useRouter } from "@tanstack/react-router";
import { useEffect } from "react";
import { baseUrl, isSignedOut, queries } from "@/api";

/**
 * Leaves for the sign-in page as soon as an answer says that the session has ended, and names the page to come back to. It is a
 * fresh page, so that nothing of the session stays in memory.
 */
export function useSessionEnd(): void {
  const router = useRouter();
  useEffect(() => {
    let left = false;
    const look = (error: unknown) => {
      if (left || !isSignedOut(error)) return;
      left = true;
      const next = encodeURIComponent(router.state.location.href);
      window.location.assign(`${baseUrl}/sign-in?ended=true&next=${next}`);
    };
    const ends = [
      queries.getQueryCache().subscribe((event) => event.type === "updated" && event.action.type === "error" && look(event.action.error)),
      queries.getMutationCache().subscribe((event) => event.type === "updated" && event.action.type === "error" && look(event.action.error)),
    ];
    return () => {
      for (const end of ends) end();
    };
  }, [router]);
}
