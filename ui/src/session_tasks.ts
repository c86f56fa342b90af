// What is done with a session outside of the page: a program runs, or a file is written. The page asks for what is
// needed and gives the command.
import { quoted, selectorOf } from "./router";

export interface TaskField {
  name: string;
  label: string;
  hint?: string;
  first?: string;
  options?: readonly string[];
}

export interface Task {
  /** Its words in the menu. */
  name: string;
  title: string;
  text: string;
  fields: TaskField[];
  command: (values: Record<string, string>) => string;
}

/** The tasks for a session, at a point of it ("" is its end). */
export function tasksOf(handle: string, title: string, point: string): Task[] {
  const turn = /^@\d+(\.\d+)?$/.test(point) ? point : "";
  return [
    {
      name: "Resume…",
      title: `Resume ${title}`,
      text: "Goes on with the session, in the agent that it came from where that is known.",
      fields: [],
      command: () => `wakelog resume ${handle}`,
    },
    {
      name: "Share as a file…",
      title: `Share ${title}`,
      text: "Writes one file that opens anywhere, offline. Secrets, home folders and user names are masked, and listed before the file is written; with --dry-run they are only listed.",
      fields: [{ name: "file", label: "File", first: `${title.replaceAll(/[^\w.-]+/g, "-")}.html` }],
      command: ({ file }) => `wakelog export ${handle} --format html --redact -o ${quoted(file || "session.html")}`,
    },
    {
      name: "Find the first bad turn…",
      title: "Find the first bad turn",
      text: "A command tests the turns between a good point and a bad one, a few of them instead of all: 0 is good, 125 cannot be tested, any other code is bad.",
      fields: [
        { name: "good", label: "Still good", first: "@1" },
        { name: "bad", label: "Already bad", first: turn && turn !== "@1" ? turn : "@" },
        { name: "check", label: "Command that tests", hint: "./check.sh" },
      ],
      command: ({ good, bad, check }) => `wakelog bisect start ${selectorOf(handle, bad || "@")} ${quoted(good || "@1")}${check ? ` && wakelog bisect run ${check}` : ""}`,
    },
    {
      name: turn ? `Replay from ${turn}…` : "Replay…",
      title: turn ? `Replay from ${turn}` : `Replay ${title}`,
      text: "Runs your agent's code again on what was recorded. strict answers every call from the record; fill runs only what is new; live runs everything. Nothing here changes this session. Without a function it shows what would be replayed.",
      fields: [
        { name: "mode", label: "Mode", options: ["strict", "fill", "live"], first: "strict" },
        { name: "agent", label: "Function of your agent", hint: "app.agent:run" },
        { name: "input", label: "Another input for the first turn", hint: "as recorded" },
      ],
      command: ({ mode, agent, input }) =>
        [
          `wakelog replay ${handle}`,
          turn && `--from ${turn.replace(/\.\d+$/, "")}`,
          mode && mode !== "strict" && `--mode ${mode}`,
          agent ? `--agent ${quoted(agent)}` : "--dry-run",
          input && `--set ${quoted(`input=${input}`)}`,
        ].filter(Boolean).join(" "),
    },
  ];
}
