import { clsx } from "clsx";
import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import { type ReactNode, useState } from "react";
import { errorText } from "@/api";
import { Button } from "./button";
import { Notice } from "./page";

interface DialogProps {
  open: boolean;
  onClose(): void;
  title: ReactNode;
  description?: ReactNode;
  children: ReactNode;
  wide?: boolean;
  /** A secret is shown: only its button closes the dialog, not a click beside it. */
  modal?: boolean;
}

export function Dialog({ open, onClose, title, description, children, wide, modal }: DialogProps) {
  return (
    <Radix.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Radix.Content
          onInteractOutside={(event) => modal && event.preventDefault()}
          onEscapeKeyDown={(event) => modal && event.preventDefault()}
          // Not the first button, whose tooltip would open, but the dialog itself; a field with autoFocus keeps the focus.
          onOpenAutoFocus={(event) => {
            event.preventDefault();
            (event.currentTarget as HTMLElement).focus();
          }}
          {...(description ? {} : { "aria-describedby": undefined })}
          className={clsx(
            "fixed top-1/2 left-1/2 z-50 max-h-[90dvh] w-[calc(100%-2rem)] -translate-x-1/2 -translate-y-1/2 overflow-y-auto rounded-xl border border-line bg-raised shadow-xl outline-none",
            wide ? "max-w-3xl" : "max-w-lg",
          )}
        >
          <div className="flex items-start justify-between gap-4 px-5 pt-5">
            <div>
              <Radix.Title className="text-base font-semibold">{title}</Radix.Title>
              {description && <Radix.Description className="mt-1 text-sm text-text-2">{description}</Radix.Description>}
            </div>
            {!modal && (
              <Radix.Close asChild>
                <Button kind="quiet" aria-label="Close" className="-mt-1.5 -mr-2 size-8! px-0!">
                  <X />
                </Button>
              </Radix.Close>
            )}
          </div>
          <div className="p-5">{children}</div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

interface ConfirmProps {
  /** The button that opens the question. */
  trigger(open: () => void): ReactNode;
  title: string;
  children: ReactNode;
  /** The words of the button that does it, such as "Revoke the key". */
  action: string;
  run(): Promise<unknown>;
  danger?: boolean;
}

/** Asks before something is done that cannot be taken back. */
export function Confirm({ trigger, title, children, action, run, danger = true }: ConfirmProps) {
  const [open, setOpen] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const close = () => {
    setOpen(false);
    setError(undefined);
  };
  const confirm = async () => {
    setBusy(true);
    try {
      await run();
      close();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      {trigger(() => setOpen(true))}
      <Dialog open={open} onClose={close} title={title}>
        <div className="space-y-4">
          <div className="text-text-2">{children}</div>
          {error !== undefined && <Notice kind="error">{errorText(error)}</Notice>}
          <div className="flex justify-end gap-2">
            <Button onClick={close}>Cancel</Button>
            <Button kind={danger ? "danger" : "primary"} onClick={confirm} busy={busy}>
              {action}
            </Button>
          </div>
        </div>
      </Dialog>
    </>
  );
}
