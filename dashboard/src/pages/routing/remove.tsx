import { useState } from "react";
import { toast } from "sonner";
import type { RoutingRule } from "waypost";
import { errorText, queries, waypost } from "@/api";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Notice } from "@/ui/page";

interface Props {
  rule: RoutingRule;
  open: boolean;
  onClose(): void;
  onRemoved?(): unknown;
}

/** Asks whether a rule shall be removed. It is opened from a menu, so it stands apart from what opens it. */
export function RemoveRule({ rule, open, onClose, onRemoved }: Props) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const remove = async () => {
    setBusy(true);
    try {
      await waypost.routingRules.delete(rule.id);
      onClose();
      await onRemoved?.();
      await queries.invalidateQueries({ queryKey: ["routing-rules"] });
      toast.success(`${rule.name} was removed`);
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog open={open} onClose={onClose} title={`Remove the rule ${rule.name}?`}>
      <div className="space-y-4">
        <p className="text-text-2">
          Mail that it matched goes to the next rule that matches, or to the oldest active account. Mail that is already accepted keeps its account,
          but loses the rule's fallbacks.
        </p>
        {error !== undefined && <Notice kind="error">{errorText(error)}</Notice>}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="danger" onClick={remove} busy={busy}>
            Remove the rule
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
