/** The editor itself. Loaded only where a source is edited: use `<Editor>`. */

import { html } from "@codemirror/lang-html";
import { json } from "@codemirror/lang-json";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, placeholder } from "@codemirror/view";
import { basicSetup } from "codemirror";
import { useEffect, useRef } from "react";
import type { EditorProps, Language } from ".";
import { handlebars } from "./handlebars";
import type { Problem } from "./problems";
import { theme } from "./theme";

const LANGUAGES: Record<Language, Extension> = {
  // MJML is written like HTML, with elements of its own.
  html: [html({ matchClosingTags: true, autoCloseTags: false }), handlebars],
  text: [handlebars, EditorView.lineWrapping],
  json: json(),
};

export default function CodeMirror({ value, onChange, language, label, problems, readOnly, hint, invalid, describedBy }: EditorProps) {
  const parent = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const changed = useRef(onChange);
  changed.current = onChange;
  const settings = useRef(new Compartment());
  useEffect(() => {
    const editor = new EditorView({
      parent: parent.current!,
      state: EditorState.create({
        doc: value,
        extensions: [
          basicSetup,
          theme,
          lintGutter(),
          settings.current.of([]),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) changed.current?.(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
    // The text flows out of the editor; one that comes from outside is put in below.
  }, []);
  useEffect(() => {
    const attributes: Record<string, string> = { "aria-label": label, tabindex: "0" };
    if (invalid) attributes["aria-invalid"] = "true";
    if (describedBy) attributes["aria-describedby"] = describedBy;
    view.current?.dispatch({
      effects: settings.current.reconfigure([
        LANGUAGES[language],
        EditorView.contentAttributes.of(attributes),
        EditorState.readOnly.of(!!readOnly),
        hint ? placeholder(hint) : [],
      ]),
    });
  }, [language, label, readOnly, hint, invalid, describedBy]);
  useEffect(() => {
    const editor = view.current;
    if (!editor || editor.state.doc.toString() === value) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [value]);
  useEffect(() => {
    const editor = view.current;
    if (editor) editor.dispatch(setDiagnostics(editor.state, (problems ?? []).map((problem) => diagnostic(editor.state, problem))));
  }, [problems]);
  return <div ref={parent} className="h-full min-h-0 overflow-hidden" />;
}

/** Marks a problem from its column to the end of the line. */
function diagnostic(state: EditorState, { line, column, message }: Problem) {
  const at = state.doc.line(Math.min(Math.max(line, 1), state.doc.lines));
  const indent = at.text.length - at.text.trimStart().length;
  const from = Math.min(at.from + (column ? column - 1 : indent), at.to);
  return { from, to: Math.max(at.to, from), severity: "error" as const, message };
}
