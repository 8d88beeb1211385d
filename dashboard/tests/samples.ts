/** Runs the code that the dashboard shows, to see that it sends what the form holds. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import ts from "typescript";

/** A directory with these files, in which a program runs. */
export function directoryWith(files: Readonly<Record<string, string | Buffer>>): string {
  const directory = mkdtempSync(join(tmpdir(), "waypost-samples-"));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(directory, name), content);
  return directory;
}

/** The body that the command posts: a `curl` in its path writes down what it is given. */
export function bodyOfCurl(command: string, directory: string): unknown {
  const fake = `#!/usr/bin/env bash
while (($#)); do
  case $1 in
    --data-raw) printf %s "$2"; shift 2 ;;
    --data-binary) cat; shift 2 ;;
    -H) shift 2 ;;
    *) shift ;;
  esac
done
`;
  writeFileSync(join(directory, "curl"), fake, { mode: 0o755 });
  writeFileSync(join(directory, "command.sh"), command);
  const env = { ...process.env, PATH: `${directory}:${process.env.PATH}`, WAYPOST_API_KEY: "wp_test_x" };
  return JSON.parse(execFileSync("bash", ["command.sh"], { cwd: directory, env, encoding: "utf8" }));
}

/** What the TypeScript program gives to the SDK. */
export async function callOfTypescript(program: string, read: (name: string) => Buffer): Promise<unknown[]> {
  const { outputText, diagnostics } = ts.transpileModule(program.replace(/^import .*;\n/gm, ""), {
    compilerOptions: { target: ts.ScriptTarget.ES2022 },
    reportDiagnostics: true,
  });
  if (diagnostics?.length) throw new Error(ts.flattenDiagnosticMessageText(diagnostics[0]!.messageText, "\n"));
  let given: unknown[] = [];
  const call = (...values: unknown[]) => {
    given = values;
    return {};
  };
  class Waypost {
    messages = { send: call };
    templates = { sendTest: call };
  }
  const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;
  await new AsyncFunction("Waypost", "readFileSync", "console", outputText)(Waypost, read, { log() {} });
  return given;
}

/** What the Python program gives to the SDK: positional and named values, in the names of Python. */
export function callOfPython(program: string, directory: string): { args: unknown[]; kwargs: Record<string, unknown> } {
  const stub = `import json
class Resource:
    def __getattr__(self, name):
        def call(*args, **kwargs):
            print(json.dumps({"args": args, "kwargs": kwargs}))
            raise SystemExit
        return call
class Waypost:
    messages = Resource()
    templates = Resource()
`;
  writeFileSync(join(directory, "waypost.py"), stub);
  writeFileSync(join(directory, "program.py"), program);
  return JSON.parse(execFileSync("python3", ["program.py"], { cwd: directory, encoding: "utf8" }));
}
