import { Link } from "@tanstack/react-router";
import { Link2Off } from "lucide-react";
import { NotFoundError, ValidationError } from "waypost";
import { buttonClass } from "@/ui/button";
import { LoadError } from "@/ui/page";
import { Frame } from "./frame";

/** A link that cannot be used: it is over, or it could not be looked up. */
export function LinkFailed({ error, retry, next }: { error: unknown; retry(): void; next: string }) {
  const isOver = error instanceof NotFoundError || error instanceof ValidationError;
  if (!isOver) {
    return (
      <Frame title="The link could not be opened">
        <LoadError error={error} retry={retry} />
      </Frame>
    );
  }
  return (
    <Frame title="This link is no longer valid">
      <div className="flex flex-col items-center gap-4 text-center">
        <div className="rounded-full bg-sunken p-3 text-text-3">
          <Link2Off className="size-6" aria-hidden />
        </div>
        <p className="text-text-2">It was used before, it is too old, or it was withdrawn. Check also that it was copied as a whole. {next}</p>
        <Link to="/sign-in" className={buttonClass()}>
          Go to the sign-in
        </Link>
      </div>
    </Frame>
  );
}

/** While the link is looked up. */
export function LinkLoading() {
  return (
    <Frame title="Opening the link">
      <p role="status" className="text-center text-text-2">
        One moment …
      </p>
    </Frame>
  );
}
