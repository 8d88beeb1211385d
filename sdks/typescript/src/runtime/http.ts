import { errorClasses } from "../generated/errors.js";
import type { ErrorDetails, Pagination } from "../generated/types.js";
import { ConnectionError, TimeoutError, WaypostError } from "./errors.js";
import { Page, PagePromise } from "./pages.js";
import { environment, webCrypto } from "./platform.js";

const TIMEOUT_MS = 30_000;
const RETRIES = 2;
const BACKOFF_MS = 500;
const BACKOFF_MAX_MS = 8_000;
/** A longer `Retry-After` is left to the caller. */
const RETRY_AFTER_MAX_S = 60;
const TIMER_MAX_MS = 2 ** 31 - 1;

interface Limits {
  /** How long to wait for the answer to an attempt, in milliseconds. The default is 30 seconds. */
  timeout?: number | undefined;
  /** How often to repeat a call that failed and is safe to repeat. The default is 2. */
  maxRetries?: number | undefined;
}

/** Where Waypost is, and how to call it. */
export interface WaypostOptions extends Limits {
  /** The address of Waypost, such as `https://mail.example.com`. The default is the environment variable `WAYPOST_URL`. */
  baseUrl?: string | undefined;
  /** What to use in place of the global `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Where to report each attempt, such as `console`. Keys, addresses and bodies are never reported. */
  logger?: Logger | undefined;
}

/** What reports attempts. */
export interface Logger {
  debug(message: string, fields: Record<string, unknown>): void;
}

/** How to do one call. */
export interface RequestOptions extends Limits {
  /** Makes a call that creates something safe to repeat: the same key is done once. Without it each call has its own. */
  idempotencyKey?: string | undefined;
  /** Ends the call, and the waiting between attempts. The call then throws the signal's `reason`. */
  signal?: AbortSignal | undefined;
  /** Headers to add. */
  headers?: Record<string, string> | undefined;
}

/** An operation, and what to send. */
export interface Call {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  route: string;
  path?: Record<string, string | number>;
  query?: object | undefined;
  body?: unknown;
  /** The media type of a body that is a string. */
  text?: string;
  /** Whether the service takes an idempotency key. */
  idempotent?: true;
  /** Whether a second POST changes nothing more. */
  repeatable?: true;
}

/** Does calls: with retries, timeouts and typed errors. */
export class Http {
  readonly #key: string;
  readonly #options: WaypostOptions;
  readonly #version: string;

  constructor(apiKey: string | undefined, options: WaypostOptions, version: string) {
    const key = apiKey ?? environment("WAYPOST_API_KEY");
    const baseUrl = options.baseUrl ?? environment("WAYPOST_URL");
    if (!key) throw new TypeError("Waypost needs an API key: pass it as the first argument, or set WAYPOST_API_KEY.");
    // Else fetch would refuse the header, with the key in its message.
    if (!/^[\x21-\x7e]+$/.test(key)) throw new TypeError("The API key (WAYPOST_API_KEY) has characters that no key has.");
    if (!baseUrl) throw new TypeError("Waypost needs the address of the service: pass it as baseUrl, or set WAYPOST_URL.");
    if (!/^https?:\/\/[^/?#@]+(\/[^?#]*)?$/.test(baseUrl)) {
      throw new TypeError("The address of Waypost (baseUrl, WAYPOST_URL) must look like https://mail.example.com.");
    }
    this.#key = key;
    this.#options = { ...options, baseUrl: baseUrl.replace(/\/+$/, "") };
    this.#version = version;
  }

  /** The answer's JSON. */
  async json<T>(call: Call, options?: RequestOptions): Promise<T> {
    const { response, text } = await this.#send(call, options, false);
    const body = parse(text);
    if (body === undefined) throw errorOf(response, text);
    return body as T;
  }

  /** The `data` of the answer's JSON. */
  async data<T>(call: Call, options?: RequestOptions): Promise<T> {
    return (await this.json<{ data: T }>(call, options)).data;
  }

  /** The answer as it comes: for files and streams. The timeout ends when it begins. */
  async raw(call: Call, options?: RequestOptions): Promise<Response> {
    return (await this.#send(call, options, true)).response;
  }

  /** A list, by pages. */
  pages<T>(call: Call, options?: RequestOptions): PagePromise<T> {
    const load = async (query: object | undefined): Promise<Page<T>> => {
      const body = await this.json<{ data: T[]; pagination?: Pagination }>({ ...call, query }, options);
      return new Page(body, (cursor) => load({ ...query, page: undefined, cursor }));
    };
    return new PagePromise(() => load(call.query));
  }

  async #send(call: Call, options: RequestOptions = {}, raw: boolean): Promise<{ response: Response; text: string }> {
    const url = this.#options.baseUrl + fill(call.route, call.path) + search(call.query);
    const init = { method: call.method, redirect: "manual", ...(await this.#content(call, options)) } as const;
    const retries = options.maxRetries ?? this.#options.maxRetries ?? RETRIES;
    for (let attempt = 0; ; attempt++) {
      const begun = Date.now();
      const { response, text = "", failed } = await this.#attempt(url, init, options, raw);
      const error = failed ?? (response.ok ? undefined : errorOf(response, text));
      const wait = error && attempt < retries && mayRepeat(error, call) ? delay(error, attempt) : undefined;
      this.#options.logger?.debug(`waypost: ${call.method} ${call.route}`, {
        attempt: attempt + 1,
        durationMs: Date.now() - begun,
        status: response?.status,
        code: error?.code,
        requestId: response?.headers.get("X-Request-Id") ?? undefined,
        retryInMs: wait,
      });
      if (!error) return { response: response!, text };
      if (wait === undefined) throw error;
      await sleep(wait, options.signal);
    }
  }

  /** The headers and the body, which are the same in all attempts: so is the idempotency key. */
  async #content(call: Call, options: RequestOptions): Promise<{ headers: Headers; body?: string }> {
    const headers = new Headers({ "User-Agent": `waypost-typescript/${this.#version}`, ...options.headers });
    headers.set("Authorization", `Bearer ${this.#key}`);
    const key = options.idempotencyKey ?? (call.idempotent && (await webCrypto()).randomUUID());
    if (key !== undefined) headers.set("Idempotency-Key", key);
    if (call.body === undefined) return { headers };
    const text = typeof call.body === "string" ? call.text : undefined;
    headers.set("Content-Type", text ?? "application/json");
    return { headers, body: text ? String(call.body) : JSON.stringify(call.body) };
  }

