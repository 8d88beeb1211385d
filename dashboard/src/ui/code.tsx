import { clsx } from "clsx";
import { CopyButton } from "./copy";
import { Tabs } from "./tabs";

/** A text to read or to copy: a body, a command, a program. */
export function Code({ text, className, wrap }: { text: string; className?: string; wrap?: boolean }) {
  return (
    <div className="group relative">
      <pre
        tabIndex={0}
        className={clsx(
          "max-h-96 overflow-auto rounded-md border border-line bg-sunken p-3 pr-12 font-mono text-[13px] leading-relaxed",
          wrap && "break-words whitespace-pre-wrap",
          className,
        )}
      >
        {text}
      </pre>
      <div className="absolute top-1.5 right-1.5">
        <CopyButton text={text} />
      </div>
    </div>
  );
}

/** The same call as a command and as a program. */
export function CodeTabs({ samples }: { samples: readonly (readonly [label: string, text: string])[] }) {
  return <Tabs tabs={samples.map(([label, text]) => ({ value: label, label, content: <Code text={text} /> }))} />;
}
