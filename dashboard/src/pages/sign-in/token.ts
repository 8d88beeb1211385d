import { useLocation } from "@tanstack/react-router";
import { useRef } from "react";

/** The token of a link. It is behind the # of the address, so it never reaches a server's log. */
export function useToken(): string {
  const hash = useLocation({ select: (location) => location.hash });
  // On the way to another page the address has none any more.
  const token = useRef(hash);
  if (hash) token.current = hash;
  return token.current;
}
