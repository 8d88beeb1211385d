import { Check, Minus } from "lucide-react";
import { ABILITIES, ROLE_NAMES, ROLES } from "@/roles";
import { Card } from "@/ui/page";
import { SimpleTable } from "@/ui/table";

/** What each role may do. */
export function Abilities() {
  return (
    <Card title="What each role may do" flush>
      <SimpleTable label="What each role may do" head={["A member may", ...ROLE_NAMES.map((name) => ROLES[name].label)]}>
        {ABILITIES.map(({ label, permission, roles }) => (
          <tr key={permission}>
            <td className="min-w-56">{label}</td>
            {ROLE_NAMES.map((name) => (
              <td key={name}>
                {roles.includes(name) ? (
                  <Check className="size-4 text-green" role="img" aria-label="Yes" />
                ) : (
                  <Minus className="size-4 text-text-3" role="img" aria-label="No" />
                )}
              </td>
            ))}
          </tr>
        ))}
      </SimpleTable>
    </Card>
  );
}
