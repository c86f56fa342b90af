// What the inspector looks at: a point of a session.
import type { EventInfo, TurnInfo } from "../api";

export interface Subject {
  session: string;
  /** For commands. */
  handle: string;
  /** "@" for the head, "@12.2" or "e1042". */
  point: string;
  turn: TurnInfo | null;
  event: EventInfo | null;
  /** Changes whenever the session has grown, where the point is its head. */
  version: number;
}
