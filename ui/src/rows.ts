// Moving through a list by keys: what can be moved to is marked with data-row, and has the focus when it is reached.
import type { Keys } from "./keyboard";

export function rowKeys(root: () => HTMLElement | null | undefined): Keys {
  const all = () => [...(root()?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
  const at = (rows: HTMLElement[]) =>
    rows.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  const move = (step: number) => {
    const rows = all();
    const now = at(rows);
    focusOn(rows[now < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(now + step, 0), rows.length - 1)]);
  };
  return {
    j: () => move(1),
    k: () => move(-1),
    "g g": () => focusOn(all()[0]),
    G: () => focusOn(all().at(-1)),
  };
}

export function focusOn(row: HTMLElement | undefined): void {
  row?.focus();
  row?.scrollIntoView({ block: "nearest" });
}
