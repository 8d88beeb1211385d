import { type FormEvent, useState } from "react";
import { X } from "lucide-react";
import { Button } from "@/ui/button";
import { Input } from "@/ui/form";
import type { MessageView } from "./message";

interface OneRecipientProps {
  view: MessageView;
  recipient: string | undefined;
  onRecipient(recipient: string | undefined): void;
}

/** Narrows the history to one recipient. Addresses are stored as hashes, so the person types the address. */
export function OneRecipient({ view, recipient, onRecipient }: OneRecipientProps) {
  const [text, setText] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) onRecipient(text.trim());
    setText("");
  };
  if (recipient !== undefined) {
    return (
      <div className="flex min-h-12 flex-wrap items-center justify-between gap-2 border-b border-line px-4 py-2 text-[13px] sm:px-5">
        <span className="min-w-0 break-words text-text-2">
          Only what happened to <span className="font-medium text-text">{view.people.name(view.chosen)}</span>
        </span>
        <Button small onClick={() => onRecipient(undefined)}>
          <X aria-hidden />
          Show all recipients
        </Button>
      </div>
    );
  }
  return (
    <form onSubmit={submit} className="flex flex-wrap items-center gap-2 border-b border-line px-4 py-2 sm:px-5" aria-label="Show one recipient">
      <Input
        type="email"
        value={text}
        onChange={(event) => setText(event.target.value)}
        aria-label="Address of a recipient"
        placeholder="Show one recipient: ada@example.org"
        className="h-8! min-w-0 flex-1 basis-56 text-[13px]!"
      />
      <Button small type="submit">
        Show
      </Button>
    </form>
  );
}
