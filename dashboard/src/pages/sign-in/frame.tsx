import { type ReactNode, useEffect } from "react";
import { Logo } from "@/layout/logo";
import { Notice } from "@/ui/page";

interface FrameProps {
  title: string;
  description?: ReactNode;
  children: ReactNode;
  /** Below the card: what to do if one cannot go on. */
  help?: ReactNode;
}

/** A page for somebody who is not signed in. */
export function Frame({ title, description, children, help }: FrameProps) {
  useEffect(() => {
    document.title = `${title} · Waypost`;
  }, [title]);
  return (
    <main className="flex min-h-dvh flex-col items-center px-4 pt-[12vh] pb-10">
      <div className="w-full max-w-sm">
        <div className="mb-6 flex flex-col items-center text-center">
          <Logo className="mb-4 size-10" />
          <h1 className="text-xl font-semibold tracking-tight break-words">{title}</h1>
          {description && <p className="mt-1 max-w-full break-words text-text-2">{description}</p>}
        </div>
        <div className="space-y-4">
          {!window.isSecureContext && <PlainHttp />}
          <div className="rounded-xl border border-line bg-surface p-5 shadow-(--shadow) sm:p-6">{children}</div>
        </div>
        {help && <div className="mt-5 space-y-2 text-center text-[13px] text-text-3">{help}</div>}
      </div>
    </main>
  );
}

/** The session's cookie is only for https; browsers make an exception for localhost. */
export function PlainHttp() {
  return (
    <Notice kind="warning">
      <strong className="font-medium">This address begins with http://.</strong> Your browser takes the cookie of a session only from https:// or from
      localhost. Open Waypost at such an address to sign in.
    </Notice>
  );
}
