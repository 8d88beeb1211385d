import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import { tanstackRouter } from "@tanstack/router-plugin/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** The Waypost that `npm run dev` passes requests to. */
const service = process.env.WAYPOST_URL ?? "http://127.0.0.1:8080";

// TEMPORARY until the service has sessions.
const devHeaders: Record<string, string> = process.env.WAYPOST_API_KEY ? { authorization: `Bearer ${process.env.WAYPOST_API_KEY}` } : {};
function devSession(res: import("node:http").ServerResponse | undefined): false | undefined {
  if (!process.env.WAYPOST_API_KEY || !res) return undefined;
  res.setHeader("content-type", "application/json");
  res.end(JSON.stringify({ data: {
    user: { id: "u", email: "ada@example.com", name: "Ada Lovelace", totpEnabled: false, hasPassword: true, isOperator: true },
    organization: { id: "o", name: "Live" }, role: "OWNER",
    permissions: ["SEND","TEMPLATES_READ","TEMPLATES_WRITE","PROVIDERS_READ","PROVIDERS_WRITE","METRICS_READ","SETTINGS_WRITE","CONTENT_READ","MEMBERS_WRITE","OPERATOR"],
    organizations: [{ id: "o", name: "Live", role: "OWNER" }, { id: "p", name: "Second", role: "VIEWER" }], createdAt: "", expiresAt: "" } }));
  return false;
}

export default defineConfig({
  // Relative to the <base> of index.html, which Waypost sets to the path of its public URL.
  base: "./",
  cacheDir: process.env.VITE_CACHE ?? "node_modules/.vite",
  plugins: [
    tanstackRouter({ target: "react", autoCodeSplitting: true, quoteStyle: "double", semicolons: true }),
    react(),
    tailwindcss(),
  ],
  resolve: {
    alias: {
      "@": fileURLToPath(new URL("src", import.meta.url)),
      waypost: fileURLToPath(new URL("../sdks/typescript/src/index.ts", import.meta.url)),
    },
  },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    // A dashboard is loaded once and cached: the names of the files carry their content's hash.
    chunkSizeWarningLimit: 600,
  },
  server: {
    proxy: {
      "/v1/session": { target: service, bypass: (_req, res) => devSession(res) },
      // The Host stays that of this server: a session's changes must come from the origin that they are sent to.
      "/v1": { target: service, headers: devHeaders },
      "/docs": service,
    },
  },
});