  async #attempt(url: string, init: RequestInit, { signal, ...options }: RequestOptions, raw: boolean): Promise<Attempt> {
    const timeout = options.timeout ?? this.#options.timeout ?? TIMEOUT_MS;
    const fetch = this.#options.fetch ?? globalThis.fetch;
    const late = new TimeoutError(`Waypost did not answer within ${timeout} ms. See the option timeout.`, { code: "TIMEOUT" });
    const controller = new AbortController();
    const abort = () => controller.abort(signal?.reason);
    signal?.throwIfAborted();
    signal?.addEventListener("abort", abort, { once: true });
    const timer = timeout <= TIMER_MAX_MS ? setTimeout(() => controller.abort(late), timeout) : undefined;
    let streams = false;
    try {
      const response = await fetch(url, { ...init, signal: controller.signal });
      streams = raw && response.ok;
      return streams ? { response } : { response, text: await response.text() };
    } catch (cause) {
      signal?.throwIfAborted();
      const message = `Waypost at ${this.#options.baseUrl} cannot be reached, or broke off: ${reasonOf(cause)}`;
      const failed = controller.signal.aborted ? late : new ConnectionError(message, { code: "CONNECTION_ERROR", cause });
      return { failed };
    } finally {
      clearTimeout(timer);
      // The signal still ends a stream that the caller reads.
      if (!streams) signal?.removeEventListener("abort", abort);
    }
  }
}

/** An attempt ends with an answer, or without one. */
type Attempt =
  | { response: Response; text?: string; failed?: undefined }
  | { response?: undefined; text?: undefined; failed: ConnectionError };

function errorOf({ status, headers }: Response, text: string): WaypostError {
  const body = parse(text) as { error?: { code?: string; message?: string; details?: ErrorDetails } } | null | undefined;
  const { code = "UNEXPECTED_ANSWER", message, details } = body?.error ?? {};
  const location = headers.get("Location");
  const hint = location ? `It leads to ${location}: set baseUrl to that.` : "Is baseUrl right? Is a proxy in between?";
  const number = (name: string) => Number(headers.get(`X-RateLimit-${name}`));
  const Class = (Object.hasOwn(errorClasses, code) && errorClasses[code]) || WaypostError;
  return new Class(message ?? `The answer (status ${status}) is not one of Waypost's. ${hint}`, {
    status,
    code,
    details,
    requestId: headers.get("X-Request-Id") ?? undefined,
    rateLimit: headers.has("X-RateLimit-Limit")
      ? { limit: number("Limit"), remaining: number("Remaining"), reset: number("Reset") }
      : undefined,
    retryAfter: retryAfterOf(headers.get("Retry-After")),
  });
}

/**
 * Whether to repeat a call. What was surely not done is repeated always. After a lost answer, or a fault of the service,
 * nobody knows whether it was done: then only what may be done twice is repeated. These are GET, PUT, DELETE and PATCH,
 * which here lead to the same state however often they are done (a repeated DELETE may answer 404), a POST with an
 * idempotency key that the service knows, and one that changes nothing more the second time.
 */
function mayRepeat({ status, reason }: WaypostError, call: Call): boolean {
  if (status === 408 || status === 429) return true;
  if (status === 409) return reason === "IDEMPOTENCY_IN_PROGRESS";
  const isSafe = call.method !== "POST" || call.idempotent || call.repeatable;
  return (status === undefined || status >= 500) && isSafe === true;
}

/** How long to wait before the next attempt, in milliseconds; undefined if that is too long. */
function delay({ retryAfter }: WaypostError, attempt: number): number | undefined {
  const jitter = Math.random() * Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** attempt);
  if (retryAfter === undefined) return jitter;
  return retryAfter > RETRY_AFTER_MAX_S ? undefined : retryAfter * 1000 + jitter / 4;
}

async function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  let end = () => {};
  const ended = new Promise<void>((resolve) => (end = resolve));
  const timer = setTimeout(end, milliseconds);
  signal?.addEventListener("abort", end);
  await ended;
  clearTimeout(timer);
  signal?.removeEventListener("abort", end);
  signal?.throwIfAborted();
}

/** The path. An empty id would make it the path of another operation. */
function fill(route: string, path: Call["path"] = {}): string {
  return route.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(path[name] ?? "");
    if (/^\.{0,2}$/.test(value)) throw new TypeError(`${name} must be an id, not "${value}".`);
    return encodeURIComponent(value);
  });
}

function search(query: object = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const text = (value: unknown) => (value instanceof Date ? value.toISOString() : String(value));
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, text(value)]))}` : "";
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** `Retry-After` in seconds; it may also be a date. */
function retryAfterOf(value: string | null): number | undefined {
  if (value === null) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}

function reasonOf(cause: unknown): string {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  return inner instanceof Error ? inner.message || inner.name : String(inner);
}
