import { Button } from "@/ui/button";
import { exactTime } from "@/format";
import { Notice } from "@/ui/page";
import { meaning, type SuppressionRow } from "./meaning";

interface AnswerProps {
  email: string;
  rows: readonly SuppressionRow[];
  groupNames: ReadonlyMap<string, string>;
  onAdd(): void;
}

/** The answer to "is this address suppressed?", in a sentence for each suppression. */
export function Answer({ email, rows, groupNames, onAdd }: AnswerProps) {
  if (rows.length === 0) {
    return (
      <Notice
        kind="success"
        action={
          <Button small onClick={onAdd}>
            Suppress it
          </Button>
        }
      >
        <strong className="font-semibold">{email}</strong> is not suppressed. Messages to it are sent.
      </Notice>
    );
  }
  return (
    <Notice kind="warning">
      <strong className="font-semibold">{email}</strong> is suppressed.
      <ul className="mt-0.5">
        {rows.map((row) => (
          <li key={row.id}>
            {row.unsubscribeGroupId
              ? `It gets no messages of the group “${groupNames.get(row.unsubscribeGroupId) ?? "unknown"}”: `
              : "It gets no messages at all: "}
            {meaning(row.source).why} ({exactTime(row.createdAt)}).
          </li>
        ))}
      </ul>
    </Notice>
  );
}
