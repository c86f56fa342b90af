// Where the reader is. Selecting something pushes an address; scrolling and typing replace it.
import { parseAddress, type Address } from "./router";

class Navigation {
  address: Address = $state.raw(parseAddress(location.pathname + location.search + location.hash));

  get path(): string[] {
    return this.address.path;
  }
  get query(): URLSearchParams {
    return this.address.query;
  }

  go(href: string, options: { replace?: boolean } = {}): void {
    if (href === location.pathname + location.search + location.hash) return;
    if (options.replace) history.replaceState(null, "", href);
    else history.pushState(null, "", href);
    this.#read();
  }

  /** Changes values of the query; empty ones are removed. */
  setQuery(changes: Record<string, string | undefined>, options: { replace?: boolean } = {}): void {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value) query.set(name, value);
      else query.delete(name);
    }
    const search = query.size ? `?${query}` : "";
    this.go(location.pathname + search + location.hash, options);
  }

  /** Follows links of the page without loading it again. */
  listen(): () => void {
    const onPop = () => this.#read();
    const onClick = (event: MouseEvent) => {
      if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
      const link = (event.target as Element | null)?.closest?.("a");
      if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
      if (/\.(nd)?json$/.test(link.pathname) || link.pathname.startsWith("/v1/")) return;
      event.preventDefault();
      this.go(link.pathname + link.search + link.hash);
    };
    addEventListener("popstate", onPop);
    document.addEventListener("click", onClick);
    return () => {
      removeEventListener("popstate", onPop);
      document.removeEventListener("click", onClick);
    };
  }

  #read(): void {
    this.address = parseAddress(location.pathname + location.search + location.hash);
  }
}

export const navigation = new Navigation();
