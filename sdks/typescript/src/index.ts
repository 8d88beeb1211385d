export { Waypost } from "./generated/client.js";
export * from "./generated/errors.js";
export type * as resources from "./generated/resources.js";
export type * from "./generated/types.js";
export { VERSION } from "./generated/version.js";
export * from "./runtime/errors.js";
export type { Logger, RequestOptions, WaypostOptions } from "./runtime/http.js";
export { Page, PagePromise } from "./runtime/pages.js";
export { webhooks, type RawBody, type WebhookHeaders } from "./runtime/webhooks.js";
