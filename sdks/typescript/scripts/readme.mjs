// Writes the TypeScript of README.md to tests/readme/, one module for each block, so that `npm run check` compiles it.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const directory = new URL("../tests/readme/", import.meta.url);
const blocks = [...readme.matchAll(/```ts\n(.*?)```/gs)].map((match) => match[1]);
if (blocks.length === 0) throw new Error("README.md has no TypeScript");

rmSync(directory, { recursive: true, force: true });
mkdirSync(directory);
blocks.forEach((block, index) => writeFileSync(new URL(`${index}.ts`, directory), `${block}\nexport {};\n`));
