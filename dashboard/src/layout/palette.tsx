import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { AtSign, BookOpen, Hash } from "lucide-react";
import { Dialog } from "radix-ui";
import { useState } from "react";
import { baseUrl } from "@/api";
import { useMay } from "@/session";
import { NAVIGATION } from "./navigation";

const ADDRESS = /^[^\s@]+@[^\s@]+\.[^\s@]+$/;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const ITEM = "flex items-center gap-2.5 rounded-md px-3 py-2 text-sm data-[selected=true]:bg-hover [&_svg]:size-4 [&_svg]:text-text-3";

/** ⌘K: goes to a page, to a message by its id, or to the messages of an address. */
export default function Palette({ onClose }: { onClose(): void }) {
  const [text, setText] = useState("");
  const navigate = useNavigate();
  const may = useMay();
  const go = (to: string, search?: Record<string, string>) => {
    onClose();
    void navigate({ to, search } as never);
  };
  const query = text.trim();
  return (
    <Dialog.Root open onOpenChange={onClose}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed top-[15vh] left-1/2 z-50 w-[calc(100%-2rem)] max-w-xl -translate-x-1/2 overflow-hidden rounded-xl border border-line bg-raised shadow-xl"
        >
          <Dialog.Title className="sr-only">Search</Dialog.Title>
          <Command label="Search" loop>
            <Command.Input
              value={text}
              onValueChange={setText}
              placeholder="A page, an address, a message id …"
              className="h-12 w-full border-b border-line bg-transparent px-4 text-base outline-none placeholder:text-text-3"
            />
            <Command.List className="max-h-80 overflow-y-auto p-2">
              <Command.Empty className="px-3 py-6 text-center text-text-3">Nothing found. An address is found only whole, such as ada@example.com.</Command.Empty>
              {may("METRICS_READ") && ADDRESS.test(query) && (
                <Command.Item value={`messages ${query}`} className={ITEM} onSelect={() => go("/messages", { recipient: query })}>
                  <AtSign aria-hidden />
                  Messages to {query}
                </Command.Item>
              )}
              {may("SETTINGS_WRITE") && ADDRESS.test(query) && (
                <Command.Item value={`suppressions ${query}`} className={ITEM} onSelect={() => go("/suppressions", { email: query })}>
                  <AtSign aria-hidden />
                  Is {query} suppressed?
                </Command.Item>
              )}
              {may("METRICS_READ") && ID.test(query) && (
                <Command.Item value={`message ${query}`} className={ITEM} onSelect={() => go(`/messages/${query}`)}>
                  <Hash aria-hidden />
                  Message {query}
                </Command.Item>
              )}
              {NAVIGATION.flatMap((group) => group.places)
                .filter((place) => !place.permission || may(place.permission))
                .map(({ to, label, icon: Icon, words }) => (
                  <Command.Item key={to} value={`${label} ${words ?? ""}`} className={ITEM} onSelect={() => go(to)}>
                    <Icon aria-hidden />
                    {label}
                  </Command.Item>
                ))}
              <Command.Item
                value="API documentation reference docs"
                className={ITEM}
                onSelect={() => {
                  onClose();
                  window.open(`${baseUrl}/docs`, "_blank", "noopener");
                }}
              >
                <BookOpen aria-hidden />
                API documentation
              </Command.Item>
            </Command.List>
          </Command>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
