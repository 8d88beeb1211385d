// What differs between Node, Deno, Bun and Workers.

interface Platform {
  process?: { env?: Record<string, string | undefined> };
  Deno?: { env: { get(name: string): string | undefined } };
}

/** An environment variable; undefined if it is empty, or if the platform has none or refuses to show it. */
export function environment(name: string): string | undefined {
  const platform = globalThis as Platform;
  try {
    return (platform.process?.env?.[name] ?? platform.Deno?.env.get(name)) || undefined;
  } catch {
    return undefined;
  }
}

/** WebCrypto. Node 18 has it, but not as a global. The module's name is a variable, so that bundlers leave it alone. */
export async function webCrypto(): Promise<Crypto> {
  if (globalThis.crypto?.subtle) return globalThis.crypto;
  const module = "node:crypto";
  return ((await import(module)) as { webcrypto: Crypto }).webcrypto;
}
