import { FileUp } from "lucide-react";
import { type DragEvent, useRef, useState } from "react";
import { bytes } from "@/format";
import { Button } from "./button";
import { Field, Textarea } from "./form";

interface TextSourceProps {
  label: string;
  hint: string;
  placeholder: string;
  text: string;
  onText(text: string): void;
  path?: string;
}

/** A text that is pasted, or read from a file that is chosen or dropped. It does not leave the browser before it is sent. */
export function TextSource({ label, hint, placeholder, text, onText, path }: TextSourceProps) {
  const chooser = useRef<HTMLInputElement>(null);
  const [file, setFile] = useState<File>();
  const take = async (chosen: File | undefined) => {
    if (!chosen) return;
    onText(await chosen.text());
    setFile(chosen);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    void take(event.dataTransfer.files[0]);
  };
  return (
    <div onDragOver={(event) => event.preventDefault()} onDrop={drop} className="space-y-2">
      <Field label={label} hint={file ? undefined : hint} {...(path ? { path } : {})}>
        {(control) =>
          file ? (
            <p id={control.id} className="flex flex-wrap items-center justify-between gap-2 rounded-md border border-line bg-sunken px-3 py-2 text-sm">
              <span className="min-w-0 truncate">
                {file.name} <span className="text-text-3">({bytes(file.size)})</span>
              </span>
              <Button
                small
                onClick={() => {
                  setFile(undefined);
                  onText("");
                }}
              >
                Take it out
              </Button>
            </p>
          ) : (
            <Textarea
              {...control}
              rows={8}
              autoFocus
              className="font-mono text-[13px]!"
              spellCheck={false}
              placeholder={placeholder}
              value={text}
              onChange={(event) => onText(event.target.value)}
            />
          )
        }
      </Field>
      {!file && (
        <Button small onClick={() => chooser.current?.click()}>
          <FileUp aria-hidden />
          Choose a file
        </Button>
      )}
      <input
        ref={chooser}
        type="file"
        accept=".csv,.txt,text/csv,text/plain"
        aria-label="File"
        tabIndex={-1}
        className="sr-only"
        onChange={(event) => {
          void take(event.target.files?.[0]);
          // The same file can be chosen again after it was changed.
          event.target.value = "";
        }}
      />
    </div>
  );
}
