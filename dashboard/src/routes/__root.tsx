import { createRootRoute, Outlet } from "@tanstack/react-router";
import type { CSSProperties } from "react";
import { Toaster } from "sonner";
import { NotFound } from "@/ui/page";

/** The dashboard's own colours, which follow the theme that was chosen. */
const TOASTS = { "--normal-bg": "var(--raised)", "--normal-text": "var(--text)", "--normal-border": "var(--line)" } as CSSProperties;

export const Route = createRootRoute({
  component: () => (
    <>
      <Outlet />
      <Toaster position="bottom-right" style={TOASTS} closeButton />
    </>
  ),
  notFoundComponent: () => (
    <main>
      <NotFound />
    </main>
  ),
});
