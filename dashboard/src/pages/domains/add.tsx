import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { toast } from "sonner";
import type { DomainVerification, ProviderAccount } from "waypost";
import { waypost } from "@/api";
import { providerName } from "@/format";
import { accountChanged } from "@/pages/providers/queries";
import { Dialog } from "@/ui/dialog";
import { Field, Form, FormActions, Input, Select, Submit } from "@/ui/form";

interface Props {
  accounts: readonly ProviderAccount[];
  /** The domain, if it is known already. */
  domain?: string;
  onAdded?(added: DomainVerification): void;
}

/** Adds a domain to an account. */
export function AddDomainForm({ accounts, domain: fixed, onAdded }: Props) {
  const [domain, setDomain] = useState(fixed ?? "");
  const [accountId, setAccountId] = useState(accounts[0]?.id ?? "");
  const add = useMutation({
    mutationFn: () => waypost.providers.domains.create(accountId, { domain: domain.trim() }),
    onSuccess: async (added) => {
      await accountChanged();
      setDomain(fixed ?? "");
      toast.success(added.isVerified ? `${added.domain} was added, and is verified` : `${added.domain} was added. Publish its DNS records.`);
      onAdded?.(added);
    },
  });
  return (
    <Form error={add.error} onSubmit={() => add.mutate()} label="Add a domain">
      {fixed === undefined && (
        <Field label="Domain" path="domain" hint="The part after the @ of your senders, such as example.com or mail.example.com.">
          {(control) => (
            <Input
              {...control}
              value={domain}
              onChange={(event) => setDomain(event.target.value)}
              placeholder="mail.example.com"
              spellCheck={false}
              autoCapitalize="none"
            />
          )}
        </Field>
      )}
      {accounts.length > 1 && (
        <Field label="Account" hint="Each account that sends for the domain needs it, with records of its own.">
          {(control) => (
            <Select
              {...control}
              value={accountId}
              onChange={(event) => setAccountId(event.target.value)}
              options={accounts.map((account) => [account.id, `${account.displayName} (${providerName(account.providerType)})`])}
            />
          )}
        </Field>
      )}
      <FormActions>
        <Submit busy={add.isPending}>Add the domain</Submit>
      </FormActions>
    </Form>
  );
}

interface DialogProps extends Props {
  open: boolean;
  onClose(): void;
}

export function AddDomainDialog({ open, onClose, onAdded, ...form }: DialogProps) {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={form.domain ? `Add ${form.domain} to another account` : "Add a domain"}
      description="Waypost adds it at the provider, and shows the DNS records to publish."
    >
      <AddDomainForm
        {...form}
        onAdded={(added) => {
          onClose();
          onAdded?.(added);
        }}
      />
    </Dialog>
  );
}
