// What the page at hand tells the shell: its title, where it stands, and the command that shows the same.
import type { Info } from "./api";

export interface Crumb {
  text: string;
  href?: string;
}

class Screen {
  title = $state("");
  crumbs: Crumb[] = $state.raw([]);
  command = $state("");
  /** What the bottom bar says on the right. */
  note = $state("");
  info: Info | null = $state.raw(null);
  needsKey = $state(false);
  palette = $state(false);
  help = $state(false);
  messages: { id: number; text: string; isError: boolean; undo?: () => void }[] = $state([]);
  /** For readers of the screen: said once, politely. */
  announcement = $state("");

  get canWrite(): boolean {
    return this.info?.scopes.some((scope) => scope !== "read") ?? false;
  }

  show(told: { title: string; crumbs?: Crumb[]; command?: string; note?: string }): void {
    this.title = told.title;
    this.crumbs = told.crumbs ?? [{ text: told.title }];
    this.command = told.command ?? "";
    this.note = told.note ?? "";
    document.title = `${told.title} · wakelog`;
  }

  #count = 0;

  say(text: string, options: { isError?: boolean; undo?: () => void } = {}): void {
    const id = ++this.#count;
    this.messages.push({ id, text, isError: options.isError ?? false, undo: options.undo });
    setTimeout(() => this.dismiss(id), options.undo || options.isError ? 12000 : 4000);
  }

  dismiss(id: number): void {
    this.messages = this.messages.filter((message) => message.id !== id);
  }
}

export const screen = new Screen();

export async function copy(text: string, what = "Copied"): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    screen.say(what);
  } catch {
    screen.say("The browser does not let the page copy.", { isError: true });
  }
}
