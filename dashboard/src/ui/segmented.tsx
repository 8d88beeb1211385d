import { ToggleGroup } from "radix-ui";
import type { ReactNode } from "react";

interface SegmentedProps<T extends string> {
  value: T;
  onChange(value: T): void;
  options: readonly (readonly [value: T, label: ReactNode])[];
  /** What is chosen, for those who do not see it. */
  label: string;
}

/** A choice of a few, all seen at once. */
export function Segmented<T extends string>({ value, onChange, options, label }: SegmentedProps<T>) {
  return (
    <ToggleGroup.Root
      type="single"
      value={value}
      // A click on what is chosen already changes nothing.
      onValueChange={(next) => next && onChange(next as T)}
      aria-label={label}
      className="inline-flex max-w-full overflow-x-auto rounded-md border border-line bg-sunken p-0.5"
    >
      {options.map(([one, text]) => (
        <ToggleGroup.Item
          key={one}
          value={one}
          className="inline-flex h-7 items-center gap-1.5 rounded px-2.5 text-[13px] font-medium whitespace-nowrap text-text-2 hover:text-text data-[state=on]:bg-surface data-[state=on]:text-text data-[state=on]:shadow-(--shadow) [&_svg]:size-3.5"
        >
          {text}
        </ToggleGroup.Item>
      ))}
    </ToggleGroup.Root>
  );
}
