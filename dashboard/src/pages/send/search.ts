import type { View } from "@/pages/templates/search";

/** What the URL of the page says: with what it begins, and how the preview is shown. */
export interface SendSearch {
  to?: string | undefined;
  templateId?: string | undefined;
  locale?: string | undefined;
  test?: true | undefined;
  view?: View | undefined;
}
