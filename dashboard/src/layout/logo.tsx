/** The sign of Waypost: a post with two boards that point two ways. */
export function Logo({ className }: { className?: string }) {
  return (
    <svg viewBox="0 0 32 32" className={className} aria-hidden>
      <rect width="32" height="32" rx="8" fill="#4f46e5" />
      <path d="M15 6h2v20h-2z" fill="#c7d2fe" />
      <path d="M8 8h13l4 3.5-4 3.5H8z" fill="#fff" />
      <path d="M24 16.5H13L9.5 19.5 13 22.5h11z" fill="#e0e7ff" />
    </svg>
  );
}
