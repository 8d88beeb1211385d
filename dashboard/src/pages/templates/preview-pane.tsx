import { FileText, LoaderCircle, Monitor, Moon, Smartphone } from "lucide-react";
import { errorText } from "@/api";
import { problemOf } from "@/ui/editor/problems";
import { MailFrame } from "@/ui/mail-frame";
import { Notice, Skeleton } from "@/ui/page";
import { Segmented } from "@/ui/segmented";
import type { DraftPreview } from "./preview";
import { fieldName } from "./words";
import type { View } from "./search";

interface PreviewPaneProps {
  preview: DraftPreview;
  from: string;
  isPart: boolean;
  view: View;
  onView(view: View): void;
}

/** What recipients would see. */
export function PreviewPane({ preview, from, isPart, view, onView }: PreviewPaneProps) {
  const { shown, loading, error, issues } = preview;
  return (
    <section aria-label="Preview" className="min-w-0 space-y-3 lg:sticky lg:top-4 lg:self-start">
      <div className="flex min-h-9 flex-wrap items-center justify-between gap-2">
        <ViewChoice view={view} onView={onView} />
        <span className="inline-flex items-center gap-1.5 text-[13px] text-text-3">
          {loading && <LoaderCircle className="size-3.5 animate-spin" aria-label="Rendering" />}
        </span>
      </div>
      <div aria-live="polite">
        {error != null && (
          <Notice kind="error">
            {issues.length > 0 ? <Problems preview={preview} /> : errorText(error)}
            {shown && <p className="mt-1">Below is the last preview that could be made.</p>}
          </Notice>
        )}
      </div>
      {!isPart && shown && (
        <dl className="grid grid-cols-[max-content_1fr] gap-x-3 gap-y-0.5 text-[13px]">
          <dt className="text-text-3">From</dt>
          <dd className="truncate">{from || "the sender of the send"}</dd>
          <dt className="text-text-3">Subject</dt>
          <dd className="font-medium break-words" data-testid="subject">{shown.subject || <span className="font-normal text-text-3">none: the send must bring one</span>}</dd>
        </dl>
      )}
      {shown ? <Mail html={shown.html} text={shown.text} view={view} /> : error == null && <Skeleton className="h-96 w-full" />}
    </section>
  );
}

export function ViewChoice({ view, onView }: { view: View; onView(view: View): void }) {
  return (
    <Segmented
      label="Show as"
      value={view}
      onChange={onView}
      options={[
        ["desktop", <Choice key="d" icon={<Monitor aria-hidden />} text="Desktop" />],
        ["phone", <Choice key="p" icon={<Smartphone aria-hidden />} text="Phone" />],
        ["dark", <Choice key="k" icon={<Moon aria-hidden />} text="Dark" />],
        ["text", <Choice key="t" icon={<FileText aria-hidden />} text="Text" />],
      ]}
    />
  );
}

const Choice = ({ icon, text }: { icon: React.ReactNode; text: string }) => (
  <>
    {icon}
    {text}
  </>
);

interface MailProps {
  html: string;
  text: string;
  view: View;
  /** Images within the mail, by their content id. */
  inline?: Readonly<Record<string, string>>;
}

/** A mail as one of the views shows it. */
export function Mail({ html, text, view, inline }: MailProps) {
  if (view === "text") {
    return text ? (
      <pre tabIndex={0} className="max-h-[40rem] overflow-auto rounded-md border border-line bg-surface p-4 font-mono text-[13px] leading-relaxed break-words whitespace-pre-wrap">
        {text}
      </pre>
    ) : (
      <p className="rounded-md border border-line bg-surface p-6 text-center text-text-3">There is no text.</p>
    );
  }
  if (!html.trim()) return <p className="rounded-md border border-line bg-surface p-6 text-center text-text-3">There is no HTML yet.</p>;
  const size = view === "phone" ? "mx-auto w-[390px] h-[40rem]" : "w-full h-[40rem]";
  return <MailFrame html={html} title="Preview of the mail" dark={view === "dark"} inline={inline} className={size} />;
}

function Problems({ preview }: { preview: DraftPreview }) {
  return (
    <ul className="space-y-0.5">
      {preview.issues.map((issue) => {
        const { line, message } = problemOf(issue);
        const hasLine = issue.path === "mjmlSource" || issue.path === "htmlContent" || issue.path === "textContent";
        return (
          <li key={`${issue.path} ${issue.message}`}>
            <strong className="font-medium">
              {fieldName(issue.path)}
              {hasLine && issue.message !== message ? `, line ${line}` : ""}:
            </strong>{" "}
            {message}
          </li>
        );
      })}
    </ul>
  );
}
