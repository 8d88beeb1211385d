import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import { tanstackRouter } from "@tanstack/router-plugin/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** The Waypost that `npm run dev` passes requests to. */
const service = process.env.WAYPOST_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
  // Relative to the <base> of index.html, which Waypost sets to the path of its public URL.
  base: "./",
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
    // The Host stays that of this server: a session's changes must come from the origin that they are sent to.
    proxy: {
      "/v1": { target: service },
      "/docs": service,
    },
  },
});
