// The command that shows what a session's page shows.
import type { TabName } from "./inspector/tabs";
import { quoted, selectorOf } from "./router";
import type { Look } from "./session_address";

export interface Shown {
  handle: string;
  /** "" is the end; else @12, @12.2 or e1042. */
  point: string;
  /** The turn that is selected, or that the selected event is in; "" is none. */
  turn: string;
  /** The newest turn; "" is none. */
  newest: string;
  look: Look;
}

export function commandOf(shown: Shown): string {
  const { handle, point, turn, newest, look } = shown;
  const here = point ? selectorOf(handle, point) : handle;
  const ways: Record<TabName, () => string> = {
    State: () => `wakelog state ${look.focus ? `${quoted(look.focus)} ` : ""}--at ${selectorOf(handle, point || "@")}`,
    Diff: () => (look.range ? `wakelog diff -s ${handle} ${quoted(look.range)}` : `wakelog diff ${here}`),
    Context: () => `wakelog context ${here}`,
    Files: () => `wakelog diff -s ${handle} ${look.path ? `@0 ${turn || "@"} -- ${quoted(look.path)}` : `${turn ? `${turn} ` : ""}--files`}`,
    Why: () => `wakelog why -s ${handle} ${point || newest || "e1"}`,
    Cost: () => `wakelog cost ${handle} --by turn`,
    Raw: () => `wakelog show ${point ? here : `${handle}@`} --raw`,
  };
  return look.tab ? ways[look.tab]() : point ? `wakelog show ${here}` : `wakelog log ${handle}`;
}
