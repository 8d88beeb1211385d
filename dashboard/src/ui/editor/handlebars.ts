/** Marks Handlebars tags, whatever the language around them is. */

import { Decoration, type DecorationSet, EditorView, MatchDecorator, ViewPlugin, type ViewUpdate } from "@codemirror/view";

const tags = new MatchDecorator({ regexp: /\{\{\{?[^{}\n]*\}?\}\}/g, decoration: Decoration.mark({ class: "cm-handlebars" }) });

export const handlebars = ViewPlugin.fromClass(
  class {
    decorations: DecorationSet;
    constructor(view: EditorView) {
      this.decorations = tags.createDeco(view);
    }
    update(update: ViewUpdate) {
      this.decorations = tags.updateDeco(update, this.decorations);
    }
  },
  { decorations: (plugin) => plugin.decorations },
);
