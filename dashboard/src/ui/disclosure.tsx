import { ChevronRight } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";

interface DisclosureProps {
  title: ReactNode;
  /** What is set in it, shown while it is folded. */
  summary?: ReactNode;
  /** Opens it each time that this becomes another thing, for instance an error with an issue in it. */
  open?: unknown;
  children: ReactNode;
}

/** Less common fields, folded until they are wanted. */
export function Disclosure({ title, summary, open, children }: DisclosureProps) {
  const [shown, show] = useState(!!open);
  useEffect(() => {
    if (open) show(true);
  }, [open]);
  return (
    <details open={shown} onToggle={(event) => show(event.currentTarget.open)} className="group/disclosure">
      <summary className="-mx-1 flex list-none items-center gap-2 rounded-md px-1 py-1 text-sm font-medium hover:text-accent-text [&::-webkit-details-marker]:hidden">
        <ChevronRight className="size-4 shrink-0 text-text-3 transition-transform group-open/disclosure:rotate-90" aria-hidden />
        <span className="shrink-0">{title}</span>
        {summary && !shown && <span className="min-w-0 truncate text-[13px] font-normal text-text-3">{summary}</span>}
      </summary>
      <div className="space-y-5 pt-4 pb-1 pl-1 sm:pl-6">{children}</div>
    </details>
  );
}
