/** What the URL of a template's page says. */

export const TABS = ["edit", "versions", "uses", "details"] as const;
export const VIEWS = ["desktop", "phone", "dark", "text"] as const;
export const PANES = ["source", "text", "sample", "schema"] as const;

export type View = (typeof VIEWS)[number];
export type Pane = (typeof PANES)[number];

export interface TemplateSearch {
  tab?: (typeof TABS)[number] | undefined;
  /** The language that is edited; none is the default. */
  locale?: string | undefined;
  /** The version that the editor begins with, in place of the current one. */
  version?: string | undefined;
  /** What is edited beside the preview. */
  pane?: Pane | undefined;
  view?: View | undefined;
  /** The version that is looked at. */
  show?: string | undefined;
  /** The versions that are compared. */
  from?: string | undefined;
  to?: string | undefined;
}

/** What the URL of the list says. */
export interface TemplatesSearch {
  q?: string | undefined;
  type?: "TEMPLATE" | "LAYOUT" | "PARTIAL" | undefined;
  tag?: string | undefined;
  new?: true | undefined;
}
