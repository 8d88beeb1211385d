// What holds for the package as it is published.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import * as esm from "waypost";

const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const cjs = createRequire(import.meta.url)("waypost");

test("both kinds of modules export the same", () => {
  assert.deepEqual(Object.keys(cjs).sort(), Object.keys(esm).sort());
  const waypost = new cjs.Waypost("key", { baseUrl: "https://mail.example.com" });
  assert.equal(typeof waypost.templates.versions.list, "function");
});

test("CommonJS makes a key of its own, too", async () => {
  const keys = [];
  const fetch = async (_, { headers }) => {
    keys.push(headers.get("Idempotency-Key"));
    return Response.json({});
  };
  const waypost = new cjs.Waypost("key", { baseUrl: "https://mail.example.com", fetch });
  await waypost.messages.send({ from: "a@example.com", to: "b@example.com", subject: "Hello", text: "Hello" });
  assert.match(keys[0], /^[0-9a-f-]{36}$/);
});

test("the version is that of the API", () => {
  assert.equal(manifest.version, esm.VERSION);
});

test("the package depends on nothing", () => {
  assert.equal(manifest.dependencies, undefined);
  for (const directory of ["generated", "runtime"]) {
    for (const name of readdirSync(new URL(`../src/${directory}`, import.meta.url))) {
      const source = readFileSync(new URL(`../src/${directory}/${name}`, import.meta.url), "utf8");
      assert.doesNotMatch(source, /from "(?!\.)/, name);
    }
  }
});
