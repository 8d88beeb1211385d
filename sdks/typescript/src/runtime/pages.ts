import type { Pagination } from "../generated/types.js";

/** A page of a list. Iterating over it gives its items and those of all pages after it. */
export class Page<T> implements AsyncIterable<T> {
  /** The items of this page. */
  readonly data: readonly T[];
  /** Where this page is; undefined for a short list, which has one page. */
  readonly pagination: Pagination | undefined;
  readonly #follow: (cursor: string) => Promise<Page<T>>;

  /** @internal */
  constructor(body: { data: T[]; pagination?: Pagination }, follow: (cursor: string) => Promise<Page<T>>) {
    this.data = body.data;
    this.pagination = body.pagination;
    this.#follow = follow;
  }

  /** The page after this one; undefined at the end. Rows that are added to the list meanwhile move nothing. */
  async next(): Promise<Page<T> | undefined> {
    const cursor = this.pagination?.nextCursor;
    const next = cursor ? await this.#follow(cursor) : undefined;
    if (next && next.pagination?.nextCursor === cursor) {
      throw new Error("The service gave the same page twice. Does a proxy store its answers?");
    }
    return next;
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    for (let page: Page<T> | undefined = this; page; page = await page.next()) yield* page.data;
  }
}

/** A list: `await` gives its first page, `for await` all items of all pages. Nothing is sent before one of them. */
export class PagePromise<T> implements PromiseLike<Page<T>>, AsyncIterable<T> {
  readonly #load: () => Promise<Page<T>>;
  #page: Promise<Page<T>> | undefined;

  /** @internal */
  constructor(load: () => Promise<Page<T>>) {
    this.#load = load;
  }

  then: Promise<Page<T>>["then"] = (fulfilled, rejected) => (this.#page ??= this.#load()).then(fulfilled, rejected);
  catch: Promise<Page<T>>["catch"] = (rejected) => this.then(undefined, rejected);

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    yield* await this;
  }
}
