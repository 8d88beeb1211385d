/** What can become of a test, in words. */
export const OUTCOMES: readonly (readonly [value: string, label: string])[] = [
  ["delivered", "Delivered"],
  ["bounced", "Accepted, then a hard bounce"],
  ["complained", "Delivered, then reported as spam"],
  ["deferred", "Deferred, then delivered"],
  ["failed", "Refused by the provider"],
  ["suppressed", "As if all recipients were suppressed"],
  ["unknown", "The provider's answer is lost"],
  ["failover", "The first account fails, the next one takes it"],
];
