import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { toast } from "sonner";
import type { ConnectedProvider, ProviderCredentials } from "waypost";
import { queries, waypost } from "@/api";
import { providerName } from "@/format";
import { Button } from "@/ui/button";
import { Field, Form, FormActions, Input, Submit } from "@/ui/form";
import { Card } from "@/ui/page";
import { CredentialFields } from "../credentials-form";
import { CREDENTIAL_STEPS, Steps } from "../guides";
import { credentialsOf, emptyCredentials, KINDS } from "../kinds";
import type { Type } from "../types";
import { accountChanged, firstWebhookKey } from "../queries";

interface Props {
  type: Type;
  onConnected(account: ConnectedProvider): void;
  onBack(): void;
}

/** What to click at the provider, beside the form that takes what one gets there. */
export function CredentialsStep({ type, onConnected, onBack }: Props) {
  const [name, setName] = useState(KINDS[type].displayName);
  const [values, setValues] = useState(() => emptyCredentials(type));
  const provider = providerName(type);
  const connect = useMutation({
    mutationFn: () =>
      waypost.providers.create({
        providerType: type,
        displayName: name.trim(),
        // The API checks which fields a type needs, and names each mistake at its field.
        credentials: credentialsOf(type, values) as unknown as ProviderCredentials,
      }),
    onSuccess: async (account) => {
      queries.setQueryData(firstWebhookKey(account.id), account.eventWebhook);
      await accountChanged();
      toast.success(`${account.displayName} is connected`);
      onConnected(account);
    },
  });
  return (
    <div className="grid grid-cols-1 items-start gap-5 lg:grid-cols-2">
      <Card title={type === "SMTP" ? "At your mail server" : `At ${provider}`}>
        <Steps steps={CREDENTIAL_STEPS[type]} />
      </Card>
      <Card title="In Waypost" description={`Waypost checks the credentials with ${type === "SMTP" ? "the server" : provider}, and stores them encrypted.`}>
        <Form error={connect.error} onSubmit={() => connect.mutate()} label={`Connect ${provider}`}>
          <Field label="Name" path="displayName" hint="Your name for the account, if you connect several.">
            {(control) => <Input {...control} value={name} onChange={(event) => setName(event.target.value)} />}
          </Field>
          <CredentialFields type={type} values={values} onChange={setValues} />
          <FormActions>
            <Submit busy={connect.isPending}>Check and connect</Submit>
            <Button onClick={onBack}>Another provider</Button>
          </FormActions>
        </Form>
      </Card>
    </div>
  );
}
