import { useMutation, useQueryClient } from "@tanstack/react-query";
import { ShieldCheck } from "lucide-react";
import { useState } from "react";
import { toast } from "sonner";
import { waypost } from "@/api";
import { CodeField } from "@/pages/sign-in/second-factor";
import { sessionQuery, useSession } from "@/session";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, Form, FormActions } from "@/ui/form";
import { Card, Notice } from "@/ui/page";
import { PasswordInput } from "@/ui/password";
import { Enrolment } from "./enrolment";

/** The second factor of the signed-in person. */
export function SecondFactorCard() {
  const { user } = useSession();
  const [doing, setDoing] = useState<"on" | "off">();
  const close = () => setDoing(undefined);
  return (
    <Card
      title={
        <span className="flex items-center gap-2">
          Second factor {user.totpEnabled ? <Badge tone="green" dot>On</Badge> : <Badge>Off</Badge>}
        </span>
      }
      description="A code of an app on your phone, asked for after the password."
    >
      {!user.hasPassword ? (
        <p className="text-text-2">You sign in through your organization's own sign-in: its second factor applies.</p>
      ) : user.totpEnabled ? (
        <div className="flex flex-wrap items-center justify-between gap-3">
          <p className="flex items-center gap-2 text-text-2">
            <ShieldCheck className="size-4 text-green" aria-hidden />
            Your password alone does not sign anybody in.
          </p>
          <Button onClick={() => setDoing("off")}>Turn off …</Button>
        </div>
      ) : (
        <div className="flex flex-wrap items-center justify-between gap-3">
          <p className="min-w-0 flex-1 basis-64 text-text-2">With it, somebody who learns your password still cannot sign in.</p>
          <Button onClick={() => setDoing("on")}>
            Turn on …
          </Button>
        </div>
      )}
      {doing === "on" && <Enrolment onClose={close} />}
      {doing === "off" && <TurnOff onClose={close} />}
    </Card>
  );
}

function TurnOff({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const [recovery, setRecovery] = useState(false);
  const off = useMutation({
    mutationFn: () => waypost.user.disableTotp({ password, code: code.trim() }, { maxRetries: 0 }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: sessionQuery.queryKey });
      toast.success("Second factor turned off");
      onClose();
    },
  });
  return (
    <Dialog open onClose={onClose} title="Turn off the second factor?">
      <Form error={off.error} onSubmit={() => off.mutate()} label="Turn off the second factor">
        <Notice kind="warning">Afterwards your password alone signs in. Your recovery codes stop working.</Notice>
        <Field label="Password" path="password">
          {(control) => (
            <PasswordInput {...control} autoComplete="current-password" autoFocus value={password} onChange={(event) => setPassword(event.target.value)} />
          )}
        </Field>
        <CodeField recovery={recovery} code={code} onChange={setCode} autoFocus={false} />
        <button
          type="button"
          onClick={() => {
            setRecovery(!recovery);
            setCode("");
          }}
          className="text-[13px] text-accent-text hover:underline"
        >
          {recovery ? "Use the authenticator app" : "Use a recovery code"}
        </button>
        <FormActions>
          <Button kind="danger" type="submit" busy={off.isPending} disabled={!password || !code.trim()}>
            Turn off
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </FormActions>
      </Form>
    </Dialog>
  );
}
