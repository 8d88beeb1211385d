import { queries } from "@/api";

export const SUPPRESSIONS = "suppressions";

export const suppressionsChanged = () => queries.invalidateQueries({ queryKey: [SUPPRESSIONS] });
