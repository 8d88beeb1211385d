import { useMutation } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { clsx } from "clsx";
import { BookOpen, Check, ChevronsUpDown, LogOut, Monitor, Moon, Search, Sun, UserRound } from "lucide-react";
import { DropdownMenu } from "radix-ui";
import { useState } from "react";
import { toast } from "sonner";
import { baseUrl, errorText } from "@/api";
import { useMay, useSession, signOut, switchOrganization } from "@/session";
import { setTheme, type Theme, theme } from "@/theme";
import { menuClass, menuItemClass } from "@/ui/menu";
import { Logo } from "./logo";
import { NAVIGATION } from "./navigation";

/** The menu: the organization, the pages that the person's role may see, and the person. */
export function Sidebar({ onSearch, onNavigate }: { onSearch(): void; onNavigate?(): void }) {
  const may = useMay();
  const groups = NAVIGATION.map((group) => ({
    ...group,
    places: group.places.filter((place) => !place.permission || may(place.permission)),
  })).filter((group) => group.places.length > 0);
  return (
    <div className="flex h-full flex-col">
      <div className="px-3 pt-4 pb-2">
        <Organization />
        <button
          type="button"
          onClick={onSearch}
          className="mt-2 flex h-8 w-full items-center gap-2 rounded-md border border-line bg-surface px-2.5 text-[13px] text-text-3 hover:border-line-strong"
        >
          <Search className="size-3.5" aria-hidden />
          Search
          <kbd className="ml-auto rounded border border-line px-1 font-sans text-[11px]">⌘K</kbd>
        </button>
      </div>
      <nav aria-label="Pages" className="flex-1 overflow-y-auto px-3 pb-4">
        {groups.map((group, at) => (
          <div key={group.label ?? at} className="mt-3">
            {group.label && <h2 className="px-2 pb-1 text-xs font-medium text-text-3">{group.label}</h2>}
            <ul className="space-y-0.5">
              {group.places.map(({ to, label, icon: Icon }) => (
                <li key={to}>
                  <Link
                    to={to}
                    onClick={onNavigate}
                    activeOptions={{ exact: to === "/", includeSearch: false }}
                    className="flex h-8 items-center gap-2.5 rounded-md px-2 text-text-2 hover:bg-hover hover:text-text [&_svg]:size-4 [&_svg]:text-text-3"
                    activeProps={{ className: "bg-hover font-medium text-text! [&_svg]:text-accent-text!" }}
                  >
                    <Icon aria-hidden />
                    {label}
                  </Link>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
      <div className="border-t border-line p-3">
        <Person onNavigate={onNavigate} />
      </div>
    </div>
  );
}

function Organization() {
  const { organization, organizations } = useSession();
  const change = useMutation({
    mutationFn: switchOrganization,
    // Nothing of one organization may stay on the page of another: what is shown does not forget what it has read.
    onSuccess: () => window.location.assign("/"),
  });
  const face = (
    <>
      <Logo className="size-7 shrink-0" />
      <span className="min-w-0 flex-1 text-left">
        <span className="block truncate text-sm font-semibold">{organization.name}</span>
      </span>
    </>
  );
  if (organizations.length < 2) return <div className="flex h-10 items-center gap-2.5 px-1.5">{face}</div>;
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger
        aria-label={`Organization: ${organization.name}. Switch`}
        className="flex h-10 w-full items-center gap-2.5 rounded-md px-1.5 hover:bg-hover"
      >
        {face}
        <ChevronsUpDown className="size-4 text-text-3" aria-hidden />
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content align="start" sideOffset={4} className={menuClass}>
          {organizations.map((one) => (
            <DropdownMenu.Item key={one.id} className={menuItemClass} onSelect={() => change.mutate(one.id)}>
              <span className="flex-1">{one.name}</span>
              {one.id === organization.id && <Check aria-label="shown now" />}
            </DropdownMenu.Item>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

const THEMES: readonly (readonly [Theme, string, typeof Sun])[] = [
  ["system", "As the system", Monitor],
  ["light", "Light", Sun],
  ["dark", "Dark", Moon],
];

function Person({ onNavigate }: { onNavigate?(): void }) {
  const { user, role } = useSession();
  const navigate = useNavigate();
  const [chosen, choose] = useState(theme);
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger className="flex w-full items-center gap-2.5 rounded-md px-1.5 py-1 text-left hover:bg-hover">
        <span aria-hidden className="flex size-7 shrink-0 items-center justify-center rounded-full bg-accent-soft text-xs font-semibold text-accent-text">
          {(user.name || user.email).charAt(0).toUpperCase()}
        </span>
        <span className="min-w-0 flex-1 leading-tight">
          <span className="block truncate text-[13px] font-medium">{user.name || user.email}</span>
          <span className="block truncate text-xs text-text-3">
            {role.charAt(0) + role.slice(1).toLowerCase()}
            <span className="sr-only">: your account and appearance</span>
          </span>
        </span>
        <ChevronsUpDown className="size-4 text-text-3" aria-hidden />
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content align="start" side="top" sideOffset={4} className={menuClass}>
          <DropdownMenu.Label className="px-2.5 py-1.5 text-xs text-text-3">{user.email}</DropdownMenu.Label>
          <DropdownMenu.Item
            className={menuItemClass}
            onSelect={() => {
              onNavigate?.();
              void navigate({ to: "/account" as string });
            }}
          >
            <UserRound aria-hidden />
            Your account
          </DropdownMenu.Item>
          <DropdownMenu.Item className={menuItemClass} onSelect={() => window.open(`${baseUrl}/docs`, "_blank", "noopener")}>
            <BookOpen aria-hidden />
            API documentation
          </DropdownMenu.Item>
          <DropdownMenu.Separator className="my-1 h-px bg-line" />
          <DropdownMenu.RadioGroup
            value={chosen}
            onValueChange={(value) => {
              setTheme(value as Theme);
              choose(value as Theme);
            }}
          >
            {THEMES.map(([value, label, Icon]) => (
              <DropdownMenu.RadioItem key={value} value={value} className={clsx(menuItemClass, "pr-8")}>
                <Icon aria-hidden />
                {label}
                <DropdownMenu.ItemIndicator className="absolute right-3">
                  <Check aria-hidden />
                </DropdownMenu.ItemIndicator>
              </DropdownMenu.RadioItem>
            ))}
          </DropdownMenu.RadioGroup>
          <DropdownMenu.Separator className="my-1 h-px bg-line" />
          <DropdownMenu.Item className={menuItemClass} onSelect={() => void signOut().catch((error: unknown) => toast.error(errorText(error)))}>
            <LogOut aria-hidden />
            Sign out
          </DropdownMenu.Item>
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
