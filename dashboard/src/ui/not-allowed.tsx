import { Lock } from "lucide-react";
import { useSession } from "@/session";
import { words } from "@/format";
import { Empty } from "./page";

/** In place of a page that the person's role does not show. */
export function NotAllowed({ what }: { what: string }) {
  const { role, organization } = useSession();
  return (
    <Empty icon={<Lock />} title={`You may not see ${what}`}>
      Your role in {organization.name} is {words(role)}. An owner can give you another one.
    </Empty>
  );
}
