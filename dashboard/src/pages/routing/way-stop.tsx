import { clsx } from "clsx";
import type { ReactNode } from "react";
import type { ProviderAccount } from "waypost";
import { circuitState, type Health } from "@/pages/providers/health";

const TONES = {
  plain: "bg-sunken text-text-2",
  good: "bg-green-soft text-green",
  bad: "bg-red-soft text-red",
  skipped: "bg-sunken text-text-3",
};

interface StopProps {
  icon: ReactNode;
  tone: keyof typeof TONES;
  title: ReactNode;
  aside?: string;
  children: ReactNode;
}

/** One stop on the way, joined to the next by a line. */
export function Stop({ icon, tone, title, aside, children }: StopProps) {
  return (
    <li className="group relative flex gap-3 px-4 py-3 sm:px-5">
      <span
        aria-hidden
        className="absolute top-10 bottom-[-0.75rem] left-[calc(1rem+0.8125rem)] w-px bg-line group-last:hidden sm:left-[calc(1.25rem+0.8125rem)]"
      />
      <span aria-hidden className={clsx("relative flex size-[1.625rem] shrink-0 items-center justify-center rounded-full [&_svg]:size-3.5", TONES[tone])}>
        {icon}
      </span>
      <div className="min-w-0 flex-1">
        <div className="flex flex-wrap items-center justify-between gap-x-3">
          <span className={clsx("min-w-0 font-medium break-words", tone === "skipped" && "text-text-2")}>{title}</span>
          {aside && <span className="text-xs text-text-3">{aside}</span>}
        </div>
        <p className="mt-0.5 text-[13px] break-words text-text-2">{children}</p>
      </div>
    </li>
  );
}

/** Says if calls to an account are stopped just now, unless the text beside it says why already. */
export function CallsNow({ account, health }: { account: ProviderAccount | undefined; health: Health | undefined }) {
  const circuit = health && circuitState(health);
  if (!account?.isActive || account.sendingPausedReason !== null || !circuit || circuit.tone === "green") return null;
  return (
    <span className="mt-0.5 block text-amber">
      {circuit.word} now. {circuit.text}
    </span>
  );
}
