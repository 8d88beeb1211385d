/** A few numbers side by side, each with its name. */
export function Figures({ figures }: { figures: readonly (readonly [name: string, value: string, hint?: string])[] }) {
  return (
    <dl className="grid grid-cols-3 divide-x divide-line rounded-md border border-line">
      {figures.map(([name, value, hint]) => (
        <div key={name} className="min-w-0 px-3 py-2.5 sm:px-4">
          <dt className="text-[13px] text-text-3">{name}</dt>
          <dd>
            <span className="tabular block text-lg font-semibold">{value}</span>
            {hint && <span className="block text-xs text-text-3">{hint}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}
