/** Who is signed in, and what they may do. */

import { queryOptions, useSuspenseQuery } from "@tanstack/react-query";
import type { Permission, Session } from "waypost";
import { baseUrl, isSignedOut, waypost } from "./api";

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: (): Promise<Session> => waypost.session.get(),
  staleTime: 60_000,
});

export const useSession = (): Session => useSuspenseQuery(sessionQuery).data;

/** Whether the signed-in person's role has a permission. */
export function useMay(): (permission: Permission) => boolean {
  const { permissions } = useSession();
  return (permission) => permissions.includes(permission);
}

/** Ends the session, and forgets everything that was loaded by it. */
export async function signOut(everywhere = false): Promise<void> {
  try {
    await waypost.session.delete({ everywhere });
  } catch (error) {
    // The session has ended already.
    if (!isSignedOut(error)) throw error;
  }
  // A fresh page: nothing of the session stays in memory.
  window.location.assign(`${baseUrl}/sign-in`);
}

export async function switchOrganization(organizationId: string): Promise<void> {
  await waypost.session.update({ organizationId });
}
