/** The mail that is asked about: in the page's address, as the API takes it, and as the rules saw it. */

import type { ResolveRouteRequest } from "waypost";
import { listOf, sizeOf, tagList } from "./draft";
import type { Mail } from "./words";

export interface Question {
  from?: string | undefined;
  /** Addresses or domains, separated by commas. */
  to?: string | undefined;
  /** Separated by commas. */
  tags?: string | undefined;
  messageClass?: "bulk" | undefined;
  /** As it was entered: "5 MB". */
  size?: string | undefined;
  test?: true | undefined;
}

/** What was asked last, for whoever comes back from a rule that they changed. */
let asked: Question = {};
export const lastQuestion = (): Question => asked;

/** Keeps a question, without what is empty. */
export function remember(question: Question): Question {
  const { from = "", to, tags, messageClass, size, test } = question;
  asked = { from, to: to?.trim() || undefined, tags: tags?.trim() || undefined, messageClass, size: size?.trim() || undefined, test };
  return asked;
}

/** Rules look at the domain alone, so any address of it has the same answer. */
const addressOf = (from: string): string => (from.includes("@") ? from : `anyone@${from.trim()}`);

/** The domain of an address, also of `Ada <ada@example.com>`. */
const domainOf = (from: string): string => from.slice(from.lastIndexOf("@") + 1).replace(/[>\s]+$/, "").toLowerCase();

const recipients = (to: string | undefined): string[] => listOf(to ?? "").map(addressOf);

export function requestOf({ from, to, tags, messageClass, size, test }: Question): ResolveRouteRequest {
  const addresses = recipients(to);
  return {
    from: addressOf(from ?? ""),
    to: addresses.length > 0 ? addresses : undefined,
    tags: tagList(tags),
    messageClass,
    sizeBytes: sizeOf(size ?? ""),
    test,
  };
}

export function mailOf({ from, to, tags, messageClass, size, test }: Question): Mail {
  const addresses = recipients(to);
  return {
    domain: domainOf(from ?? ""),
    tags: tagList(tags),
    recipientDomains: addresses.length > 0 ? [...new Set(addresses.map(domainOf))] : undefined,
    messageClass: messageClass ?? "transactional",
    sizeBytes: sizeOf(size ?? "") ?? 0,
    test: test ?? false,
  };
}
