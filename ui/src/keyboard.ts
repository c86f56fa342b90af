// Keys. Pages take the ones they mean while they are open; the newest taker goes first. Never while somebody types.

export type Keys = Record<string, (event: KeyboardEvent) => void | false>;

const layers: Keys[] = [];
let pending = "";
let timer: ReturnType<typeof setTimeout> | undefined;

/** Takes keys until the returned function is called. A name is a key ("j", "G", "Escape", "mod+k"), or two ("g s").
 * A handler that returns false lets the key go on to others. */
export function takeKeys(keys: Keys): () => void {
  layers.push(keys);
  return () => {
    const at = layers.lastIndexOf(keys);
    if (at >= 0) layers.splice(at, 1);
  };
}

export function areKeysOn(): boolean {
  return localStorage.getItem("wakelog.keys") !== "off";
}

export function setKeysOn(on: boolean): void {
  localStorage.setItem("wakelog.keys", on ? "on" : "off");
}

function isTyping(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return !!element?.closest?.("input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable]");
}

function handle(name: string, event: KeyboardEvent): boolean {
  for (const layer of layers.toReversed()) {
    const handler = layer[name];
    if (handler && handler(event) !== false) {
      event.preventDefault();
      return true;
    }
  }
  return false;
}

export function listenForKeys(): () => void {
  const onKey = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.isComposing || event.altKey) return;
    const isMod = event.metaKey || event.ctrlKey;
    if (isMod) {
      handle(`mod+${event.key.toLowerCase()}`, event);
      return;
    }
    if (event.key === "Escape") {
      pending = "";
      handle("Escape", event);
      return;
    }
    if (isTyping(event.target)) return;
    if (event.key.length === 1 && event.key !== " " && !areKeysOn()) return;
    // A button takes Enter and Space itself.
    const target = event.target as HTMLElement;
    if ((event.key === "Enter" || event.key === " ") && target.closest?.("button, a, summary, [role=tab], input")) return;
    const name = event.key === " " ? "Space" : event.key;
    if (pending) {
      const both = `${pending} ${name}`;
      pending = "";
      clearTimeout(timer);
      if (handle(both, event)) return;
    }
    if (handle(name, event)) return;
    if (layers.some((layer) => Object.keys(layer).some((each) => each.startsWith(`${name} `)))) {
      pending = name;
      timer = setTimeout(() => (pending = ""), 1200);
    }
  };
  addEventListener("keydown", onKey);
  return () => removeEventListener("keydown", onKey);
}

/** The table of the help overlay and of the how-to. */
export const KEY_TABLE: { group: string; keys: [string, string][] }[] = [
  {
    group: "Everywhere",
    keys: [
      ["?", "this help"],
      ["Ctrl K or ⌘ K", "command palette: pages, sessions, words"],
      ["/", "filter or find here"],
      ["g s", "sessions"],
      ["g l", "live"],
      ["g f", "search"],
      ["g d", "compare"],
      ["g t", "sources, and what they touched"],
      ["g c", "cost"],
      ["g a", "audit"],
      ["g h", "store health"],
      [":", "go to a selector, such as @12 or e1042"],
      ["Y", "copy the command that shows this screen"],
      ["y", "copy the link; of an event, one that lasts"],
      ["T", "next theme"],
      ["Esc", "close, or one level up"],
    ],
  },
  {
    group: "Lists",
    keys: [
      ["j k", "next, previous row"],
      ["g g, G", "top, end"],
      ["Enter", "open"],
      ["Space", "preview"],
      ["x", "select"],
      ["c", "compare what is selected"],
      ["R", "copy the command that resumes it; on Live, resume the selected"],
      [".", "what needs you"],
    ],
  },
  {
    group: "Session",
    keys: [
      ["] [ or J K", "next, previous turn"],
      ["e E", "next, previous error"],
      ["u U", "next, previous prompt of a person"],
      ["w W", "next, previous untrusted event"],
      ["1 … 7", "inspector: State, Diff, Context, Files, Why, Cost, Raw"],
      ["i", "show or hide the inspector"],
      ["v", "next view: reader, compact, waterfall, JSON"],
      ["w s, a d, 0", "in the waterfall: closer and farther, along, all"],
      ["t", "show or hide thinking"],
      ["F", "follow the end"],
      ["m", "mark as A, then as B; c compares them"],
      ["d", "what this turn changed"],
      ["b", "where it came from"],
      ["l h or → ←", "open, close the details of a row; Enter and Space do both"],
      ["o, z", "open or close all details in sight; close them"],
      ["r", "rewind to here, with a preview"],
      ["R", "copy the command that resumes the session"],
      [".", "to the first event you have not seen"],
    ],
  },
];
