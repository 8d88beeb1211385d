import { useQuery } from "@tanstack/react-query";
import { KeyRound, Plus } from "lucide-react";
import { useState } from "react";
import type { ApiKey, ApiKeyWithSecret } from "waypost";
import { waypost } from "@/api";
import { Button } from "@/ui/button";
import { Checkbox } from "@/ui/form";
import { Card, Empty, Page } from "@/ui/page";
import { usePaged } from "@/ui/paged";
import { KEYS } from "./key";
import { KeyDialog } from "./key-dialog";
import { RotateDialog } from "./rotate-dialog";
import { SecretDialog } from "./secret-dialog";
import { KeyTable } from "./table";

export interface KeySearch {
  open?: "add" | undefined;
  /** The key that is changed. */
  edit?: string | undefined;
  rotate?: string | undefined;
  /** Revoked keys too. */
  revoked?: boolean | undefined;
}

interface PageProps {
  search: KeySearch;
  change(change: KeySearch): void;
}

export function ApiKeysPage({ search, change }: PageProps) {
  const list = usePaged([KEYS], (cursor) => waypost.apiKeys.list({ limit: 100, ...(cursor && { cursor }) }));
  const [created, setCreated] = useState<ApiKeyWithSecret>();
  const add = () => change({ open: "add" });
  return (
    <Page
      title="API keys"
      description="Programs sign in with a key. Give each its own, with no more permissions than it needs."
      actions={
        <Button kind="primary" onClick={add}>
          <Plus aria-hidden />
          Make a key
        </Button>
      }
    >
      <Card flush>
        <KeyTable
          list={list}
          showRevoked={search.revoked ?? false}
          onEdit={(key) => change({ edit: key.id })}
          onRotate={(key) => change({ rotate: key.id })}
          empty={
            <Empty icon={<KeyRound />} title="No API key" action={<Button onClick={add}>Make a key</Button>}>
              An application needs a key to send mail through Waypost.
            </Empty>
          }
        />
      </Card>
      <div className="mt-4">
        <Checkbox label="Show revoked keys" checked={search.revoked ?? false} onChange={(on) => change({ revoked: on || undefined })} />
      </div>
      {search.open === "add" && !created && <KeyDialog onClose={() => change({ open: undefined })} onCreated={setCreated} />}
      {created && (
        <SecretDialog
          title="The key was made"
          created={created}
          onClose={() => {
            setCreated(undefined);
            change({ open: undefined });
          }}
        />
      )}
      {search.edit && (
        <WithKey id={search.edit} keys={list.rows}>
          {(key) => <KeyDialog apiKey={key} onClose={() => change({ edit: undefined })} />}
        </WithKey>
      )}
      {search.rotate && (
        <WithKey id={search.rotate} keys={list.rows}>
          {(key) => <RotateDialog apiKey={key} onClose={() => change({ rotate: undefined })} />}
        </WithKey>
      )}
    </Page>
  );
}

interface WithKeyProps {
  id: string;
  keys: readonly ApiKey[];
  children(key: ApiKey): React.ReactNode;
}

/** The key of the URL: out of the list, or asked for if the list does not hold it yet. */
function WithKey({ id, keys, children }: WithKeyProps) {
  const listed = keys.find((key) => key.id === id);
  const { data } = useQuery({ queryKey: [KEYS, "one", id], queryFn: () => waypost.apiKeys.get(id), enabled: !listed });
  const key = listed ?? data;
  return key && !key.revokedAt ? children(key) : null;
}
