/**
 * Tables. A short list is a plain table; a long one (`DataTable`) draws only the rows that are seen, so that 10,000 rows
 * scroll without a stall. At 390 px a table turns into cards: the columns marked `main` stay.
 */

import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { clsx } from "clsx";
import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Button } from "./button";

export interface Column<Row> {
  head: ReactNode;
  cell(row: Row): ReactNode;
  /** A CSS grid width: `minmax(0, 2fr)`, `7rem`. */
  width?: string;
  align?: "right";
  /** Hidden on narrow screens. */
  wide?: boolean;
}

interface DataTableProps<Row> {
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  rowKey(row: Row): string;
  label: string;
  /** Opens a row: a click, or Enter on it. A link in a cell is better where there is a page. */
  onOpen?(row: Row): void;
  /** What is shown if there is no row. */
  empty?: ReactNode;
  /** Fetches the next page; undefined at the end of the list. */
  more?: (() => void) | undefined;
  loadingMore?: boolean;
}

const ROW_PX = 45;

export function DataTable<Row>({ rows, columns, rowKey, label, onOpen, empty, more, loadingMore }: DataTableProps<Row>) {
  const body = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => setMargin(body.current?.offsetTop ?? 0), []);
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => ROW_PX,
    overscan: 12,
    scrollMargin: margin,
    getItemKey: (at) => rowKey(rows[at]!),
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (more && !loadingMore && rows.length > 0 && last >= rows.length - 5) more();
  }, [more, loadingMore, last, rows.length]);
  const grid = (narrow: boolean) =>
    columns
      .filter((column) => !(narrow && column.wide))
      .map((column) => column.width ?? "minmax(0, 1fr)")
      .join(" ");
  const cellClass = (column: Column<Row>) =>
    clsx("min-w-0 truncate", column.align === "right" && "text-right tabular", column.wide && "hidden md:block");
  if (rows.length === 0 && empty) return <>{empty}</>;
  return (
    <>
      <div
        role="table"
        aria-label={label}
        aria-rowcount={more ? -1 : rows.length + 1}
        style={{ "--wide": grid(false), "--narrow": grid(true) } as React.CSSProperties}
        className="text-sm"
      >
        <div role="rowgroup">
          <div
            role="row"
            aria-rowindex={1}
            className="grid grid-cols-(--narrow) gap-4 border-b border-line px-4 py-2 text-xs font-medium text-text-3 sm:px-5 md:grid-cols-(--wide)"
          >
            {columns.map((column, at) => (
              <div key={at} role="columnheader" className={cellClass(column)}>
                {column.head}
              </div>
            ))}
          </div>
        </div>
        <div role="rowgroup" ref={body} className="relative" style={{ height: virtual.getTotalSize() }}>
          {items.map((item) => {
            const row = rows[item.index]!;
            return (
              <div
                key={item.key}
                role="row"
                aria-rowindex={item.index + 2}
                data-index={item.index}
                ref={virtual.measureElement}
                tabIndex={onOpen ? 0 : undefined}
                onClick={onOpen && (() => onOpen(row))}
                onKeyDown={onOpen && ((event) => event.key === "Enter" && event.target === event.currentTarget && onOpen(row))}
                style={{ transform: `translateY(${item.start - margin}px)` }}
                className={clsx(
                  "absolute inset-x-0 top-0 grid min-h-11 grid-cols-(--narrow) items-center gap-4 border-b border-line px-4 py-2 sm:px-5 md:grid-cols-(--wide)",
                  onOpen && "cursor-pointer hover:bg-hover focus-visible:outline-offset-[-2px]",
                )}
              >
                {columns.map((column, at) => (
                  <div key={at} role="cell" className={cellClass(column)}>
                    {column.cell(row)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
      {/* Beside the table, not in it: a table holds only rows. */}
      {more && (
        <div className="flex justify-center p-3">
          <Button small onClick={more} busy={loadingMore}>
            Show more
          </Button>
        </div>
      )}
    </>
  );
}

/** A short table: everything is drawn, and it scrolls sideways where it must. */
export function SimpleTable({ head, children, label }: { head: readonly ReactNode[]; children: ReactNode; label: string }) {
  return (
    <div className="relative overflow-x-auto" tabIndex={0} role="region" aria-label={label}>
      <table className="w-full text-left text-sm [&_td]:border-b [&_td]:border-line [&_td]:px-4 [&_td]:py-2.5 sm:[&_td]:px-5 [&_tr:last-child_td]:border-0">
        <thead>
          <tr className="border-b border-line">
            {head.map((cell, at) => (
              <th key={at} scope="col" className="px-4 py-2 text-xs font-medium whitespace-nowrap text-text-3 sm:px-5">
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
