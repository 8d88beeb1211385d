import { html } from "@codemirror/lang-html";
import { json } from "@codemirror/lang-json";
import { unifiedMergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import type { Language } from "@/ui/editor";
import { theme } from "@/ui/editor/theme";

interface DiffViewProps {
  before: string;
  after: string;
  language: Language;
  label: string;
}

/** Two texts in one: what went is red, what came is green, what is the same is folded. */
export function DiffView({ before, after, language, label }: DiffViewProps) {
  const parent = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const view = new EditorView({
      parent: parent.current!,
      state: EditorState.create({
        doc: after,
        extensions: [
          lineNumbers(),
          theme,
          EditorView.lineWrapping,
          language === "html" ? html() : language === "json" ? json() : [],
          EditorState.readOnly.of(true),
          EditorView.editable.of(false),
          EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
          unifiedMergeView({ original: before, mergeControls: false, gutter: true, collapseUnchanged: { margin: 3, minSize: 6 } }),
        ],
      }),
    });
    return () => view.destroy();
  }, [before, after, language, label]);
  return <div ref={parent} className="max-h-[36rem] overflow-auto rounded-md border border-line" />;
}
