import { useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { toast } from "sonner";
import { type AttachmentDetail, type MessageContentView, type MessageDetail, WaypostError } from "waypost";
import { errorText, waypost } from "@/api";
import { bytes } from "@/format";
import { Button } from "@/ui/button";
import { Code } from "@/ui/code";
import { Input } from "@/ui/form";
import { MailFrame } from "@/ui/mail-frame";
import { Card, Empty, LoadError, SkeletonRows } from "@/ui/page";
import { save } from "@/ui/save";
import { SimpleTable } from "@/ui/table";
import { Tabs } from "@/ui/tabs";
import { contentQuery } from "./data";
import { CONTENT_PARTS, type MessageSearch } from "./message-search";

interface ContentProps {
  message: MessageDetail;
  search: MessageSearch;
  onSearch(change: MessageSearch): void;
}

/** What the message says, as it was rendered for one recipient. */
export function Content({ message, search, onSearch }: ContentProps) {
  const { data, error, refetch } = useQuery(contentQuery(message.id, search.position));
  return (
    <Card
      title="Content"
      description="Before tracking and unsubscribe links are added. The audit log records that you looked."
      actions={message.recipientCount > 1 && <ForRecipient count={message.recipientCount} position={search.position ?? 0} onPosition={(position) => onSearch({ position: position || undefined })} />}
    >
      {data ? (
        <Parts message={message} content={data} search={search} onSearch={onSearch} />
      ) : error ? (
        <ContentError error={error} retry={() => void refetch()} />
      ) : (
        <SkeletonRows />
      )}
    </Card>
  );
}

function ContentError({ error, retry }: { error: unknown; retry(): void }) {
  if (error instanceof WaypostError && error.reason === "MESSAGE_CONTENT_GONE") {
    return <Empty title="The content is no longer stored">Content is kept for a shorter time than the message and its history.</Empty>;
  }
  return <LoadError error={error} retry={retry} />;
}

function ForRecipient({ count, position, onPosition }: { count: number; position: number; onPosition(position: number): void }) {
  return (
    <label className="flex items-center gap-2 text-[13px] text-text-2">
      For recipient
      <Input
        type="number"
        min={1}
        max={count}
        value={position + 1}
        onChange={(event) => onPosition(Math.min(count, Math.max(1, Number(event.target.value) || 1)) - 1)}
        className="h-8! w-20! text-[13px]!"
      />
      of {count}
    </label>
  );
}

function Parts({ message, content, search, onSearch }: ContentProps & { content: MessageContentView }) {
  const html = content.html === null ? <NoPart what="HTML" /> : <HtmlPart message={message} content={content} html={content.html} />;
  const first = content.html === null && content.text !== null ? "text" : CONTENT_PARTS[0];
  return (
    <>
      <p className="mb-3 text-[13px]">
        <span className="text-text-3">Subject </span>
        <span className="font-medium break-words">{content.subject}</span>
      </p>
      <Tabs
        value={search.part ?? first}
        onChange={(part) => onSearch({ part: CONTENT_PARTS.find((one) => one === part) })}
        tabs={[
          { value: "html", label: "HTML", content: html },
          { value: "text", label: "Text", content: content.text === null ? <NoPart what="text" /> : <Code text={content.text} wrap className="max-h-[40rem]!" /> },
          { value: "headers", label: `Headers (${content.headers.length})`, content: <Headers content={content} /> },
          { value: "attachments", label: `Attachments (${content.attachments.length})`, content: <Attachments message={message} attachments={content.attachments} /> },
        ]}
      />
    </>
  );
}

const NoPart = ({ what }: { what: string }) => <p className="py-8 text-center text-text-2">The message has no {what} part.</p>;

/** The body with the images that the mail carries. */
function HtmlPart({ message, content, html }: { message: MessageDetail; content: MessageContentView; html: string }) {
  const inline = useQuery({
    queryKey: ["messages", "content", message.id, "inline", content.attachments.map((one) => one.sha256)],
    queryFn: () => inlineImages(message.id, content.attachments),
    enabled: content.attachments.some(isInlineImage),
    staleTime: Number.POSITIVE_INFINITY,
  });
  // Else the frame would load the mail twice, once without its images.
  if (inline.isLoading) return <SkeletonRows />;
  return <MailFrame html={html} title={`The mail “${content.subject}”`} {...(inline.data ? { inline: inline.data } : {})} />;
}

const isInlineImage = (attachment: AttachmentDetail): boolean => attachment.contentId !== null && attachment.contentType.startsWith("image/");

async function inlineImages(messageId: string, attachments: readonly AttachmentDetail[]): Promise<Record<string, string>> {
  const images: Record<string, string> = {};
  for (const [index, attachment] of attachments.entries()) {
    if (!isInlineImage(attachment)) continue;
    const response = await waypost.messages.attachments.download(messageId, String(index));
    images[attachment.contentId!] = await dataUrl(await response.arrayBuffer(), attachment.contentType);
  }
  return images;
}

const dataUrl = (content: ArrayBuffer, type: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(new Error("An image of the mail could not be read."));
    reader.readAsDataURL(new Blob([content], { type }));
  });

function Headers({ content }: { content: MessageContentView }) {
  if (content.headers.length === 0) return <p className="py-8 text-center text-text-2">The message has no headers of its own.</p>;
  return (
    <SimpleTable head={["Name", "Value"]} label="Headers">
      {content.headers.map((header, at) => (
        <tr key={at}>
          <td className="font-mono text-[13px] whitespace-nowrap">{header.name}</td>
          <td className="font-mono text-[13px] break-all">{header.value}</td>
        </tr>
      ))}
    </SimpleTable>
  );
}

function Attachments({ message, attachments }: { message: MessageDetail; attachments: readonly AttachmentDetail[] }) {
  if (attachments.length === 0) return <p className="py-8 text-center text-text-2">The message has no attachments.</p>;
  const download = async (index: number, attachment: AttachmentDetail) => {
    try {
      const response = await waypost.messages.attachments.download(message.id, String(index));
      // Whatever it claims to be, the browser only saves it.
      save(new Blob([await response.arrayBuffer()], { type: "application/octet-stream" }), attachment.filename);
    } catch (error) {
      toast.error(errorText(error));
    }
  };
  return (
    <SimpleTable head={["File", "Type", "Size", <span key="download" className="sr-only">Download</span>]} label="Attachments">
      {attachments.map((attachment, at) => (
        <tr key={at}>
          <td className="break-all">
            {attachment.filename}
            {attachment.contentId && <span className="block text-xs text-text-3">shown in the mail</span>}
          </td>
          <td className="whitespace-nowrap text-text-2">{attachment.contentType}</td>
          <td className="tabular whitespace-nowrap text-text-2">{bytes(attachment.size)}</td>
          <td className="text-right">
            <Button small onClick={() => void download(at, attachment)} aria-label={`Download ${attachment.filename}`}>
              <Download aria-hidden />
              Download
            </Button>
          </td>
        </tr>
      ))}
    </SimpleTable>
  );
}
