/** A source to edit: HTML, MJML, JSON, or text. CodeMirror is fetched when the first one is shown. */

import { clsx } from "clsx";
import { lazy, Suspense } from "react";
import { Skeleton } from "../page";
import type { Problem } from "./problems";

const CodeMirror = lazy(() => import("./code-mirror"));

export type Language = "html" | "json" | "text";

export interface EditorProps {
  value: string;
  onChange?(value: string): void;
  language: Language;
  /** Its name for those who do not see it. */
  label: string;
  /** Marked at their lines. Keep the same array while nothing changes. */
  problems?: readonly Problem[];
  readOnly?: boolean;
  /** Shown while it is empty. */
  hint?: string;
  invalid?: boolean;
  describedBy?: string | undefined;
  /** Its height, such as `h-80`. */
  className?: string;
}

export function Editor({ className = "h-80", ...props }: EditorProps) {
  return (
    <div className={clsx("overflow-hidden rounded-md border", props.invalid ? "border-red-solid" : "border-line", className)}>
      <Suspense fallback={<Skeleton className="h-full w-full" />}>
        <CodeMirror {...props} />
      </Suspense>
    </div>
  );
}
