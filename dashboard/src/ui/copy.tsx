import { Check, Copy } from "lucide-react";
import { useState } from "react";
import { IconButton } from "./button";
import { Notice } from "./page";

/** Copies a text, and says that it did. */
export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return <IconButton label={done ? "Copied" : label} icon={done ? <Check className="text-green" /> : <Copy />} onClick={copy} />;
}

/** A text in one line with a button that copies it: an id, a URL, a DNS value. */
export function Copyable({ text, label }: { text: string; label?: string }) {
  return (
    <span className="inline-flex max-w-full items-center gap-1">
      <code className="min-w-0 truncate font-mono text-[13px]" title={text}>
        {text}
      </code>
      <CopyButton text={text} label={label} />
    </span>
  );
}

/** A secret that is shown only now. */
export function SecretOnce({ secret, what }: { secret: string; what: string }) {
  return (
    <div className="space-y-3">
      <Notice kind="warning">Copy {what} now. It cannot be shown again.</Notice>
      <div className="flex items-center gap-2 rounded-md border border-line bg-sunken py-1.5 pr-1.5 pl-3">
        <code className="min-w-0 flex-1 font-mono text-[13px] break-all" data-testid="secret">
          {secret}
        </code>
        <CopyButton text={secret} label={`Copy ${what}`} />
      </div>
    </div>
  );
}
