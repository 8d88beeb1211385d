import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { toast } from "sonner";
import type { RoutingRule } from "waypost";
import { errorText, queries, waypost } from "@/api";
import { rulesQuery } from "@/pages/providers/queries";
import { moved, type PriorityChange, priorityChanges } from "./order";

const KEY = ["routing-rules", "order"];

/** Moves rules: what a person sees changes at once, the changes follow one after the other. */
export function useOrder(rules: readonly RoutingRule[]) {
  const [said, say] = useState("");
  const save = useMutation({
    mutationKey: KEY,
    scope: { id: "routing-rules-order" },
    mutationFn: async (changes: readonly PriorityChange[]) => {
      for (const { id, priority } of changes) await waypost.routingRules.update(id, { priority });
    },
    onError: (error) => {
      toast.error(`The order could not be saved: ${errorText(error)}`);
    },
    onSettled: async () => {
      // While a further move is on its way, the answer would show the order before it.
      if (queries.isMutating({ mutationKey: KEY }) === 1) await queries.invalidateQueries({ queryKey: ["routing-rules"] });
    },
  });
  const move = (from: number, to: number) => {
    const rule = rules[from];
    if (!rule || from === to || to < 0 || to >= rules.length) return;
    const ordered = moved(rules, from, to);
    const changes = priorityChanges(ordered, to);
    const priorities = new Map(changes.map((change) => [change.id, change.priority]));
    void queries.cancelQueries({ queryKey: rulesQuery.queryKey });
    queries.setQueryData(
      rulesQuery.queryKey,
      ordered.map((one) => ({ ...one, priority: priorities.get(one.id) ?? one.priority })),
    );
    say(`${rule.name} is now ${to + 1} of ${rules.length}`);
    save.mutate(changes);
  };
  return { move, said };
}
