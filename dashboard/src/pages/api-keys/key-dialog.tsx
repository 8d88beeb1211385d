import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { toast } from "sonner";
import type { ApiKey, ApiKeyWithSecret, Permission } from "waypost";
import { waypost } from "@/api";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, Form, FormActions, Input, Select, Submit, Switch, Textarea } from "@/ui/form";
import { EXPIRIES, expiryOf, keysChanged, localTime } from "./key";
import { PermissionPicker } from "./permission-picker";

interface DialogProps {
  /** The key to change; none to make one. */
  apiKey?: ApiKey;
  onClose(): void;
  onCreated?(created: ApiKeyWithSecret): void;
}

export function KeyDialog({ apiKey, onClose, onCreated }: DialogProps) {
  const [name, setName] = useState(apiKey?.name ?? "");
  const [permissions, setPermissions] = useState<ReadonlySet<string>>(new Set(apiKey?.permissions ?? ["SEND"]));
  const [isTest, setTest] = useState(false);
  const [addresses, setAddresses] = useState(apiKey?.allowedIps.join("\n") ?? "");
  const [expiry, setExpiry] = useState<string>(apiKey?.expiresAt ? "own" : "never");
  const [own, setOwn] = useState(localTime(apiKey?.expiresAt ?? null));
  const save = useMutation({
    mutationFn: async () => {
      const wanted = {
        name: name.trim(),
        permissions: [...permissions] as Permission[],
        allowedIps: addresses.split(/[\s,;]+/).filter(Boolean),
      };
      const expiresAt = expiryOf(expiry, own);
      if (!apiKey) return onCreated?.(await waypost.apiKeys.create({ ...wanted, isTest, ...(expiresAt && { expiresAt }) }));
      // A time that was not touched stays as it is, to the second.
      const expiryChange = expiry === "own" && own === localTime(apiKey.expiresAt) ? {} : { expiresAt };
      await waypost.apiKeys.update(apiKey.id, { ...wanted, ...expiryChange });
      toast.success("The key was changed. It takes effect within five seconds");
      onClose();
    },
    onSuccess: keysChanged,
  });
  return (
    <Dialog open onClose={onClose} wide title={apiKey ? `Edit “${apiKey.name}”` : "Make an API key"}>
      <Form error={save.error} onSubmit={() => save.mutate()}>
        <Field label="Name" path="name" hint="Where the key is used, such as “Backend production”.">
          {(control) => <Input {...control} autoFocus={!apiKey} autoComplete="off" value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
        <PermissionPicker chosen={permissions} onChange={setPermissions} />
        {!apiKey && (
          <Switch
            label="Test key"
            hint="Everything that it sends is a test: no provider is called, and nobody gets mail. It begins with wp_test_."
            checked={isTest}
            onChange={setTest}
          />
        )}
        <div className="grid items-start gap-5 sm:grid-cols-2">
          <Expiry expiry={expiry} setExpiry={setExpiry} own={own} setOwn={setOwn} />
          <Field
            label="Allowed addresses"
            path="allowedIps"
            aside="optional"
            hint="IP addresses and networks that the key can be used from, one a line. Empty is anywhere."
          >
            {(control) => (
              <Textarea
                {...control}
                rows={3}
                spellCheck={false}
                className="font-mono text-[13px]!"
                placeholder={"203.0.113.0/24\n2001:db8::1"}
                value={addresses}
                onChange={(event) => setAddresses(event.target.value)}
              />
            )}
          </Field>
        </div>
        <FormActions>
          <Submit busy={save.isPending}>{apiKey ? "Save" : "Make the key"}</Submit>
          <Button onClick={onClose}>Cancel</Button>
        </FormActions>
      </Form>
    </Dialog>
  );
}

interface ExpiryProps {
  expiry: string;
  setExpiry(expiry: string): void;
  own: string;
  setOwn(own: string): void;
}

function Expiry({ expiry, setExpiry, own, setOwn }: ExpiryProps) {
  return (
    <div className="space-y-2">
      <Field label="Expires" path={expiry === "own" ? undefined : "expiresAt"}>
        {(control) => <Select {...control} options={EXPIRIES} value={expiry} onChange={(event) => setExpiry(event.target.value)} />}
      </Field>
      {expiry === "own" && (
        <Field label="At" path="expiresAt">
          {(control) => <Input {...control} type="datetime-local" value={own} onChange={(event) => setOwn(event.target.value)} />}
        </Field>
      )}
    </div>
  );
}
