/** Accounts and a domain for tests of routing rules. */

import type { ProviderAccount, Waypost } from "waypost";
import { unique } from "./fixtures";

const connect = (waypost: Waypost, displayName: string): Promise<ProviderAccount> =>
  waypost.providers.create({ providerType: "SENDGRID", displayName, credentials: { apiKey: `SG.${displayName}` } });

/** Two accounts, and a domain for rules of their own, so that other tests do not matter. */
export async function setUp(waypost: Waypost) {
  const domain = `${unique("routing")}.example.org`;
  const [first, second] = [await connect(waypost, unique("First")), await connect(waypost, unique("Second"))];
  for (const account of [first, second]) {
    const added = await waypost.providers.domains.create(account.id, { domain });
    await waypost.providers.domains.verify(account.id, added.id);
  }
  return {
    domain,
    first,
    second,
    async tearDown() {
      for await (const rule of waypost.routingRules.list()) {
        const named = [rule.providerAccountId, ...rule.targets.map((target) => target.providerAccountId)];
        if ([first.id, second.id].some((id) => named.includes(id))) await waypost.routingRules.delete(rule.id);
      }
      for (const account of [first, second]) await waypost.providers.delete(account.id);
    },
  };
}
