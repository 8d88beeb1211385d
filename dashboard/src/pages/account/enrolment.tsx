import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { toast } from "sonner";
import type { TotpEnrolment } from "waypost";
import { waypost } from "@/api";
import { CodeField } from "@/pages/sign-in/second-factor";
import { sessionQuery, useSession } from "@/session";
import { Button } from "@/ui/button";
import { CopyButton, Copyable } from "@/ui/copy";
import { Dialog } from "@/ui/dialog";
import { Field, Form, FormActions, Submit } from "@/ui/form";
import { Notice, Skeleton } from "@/ui/page";
import { PasswordInput } from "@/ui/password";

const QrCode = lazy(() => import("./qr"));

/** Turns the second factor on: the password, the secret, a first code, and the recovery codes. */
export function Enrolment({ onClose }: { onClose(): void }) {
  const [secret, setSecret] = useState<TotpEnrolment>();
  const [codes, setCodes] = useState<readonly string[]>();
  const title = codes ? "Store your recovery codes" : "Turn on the second factor";
  return (
    <Dialog open onClose={onClose} title={title} modal={codes !== undefined}>
      {codes ? <RecoveryCodes codes={codes} onClose={onClose} /> : secret ? <Confirmation secret={secret} onDone={setCodes} onClose={onClose} /> : <Begin onDone={setSecret} onClose={onClose} />}
    </Dialog>
  );
}

function Begin({ onDone, onClose }: { onDone(secret: TotpEnrolment): void; onClose(): void }) {
  const [password, setPassword] = useState("");
  const start = useMutation({ mutationFn: () => waypost.user.startTotp({ password }, { maxRetries: 0 }), onSuccess: onDone });
  return (
    <Form error={start.error} onSubmit={() => start.mutate()} label="Your password">
      <p className="text-text-2">
        You need an app that makes codes by the clock, such as Google Authenticator, Microsoft Authenticator, Aegis, or a password manager.
      </p>
      <Field label="Password" path="password" hint="So that nobody does this at your open computer.">
        {(control) => (
          <PasswordInput {...control} autoFocus autoComplete="current-password" value={password} onChange={(event) => setPassword(event.target.value)} />
        )}
      </Field>
      <FormActions>
        <Submit busy={start.isPending} disabled={!password}>
          Continue
        </Submit>
        <Button onClick={onClose}>Cancel</Button>
      </FormActions>
    </Form>
  );
}

interface ConfirmationProps {
  secret: TotpEnrolment;
  onDone(codes: readonly string[]): void;
  onClose(): void;
}

function Confirmation({ secret, onDone, onClose }: ConfirmationProps) {
  const client = useQueryClient();
  const [code, setCode] = useState("");
  const confirm = useMutation({
    mutationFn: () => waypost.user.confirmTotp({ code: code.trim() }, { maxRetries: 0 }),
    onSuccess: ({ recoveryCodes }) => {
      onDone(recoveryCodes);
      void client.invalidateQueries({ queryKey: sessionQuery.queryKey });
    },
  });
  return (
    <Form error={confirm.error} onSubmit={() => confirm.mutate()} label="The secret and a first code">
      <p className="text-text-2">Scan this with the app, then enter the code that it shows.</p>
      <div className="flex justify-center">
        <Suspense fallback={<Skeleton className="size-44" />}>
          <QrCode text={secret.uri} label="QR code of the secret, for the app on your phone" />
        </Suspense>
      </div>
      <div className="text-center text-[13px] text-text-2">
        You cannot scan it? Type this secret into the app:
        <div>
          <Copyable text={secret.secret} label="Copy the secret" />
        </div>
      </div>
      <CodeField recovery={false} code={code} onChange={setCode} />
      <FormActions>
        <Submit busy={confirm.isPending} disabled={!code.trim()}>
          Turn on
        </Submit>
        <Button onClick={onClose}>Cancel</Button>
      </FormActions>
    </Form>
  );
}

function RecoveryCodes({ codes, onClose }: { codes: readonly string[]; onClose(): void }) {
  const { user } = useSession();
  const text = codes.join("\n");
  const download = () => {
    const url = URL.createObjectURL(new Blob([`Recovery codes of ${user.email} for Waypost. Each works once.\n\n${text}\n`], { type: "text/plain" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = "waypost-recovery-codes.txt";
    link.click();
    URL.revokeObjectURL(url);
  };
  const done = () => {
    toast.success("Second factor turned on");
    onClose();
  };
  return (
    <div className="space-y-4">
      <Notice kind="warning">Each of these codes replaces the app once, if you lose your phone. They cannot be shown again.</Notice>
      <div className="relative rounded-md border border-line bg-sunken p-4 pr-12">
        <ul className="grid gap-x-6 gap-y-1 font-mono text-[13px] sm:grid-cols-2" aria-label="Recovery codes">
          {codes.map((code) => (
            <li key={code}>{code}</li>
          ))}
        </ul>
        <div className="absolute top-1.5 right-1.5">
          <CopyButton text={text} label="Copy the recovery codes" />
        </div>
      </div>
      <div className="flex flex-wrap justify-between gap-2">
        <Button onClick={download}>
          <Download aria-hidden />
          Download
        </Button>
        <Button kind="primary" onClick={done}>
          I have stored them
        </Button>
      </div>
    </div>
  );
}
