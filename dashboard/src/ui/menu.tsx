import { clsx } from "clsx";
import { Ellipsis } from "lucide-react";
import { DropdownMenu as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { Button } from "./button";

export interface MenuItem {
  label: ReactNode;
  icon?: ReactNode;
  onSelect(): void;
  danger?: boolean;
  disabled?: boolean;
}

export const menuClass = "z-50 min-w-44 rounded-lg border border-line bg-raised p-1 shadow-lg";
export const menuItemClass =
  "flex cursor-default items-center gap-2 rounded-md px-2.5 py-1.5 text-sm outline-none data-[highlighted]:bg-hover data-[disabled]:opacity-50 [&_svg]:size-4 [&_svg]:text-text-3";

/** Further actions behind three dots, or behind a button of one's own. */
export function Menu({ items, label = "More actions", trigger }: { items: readonly MenuItem[]; label?: string; trigger?: ReactNode }) {
  return (
    <Radix.Root>
      <Radix.Trigger asChild>
        {trigger ?? (
          <Button kind="quiet" aria-label={label} className="size-8! px-0!">
            <Ellipsis />
          </Button>
        )}
      </Radix.Trigger>
      <Radix.Portal>
        <Radix.Content align="end" sideOffset={4} className={menuClass}>
          {items.map((item, at) => (
            <Radix.Item
              key={at}
              disabled={item.disabled}
              onSelect={item.onSelect}
              className={clsx(menuItemClass, item.danger && "text-red [&_svg]:text-red")}
            >
              {item.icon}
              {item.label}
            </Radix.Item>
          ))}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
