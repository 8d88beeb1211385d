/** Lists of the API, page after page by its cursor, with their loading, error and empty states. */

import { type InfiniteData, infiniteQueryOptions, type QueryKey, useInfiniteQuery, type UseInfiniteQueryResult } from "@tanstack/react-query";
import { type ReactNode, useEffect } from "react";
import type { Page } from "waypost";
import { Empty, LoadError, SkeletonRows } from "./page";
import { Button } from "./button";
import { type Column, DataTable } from "./table";

/** All rows of a short list. */
export async function allOf<Row>(list: AsyncIterable<Row>): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const row of list) rows.push(row);
  return rows;
}

export interface Paged<Row> {
  rows: readonly Row[];
  /** How many rows the whole list has, if the API says so. */
  total: number | undefined;
  loading: boolean;
  error: unknown;
  retry(): void;
  more: (() => void) | undefined;
  loadingMore: boolean;
}

type PagesResult<Row> = UseInfiniteQueryResult<InfiniteData<{ rows: readonly Row[]; total: number | undefined }>>;

interface PagedOptions {
  /** Asks again after so many milliseconds; false for never. */
  refetchInterval?: number | false;
  enabled?: boolean;
}

type Load<Row> = (cursor: string | undefined, signal: AbortSignal) => PromiseLike<Page<Row>>;

/** The query of a list: `load` gets the cursor of the page, undefined for the first. */
export const pagesQuery = <Row,>(key: QueryKey, load: Load<Row>) =>
  infiniteQueryOptions({
    queryKey: key,
    queryFn: async ({ pageParam, signal }) => {
      const page = await load(pageParam, signal);
      return { rows: page.data, total: page.pagination?.total, next: page.pagination?.nextCursor ?? undefined };
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
  });

/** A list as its table wants it. */
export function usePaged<Row>(key: QueryKey, load: Load<Row>, options: PagedOptions = {}): Paged<Row> {
  return pagedOf(useInfiniteQuery({ ...pagesQuery(key, load), ...options }));
}

/** The same of a list that a page asked for by its query. */
export function pagedOf<Row>(query: PagesResult<Row>): Paged<Row> {
  return {
    rows: query.data?.pages.flatMap((page) => page.rows) ?? [],
    total: query.data?.pages[0]?.total,
    loading: query.isPending,
    error: query.isError && !query.data ? query.error : undefined,
    retry: () => void query.refetch(),
    more: query.hasNextPage ? () => void query.fetchNextPage() : undefined,
    loadingMore: query.isFetchingNextPage,
  };
}

interface PagedTableProps<Row> {
  list: Paged<Row>;
  columns: readonly Column<Row>[];
  rowKey(row: Row): string;
  label: string;
  onOpen?(row: Row): void;
  /** What is shown if the list has no row at all. */
  empty: ReactNode;
  /** Set if a filter is on: what is then not found, and how the filters are taken off. */
  filtered?: { what: string; clear(): void } | undefined;
  /** Shows only rows for which this holds; the API has no filter for it. */
  only?(row: Row): boolean;
}

export function PagedTable<Row>({ list, empty, filtered, only, ...table }: PagedTableProps<Row>) {
  const rows = only ? list.rows.filter(only) : list.rows;
  const { more, loadingMore } = list;
  // A page may hold no row that is shown: then the next one is fetched at once.
  const seekOn = rows.length === 0 && more !== undefined && !loadingMore;
  useEffect(() => {
    if (seekOn) more?.();
  }, [seekOn, more]);
  if (list.loading || (rows.length === 0 && more)) return <SkeletonRows />;
  if (list.error !== undefined) return <LoadError error={list.error} retry={list.retry} />;
  const nothing = filtered ? (
    <Empty title={`No ${filtered.what} matches`} action={<Button onClick={filtered.clear}>Clear the filters</Button>}>
      Nothing was found with these filters.
    </Empty>
  ) : (
    empty
  );
  return <DataTable {...table} rows={rows} more={more} loadingMore={loadingMore} empty={nothing} />;
}
