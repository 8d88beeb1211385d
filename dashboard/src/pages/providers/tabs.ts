/** The parts of an account's page, by their names in the URL. */
export const TABS = ["overview", "domains", "events", "suppressions", "settings"] as const;
export type AccountTab = (typeof TABS)[number];
