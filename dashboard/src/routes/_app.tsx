import { createFileRoute, Link, Outlet, redirect } from "@tanstack/react-router";
import { Menu as MenuIcon } from "lucide-react";
import { Dialog } from "radix-ui";
import { lazy, Suspense, useEffect, useState } from "react";
import { isSignedOut, queries } from "@/api";
import { Logo } from "@/layout/logo";
import { useSessionEnd } from "@/layout/session-end";
import { Sidebar } from "@/layout/sidebar";
import { sessionQuery } from "@/session";
import { Button } from "@/ui/button";
import { NotFound, PageError, PageLoading } from "@/ui/page";

const Palette = lazy(() => import("@/layout/palette"));

/** All pages behind the sign-in. */
export const Route = createFileRoute("/_app")({
  beforeLoad: async ({ location }) => {
    try {
      await queries.ensureQueryData(sessionQuery);
    } catch (error) {
      if (isSignedOut(error)) throw redirect({ to: "/sign-in" as string, search: { next: location.href } as never });
      throw error;
    }
  },
  component: Layout,
  errorComponent: ({ error, reset }) => (
    <main>
      <PageError error={error} retry={reset} />
    </main>
  ),
  pendingComponent: () => (
    <main>
      <PageLoading />
    </main>
  ),
  notFoundComponent: NotFound,
});

function Layout() {
  useSessionEnd();
  const [searching, setSearching] = useState(false);
  const [menu, setMenu] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() === "k" && (event.metaKey || event.ctrlKey)) {
        event.preventDefault();
        setSearching((before) => !before);
      }
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
  const search = () => {
    setMenu(false);
    setSearching(true);
  };
  return (
    <div className="min-h-dvh md:pl-60">
      <a
        href="#main"
        className="sr-only focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-50 focus:rounded-md focus:bg-raised focus:px-3 focus:py-2"
      >
        Skip to the content
      </a>
      <aside className="fixed inset-y-0 left-0 hidden w-60 border-r border-line bg-ground md:block">
        <Sidebar onSearch={search} />
      </aside>
      <header className="sticky top-0 z-30 flex h-13 items-center gap-2 border-b border-line bg-ground px-3 md:hidden">
        <Dialog.Root open={menu} onOpenChange={setMenu}>
          <Dialog.Trigger asChild>
            <Button kind="quiet" aria-label="Open the menu" className="size-9! px-0!">
              <MenuIcon />
            </Button>
          </Dialog.Trigger>
          <Dialog.Portal>
            <Dialog.Overlay className="fixed inset-0 z-40 bg-black/40" />
            <Dialog.Content aria-describedby={undefined} className="fixed inset-y-0 left-0 z-50 w-72 border-r border-line bg-ground shadow-xl">
              <Dialog.Title className="sr-only">Menu</Dialog.Title>
              <Sidebar onSearch={search} onNavigate={() => setMenu(false)} />
            </Dialog.Content>
          </Dialog.Portal>
        </Dialog.Root>
        <Link to="/" className="flex items-center gap-2 font-semibold">
          <Logo className="size-6" />
          Waypost
        </Link>
      </header>
      <main id="main" tabIndex={-1} className="outline-none">
        <Outlet />
      </main>
      {searching && (
        <Suspense>
          <Palette onClose={() => setSearching(false)} />
        </Suspense>
      )}
    </div>
  );
}
