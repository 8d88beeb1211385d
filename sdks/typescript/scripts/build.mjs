// Builds dist/esm and dist/cjs, each with its types. TypeScript decides between the two by the nearest package.json, so
// the second build compiles a copy of the sources beside one that says "commonjs".

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const tsc = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url));
const compile = (...args) => execFileSync(process.execPath, [tsc, ...args], { stdio: "inherit" });
const commonjs = JSON.stringify({ type: "commonjs" });

/** The types keep their comments, the programs do not: that halves the package. */
function build(project, outDir, ...args) {
  compile("-p", project, "--outDir", outDir, "--emitDeclarationOnly", ...args);
  compile("-p", project, "--outDir", outDir, "--declaration", "false", "--removeComments", ...args);
}

rmSync("dist", { recursive: true, force: true });
build("tsconfig.json", "dist/esm");

mkdirSync(".build", { recursive: true });
cpSync("src", ".build/src", { recursive: true });
cpSync("tsconfig.json", ".build/tsconfig.json");
writeFileSync(".build/package.json", commonjs);
build(".build/tsconfig.json", "dist/cjs", "--verbatimModuleSyntax", "false");
writeFileSync("dist/cjs/package.json", commonjs);
rmSync(".build", { recursive: true, force: true });

// The largest file is types alone. An ES module may take them from CommonJS; the other way round is not allowed.
writeFileSync("dist/esm/generated/types.d.ts", 'export type * from "../../cjs/generated/types.js";\n');
