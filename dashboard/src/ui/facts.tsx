import type { ReactNode } from "react";

/** Names and values of one thing, in two columns. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ReactNode] | false | null | undefined)[] }) {
  return (
    <dl className="grid grid-cols-1 gap-x-6 gap-y-1 sm:grid-cols-[minmax(7rem,max-content)_1fr] sm:items-baseline sm:gap-y-2.5">
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact[0]} className="contents">
              <dt className="text-[13px] text-text-3 sm:pt-px">{fact[0]}</dt>
              <dd className="mb-2 min-w-0 break-words sm:mb-0">{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
