// The pages, one line each: the path, what to load, and where it stands in the navigation. The first match wins.
import type { Component } from "svelte";
import { matchPath, type Address, type Params } from "./router";

export interface PageProps {
  params: Params;
  query: URLSearchParams;
}

export interface PageEntry {
  path: string;
  load: () => Promise<{ default: Component<PageProps> | Component }>;
  /** Its word in the navigation, and the key after g; none for pages that are reached from others. */
  nav?: { text: string; key: string };
}

export const PAGES: PageEntry[] = [
  { path: "/", load: () => import("./pages/Sessions.svelte"), nav: { text: "Sessions", key: "s" } },
  { path: "/live", load: () => import("./pages/Live.svelte"), nav: { text: "Live", key: "l" } },
  { path: "/search", load: () => import("./pages/Search.svelte"), nav: { text: "Search", key: "f" } },
  { path: "/compare", load: () => import("./pages/Compare.svelte"), nav: { text: "Compare", key: "d" } },
  { path: "/taint", load: () => import("./pages/Taint.svelte"), nav: { text: "Sources", key: "t" } },
  { path: "/cost", load: () => import("./pages/Cost.svelte"), nav: { text: "Cost", key: "c" } },
  { path: "/audit", load: () => import("./pages/Audit.svelte"), nav: { text: "Audit", key: "a" } },
  { path: "/store", load: () => import("./pages/Store.svelte"), nav: { text: "Store", key: "h" } },
  { path: "/s/:session/why", load: () => import("./pages/Provenance.svelte") },
  { path: "/s/:session/taint", load: () => import("./pages/Provenance.svelte") },
  { path: "/s/:session/verify", load: () => import("./pages/Audit.svelte") },
  { path: "/x/:commit", load: () => import("./pages/Permalink.svelte") },
  { path: "/x/:commit/:point", load: () => import("./pages/Permalink.svelte") },
  { path: "/help", load: () => import("./pages/Help.svelte") },
  { path: "/s/:session", load: () => import("./pages/Session.svelte") },
  { path: "/s/:session/*rest", load: () => import("./pages/Session.svelte") },
  { path: "/*rest", load: () => import("./pages/Lost.svelte") },
];

export function pageAt(address: Address): { entry: PageEntry; params: Params } {
  for (const entry of PAGES) {
    const params = matchPath(entry.path, address.path);
    if (params) return { entry, params };
  }
  return { entry: PAGES[PAGES.length - 1]!, params: {} };
}
