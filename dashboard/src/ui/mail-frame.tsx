/**
 * The HTML of a mail, in a frame that can do nothing: no scripts, no forms, no navigation, no origin. Nothing is fetched
 * from other hosts until the person asks for the images.
 */

import { clsx } from "clsx";
import { ImageOff } from "lucide-react";
import { useMemo, useState } from "react";
import { Button } from "./button";

interface MailFrameProps {
  html: string;
  /** What the frame shows, for those who do not see it. */
  title: string;
  /** Shows the mail as a mailbox in dark mode does. */
  dark?: boolean;
  /** Images within the mail: the `contentId` of an attachment, and its content as a `data:` URL. */
  inline?: Readonly<Record<string, string>>;
  /** Width and height, in place of a height that is estimated from the content. */
  className?: string;
}

export function MailFrame({ html, title, dark, inline, className }: MailFrameProps) {
  const [remote, setRemote] = useState(false);
  const mail = useMemo(() => readMail(html, inline, remote), [html, inline, remote]);
  return (
    <div className="space-y-2">
      {mail.hasRemoteImages && !remote && (
        <div className="flex flex-wrap items-center gap-x-3 gap-y-2 rounded-md bg-sunken px-3 py-2 text-[13px] text-text-2">
          <ImageOff className="size-4 shrink-0 text-text-3" aria-hidden />
          <span className="min-w-0 flex-1">Images from other servers are not loaded, because loading them may count as an open.</span>
          <Button small onClick={() => setRemote(true)}>
            Load images
          </Button>
        </div>
      )}
      <iframe
        sandbox=""
        srcDoc={mail.source}
        title={title}
        referrerPolicy="no-referrer"
        style={className?.includes("h-") ? undefined : { height: mail.height }}
        className={clsx(
          "block max-w-full resize-y rounded-md border border-line",
          dark ? "bg-black [color-scheme:dark]" : "bg-white [color-scheme:light]",
          className ?? "w-full",
        )}
      />
    </div>
  );
}

const HEIGHT_MIN = 160;
const HEIGHT_MAX = 640;
const REMOTE_URL = /^\s*(https?:)?\/\//i;
const IMPORT = /@import\s+(url\([^)]*\)|"[^"]*"|'[^']*')[^;]*;?/gi;
const REMOTE_IN_CSS = /url\(\s*["']?\s*(https?:)?\/\//i;

interface Mail {
  source: string;
  hasRemoteImages: boolean;
  /** In px. The frame has no origin, so nobody can measure it: this is an estimate, and the person can pull it. */
  height: number;
}

function readMail(html: string, inline: MailFrameProps["inline"], remote: boolean): Mail {
  // A document of DOMParser is inert: it runs and loads nothing.
  const document = new DOMParser().parseFromString(html, "text/html");
  for (const element of document.querySelectorAll("script, base, link, meta[http-equiv], iframe, object, embed")) element.remove();
  // Style sheets of other hosts are never loaded. MJML imports one for its default font.
  for (const style of document.querySelectorAll("style")) style.textContent = (style.textContent ?? "").replaceAll(IMPORT, "");
  // The sandbox forbids new windows, so that a link does nothing; without this it would replace the mail.
  for (const link of document.querySelectorAll("a, area, form")) link.setAttribute("target", "_blank");
  for (const image of document.querySelectorAll("img[src^='cid:' i]")) {
    const content = inline?.[decodeCid(image.getAttribute("src") ?? "")];
    if (content) image.setAttribute("src", content);
    else image.removeAttribute("src");
  }
  const hasRemoteImages = remoteImages(document, remote);
  addPolicy(document, remote);
  return { source: `<!doctype html>${document.documentElement.outerHTML}`, hasRemoteImages, height: estimatedHeight(document) };
}

/** The policy stands before everything else of the mail, so that it holds for all of it. */
function addPolicy(document: Document, remote: boolean): void {
  const policy = document.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = `default-src 'none'; img-src ${remote ? "data: https: http:" : "data:"}; style-src 'unsafe-inline'; font-src data:`;
  const referrer = document.createElement("meta");
  referrer.name = "referrer";
  referrer.content = "no-referrer";
  document.head.prepend(policy, referrer);
}

function decodeCid(source: string): string {
  const id = source.slice("cid:".length);
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}

/** Whether the mail has images of other servers. Those that are not wanted are taken out: their texts are shown instead. */
function remoteImages(document: Document, wanted: boolean): boolean {
  let found = [...document.querySelectorAll("style")].some((style) => REMOTE_IN_CSS.test(style.textContent ?? ""));
  for (const element of document.querySelectorAll("[style]")) found ||= REMOTE_IN_CSS.test(element.getAttribute("style") ?? "");
  for (const name of ["src", "srcset", "background", "poster"]) {
    for (const element of document.querySelectorAll(`[${name}]`)) {
      if (!REMOTE_URL.test(element.getAttribute(name) ?? "")) continue;
      found = true;
      if (!wanted) element.removeAttribute(name);
    }
  }
  return found;
}

function estimatedHeight(document: Document): number {
  const blocks = document.querySelectorAll("p, h1, h2, h3, h4, li, tr, br, hr, pre, blockquote").length;
  const lines = (document.body.textContent ?? "").length / 90;
  let images = 0;
  for (const image of document.querySelectorAll("img")) images += Number(image.getAttribute("height")) || 60;
  return Math.round(Math.min(HEIGHT_MAX, Math.max(HEIGHT_MIN, 80 + blocks * 36 + lines * 22 + images)));
}
