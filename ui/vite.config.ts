// Builds the page into the Python package. No inline scripts, no source maps, nothing from elsewhere.
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [svelte()],
  build: {
    outDir: process.env.WAKELOG_PAGE_OUT ?? "../src/wakelog/web/static",
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    assetsInlineLimit: 0, // a data: address would need a hole in the content policy
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1000,
  },
});
