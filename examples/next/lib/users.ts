export interface User {
  id: string;
  email: string;
  emailStatus: "sent" | "delivered" | "bounced" | "complained";
}

interface Store {
  users: Map<string, User>;
  /** The ids of the webhook deliveries that were handled. */
  deliveries: Set<string>;
}

// A real shop has a database. Next.js may load a module more than once, so the store is global.
const shared = globalThis as typeof globalThis & { store?: Store };

export const store: Store = (shared.store ??= { users: new Map(), deliveries: new Set() });
