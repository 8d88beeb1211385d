import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { WaypostError } from "waypost";
import { errorText, waypost } from "@/api";
import { count, providerName } from "@/format";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Figures } from "@/ui/figures";
import { Field, Form, FormActions, Select, Submit } from "@/ui/form";
import { LoadError, Notice, SkeletonRows } from "@/ui/page";
import { allOf } from "@/ui/paged";
import { suppressionsChanged } from "./queries";

interface Progress {
  imported: number;
  alreadyThere: number;
  unusable: number;
  /** Where the next request continues; null at the end of the lists. */
  cursor: string | null;
}

const numberIn = (details: Record<string, unknown>, name: string): number => (typeof details[name] === "number" ? details[name] : 0);

const sum = (before: Progress | undefined, next: Progress): Progress => ({
  imported: (before?.imported ?? 0) + next.imported,
  alreadyThere: (before?.alreadyThere ?? 0) + next.alreadyThere,
  unusable: (before?.unusable ?? 0) + next.unusable,
  cursor: next.cursor,
});

/** Imports the lists that a provider keeps: bounces, complaints, unsubscribes. */
export function ProviderDialog({ account: given, onClose }: { account?: string; onClose(): void }) {
  const [account, setAccount] = useState(given ?? "");
  const [progress, setProgress] = useState<Progress>();
  const accounts = useQuery({
    queryKey: ["providers", "all"],
    queryFn: async () => (await allOf(waypost.providers.list())).filter((one) => one.providerType !== "SMTP"),
  });
  const chosen = account || accounts.data?.[0]?.id || "";
  const run = useMutation({
    mutationFn: async () => {
      let cursor = progress?.cursor ?? undefined;
      try {
        do {
          const { nextCursor, ...counts } = await waypost.providers.suppressions.import(chosen, cursor ? { cursor } : {});
          cursor = nextCursor ?? undefined;
          setProgress((before) => sum(before, { ...counts, cursor: nextCursor }));
        } while (cursor);
      } catch (error) {
        // The error says what was imported until the provider failed, and where to continue.
        const details = error instanceof WaypostError ? (error.details as Record<string, unknown> | undefined) : undefined;
        if (details && typeof details.nextCursor === "string") {
          const imported = numberIn(details, "imported");
          const next = { imported, alreadyThere: numberIn(details, "alreadyThere"), unusable: numberIn(details, "unusable") };
          setProgress((before) => sum(before, { ...next, cursor: String(details.nextCursor) }));
        }
        throw error;
      }
    },
    onSettled: suppressionsChanged,
  });
  const options = (accounts.data ?? []).map((one) => [one.id, `${one.displayName} (${providerName(one.providerType)})`] as const);
  return (
    <Dialog
      open
      onClose={onClose}
      title="Import from a provider account"
      description="Takes over the addresses in the provider's own lists of bounces, complaints and unsubscribes. They count for all messages."
    >
      {accounts.isPending ? (
        <SkeletonRows rows={2} />
      ) : accounts.isError ? (
        <LoadError error={accounts.error} retry={() => void accounts.refetch()} />
      ) : options.length === 0 ? (
        <Notice>There is no provider account that keeps such lists. SMTP accounts have none.</Notice>
      ) : run.isSuccess && progress ? (
        <div className="space-y-4">
          <Notice kind="success">All lists of the account were read.</Notice>
          <Counts progress={progress} />
          <Button kind="primary" onClick={onClose}>
            Done
          </Button>
        </div>
      ) : (
        <Form error={progress ? undefined : run.error} onSubmit={() => run.mutate()}>
          <Field label="Provider account" path="id" hint="The account's API key must be allowed to read its lists.">
            {(control) => (
              <Select {...control} options={options} value={chosen} disabled={!!progress} onChange={(event) => setAccount(event.target.value)} />
            )}
          </Field>
          {progress && <Counts progress={progress} />}
          {progress && run.error ? <Notice kind="error">{errorText(run.error)} You can continue where it stopped.</Notice> : null}
          <FormActions>
            <Submit busy={run.isPending}>{progress?.cursor ? "Continue" : "Import"}</Submit>
          </FormActions>
        </Form>
      )}
    </Dialog>
  );
}

function Counts({ progress }: { progress: Progress }) {
  return (
    <div aria-live="polite">
      <Figures
        figures={[
          ["Added", count(progress.imported)],
          ["Skipped", count(progress.alreadyThere), "suppressed before"],
          ["Not usable", count(progress.unusable), "no address, or for some messages only"],
        ]}
      />
    </div>
  );
}
