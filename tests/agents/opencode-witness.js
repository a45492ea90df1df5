// The harness's own plugin for OpenCode, beside the product's: leaves one file an event, named after the time at which
// OpenCode told it, as `witness-hook` does for the other agents. FOLDER is put in by the harness. It changes nothing.

import { renameSync, writeFileSync } from "node:fs";

const FOLDER = "";

// What a scenario can be about; the rest of the bus is noise here.
const FAMILIES = ["session.created", "session.status", "session.idle", "session.error", "permission.", "question."];

// Sessions that another one started: subagents.
const children = new Set();
let notes = 0;

function note(name, session, more) {
  const at = (performance.timeOrigin + performance.now()) / 1000;
  const path = `${FOLDER}/${at.toFixed(6)}-${name}-${process.pid}.${(notes += 1)}`;
  writeFileSync(path, JSON.stringify({ session_id: session, child: children.has(session), pid: process.pid, ...more }));
  renameSync(path, `${path}.json`);
}

export const Witness = async () => ({
  event: async ({ event: { type, properties } }) => {
    if (type === "session.created" && properties.info?.parentID) children.add(properties.sessionID);
    if (!FAMILIES.some((family) => type.startsWith(family))) return;
    note(type, properties.sessionID, { status: properties.status?.type, type: properties.error?.name });
  },
  "chat.message": async ({ sessionID }) => note("chat.message", sessionID, {}),
  "tool.execute.before": async ({ sessionID, tool }) => note("tool.execute.before", sessionID, { tool_name: tool }),
  "tool.execute.after": async ({ sessionID, tool }) => note("tool.execute.after", sessionID, { tool_name: tool }),
});
