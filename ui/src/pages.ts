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
