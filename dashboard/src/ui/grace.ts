/** How long a replaced secret keeps working, in seconds: what the API takes, in the steps that people want. */
export const GRACE_OPTIONS = [
  ["0", "Not any longer: it ends at once"],
  ["3600", "For one hour"],
  ["86400", "For one day"],
  ["259200", "For three days"],
  ["604800", "For seven days"],
] as const;
