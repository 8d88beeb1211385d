import { Paperclip, X } from "lucide-react";
import { useRef, useState } from "react";
import { bytes } from "@/format";
import { Button, IconButton } from "@/ui/button";
import { Input } from "@/ui/form";
import type { FormFile } from "./form";

interface AttachmentsProps {
  files: readonly FormFile[];
  onChange(files: readonly FormFile[]): void;
  invalid: boolean;
}

/** The body of a send is at most 30 MiB, and base64 makes 4 bytes of 3. */
const BYTES_MAX = 22_000_000;

export function Attachments({ files, onChange, invalid }: AttachmentsProps) {
  const chooser = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState<string>();
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  const take = async (chosen: FileList | null) => {
    setProblem(undefined);
    try {
      onChange([...files, ...(await Promise.all([...(chosen ?? [])].map(read)))]);
    } catch {
      setProblem("A file could not be read.");
    }
    if (chooser.current) chooser.current.value = "";
  };
  const set = (key: string, change: Partial<FormFile>) => onChange(files.map((file) => (file.key === key ? { ...file, ...change } : file)));
  const isTooMuch = total > BYTES_MAX;
  return (
    <div className="space-y-3">
      {files.length > 0 && (
        <ul className="divide-y divide-line rounded-md border border-line">
          {files.map((file) => (
            <li key={file.key} className="flex flex-wrap items-center gap-2 p-2">
              <Input aria-label="File name" value={file.filename} onChange={(event) => set(file.key, { filename: event.target.value })} className="min-w-0 flex-1" />
              <Input
                aria-label={`Content id of ${file.filename}`}
                placeholder="Content id"
                title="To show it in the HTML as cid:…"
                value={file.contentId}
                onChange={(event) => set(file.key, { contentId: event.target.value })}
                className="max-w-32"
              />
              <span className="w-16 text-right text-[13px] text-text-3 tabular">{bytes(file.bytes)}</span>
              <IconButton label={`Remove ${file.filename}`} icon={<X />} onClick={() => onChange(files.filter((one) => one !== file))} />
            </li>
          ))}
        </ul>
      )}
      <input ref={chooser} type="file" multiple hidden aria-label="Files" onChange={(event) => void take(event.target.files)} />
      <div className="flex flex-wrap items-center gap-3">
        <Button small onClick={() => chooser.current?.click()} aria-invalid={invalid || undefined}>
          <Paperclip />
          Attach files
        </Button>
        <p className="text-[13px] text-text-3">
          {files.length === 0 ? "With a content id, a picture can stand in the HTML as cid:logo." : `${bytes(total)} in all`}
        </p>
      </div>
      {(problem || isTooMuch) && <p className="text-[13px] text-red">{problem ?? "More than about 22 MB cannot be sent."}</p>}
    </div>
  );
}

let files = 0;

const read = (file: File): Promise<FormFile> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(reader.error);
    reader.onload = () => {
      const url = String(reader.result);
      resolve({
        key: `file-${++files}`,
        filename: file.name,
        contentType: file.type,
        contentId: "",
        content: url.slice(url.indexOf(",") + 1),
        bytes: file.size,
      });
    };
    reader.readAsDataURL(file);
  });
