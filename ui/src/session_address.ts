// What the rest of a session's address says: the point, and what the inspector shows of it.
import { tabNamed, type TabName } from "./inspector/tabs";
import { isPoint } from "./router";

export interface Look {
  /** "" is the head. */
  point: string;
  tab: TabName | undefined;
  /** A key of the state to open. */
  focus: string;
  /** Two points to be compared. */
  range: string;
  /** A file. */
  path: string;
}

export function lookOf(rest: string, query: URLSearchParams): Look {
  const look: Look = { point: "", tab: tabNamed(query.get("tab") ?? ""), focus: "", range: "", path: "" };
  const parts = rest.split("/").filter(Boolean);
  const [first = "", second = ""] = parts;
  if (isPoint(first)) {
    look.point = first;
    if (second === "state") {
      look.tab = "State";
      look.focus = parts.slice(2).map((part) => `/${part.replaceAll("~", "~0")}`).join("");
    }
  } else if (first === "diff") {
    look.tab = "Diff";
    look.range = second.includes("..") ? second : "";
    look.point = second.split("..").pop() ?? "";
  } else if (first === "context" || first === "state") {
    look.tab = first === "context" ? "Context" : "State";
    look.point = second;
  } else if (first === "files") {
    look.tab = "Files";
    look.path = parts.slice(1).join("/");
    look.point = query.get("at") ?? "";
  } else if (first) look.point = first;
  return look;
}
