// watchkeeper plugin for OpenCode, version 1
// Hands what happens in OpenCode to watchkeeper-hook. It never makes OpenCode wait and never throws into it.
// Written by `watchkeeper install`, replaced by newer versions, deleted by `watchkeeper uninstall`.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, openSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const COMMAND = ["watchkeeper-hook", "opencode"];

// Events that wait to be handed over; beyond that the oldest are dropped.
const QUEUE_MAX = 256;
// How long the next event waits for the hook before it, so that they are told in order.
const PATIENCE_MS = 2000;
// The same for an event whose hook may be held until a person has answered.
const PATIENCE_WITH_HELD_MS = 250;
// How long OpenCode's end waits for what is still to be handed over.
const FAREWELL_MS = 500;
// Longer texts are cut: what matters stands at their beginning.
const TEXT_MAX = 16384;
// Longest answer read.
const ANSWER_MAX = 65536;
// Sessions whose last status is remembered.
const SESSIONS_MAX = 1000;

const FORWARDED = new Set([
  "session.created",
  "session.deleted",
  "session.error",
  "session.compacted",
  "session.execution.failed",
  "session.execution.interrupted",
]);
// Of these and of a turn's end the hook may be held until a person has answered.
const ANSWERED = new Set(["permission.asked", "permission.v2.asked", "permission.updated", "session.execution.succeeded"]);
const FORWARDED_FAMILIES = ["permission.", "question.", "form."];

const queue = [];
let draining;

function toText(payload) {
  return JSON.stringify(payload, (_key, value) =>
    typeof value === "string" && value.length > TEXT_MAX ? value.slice(0, TEXT_MAX) : value,
  );
}

// The payload as an open file that has no name any more. A pipe would be written when the event loop has time for it, and
// the hook does not wait that long.
function openPayload(payload) {
  const path = join(tmpdir(), `watchkeeper-${process.pid}-${randomUUID()}`);
  try {
    writeFileSync(path, payload, { mode: 0o600, flag: "wx" });
    return openSync(path, "r");
  } finally {
    unlinkSync(path);
  }
}

// Runs the hook once; done when it has ended. `answered` gets what it printed, if that is an object.
function run({ event, payload, answered }) {
  return new Promise((done) => {
    try {
      const input = openPayload(payload);
      let child;
      try {
        child = spawn(COMMAND[0], [...COMMAND.slice(1), event], {
          stdio: [input, "pipe", "ignore"],
          detached: process.platform !== "win32",
          windowsHide: true,
        });
      } finally {
        closeSync(input);
      }
      let answer = "";
      child.on("error", () => done());
      child.stdout.on("data", (bytes) => {
        if (answer.length < ANSWER_MAX) answer += bytes;
      });
      child.on("close", () => {
        done();
        if (!answered || !answer.trim()) return;
        try {
          Promise.resolve(answered(JSON.parse(answer))).catch(() => {});
        } catch {
          // Not an answer.
        }
      });
      child.unref();
    } catch {
      done();
    }
  });
}

function patience(ms) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    timer.unref?.();
  });
}

async function drain() {
  for (let next = queue.shift(); next; next = queue.shift()) {
    await Promise.race([run(next), patience(next.answered ? PATIENCE_WITH_HELD_MS : PATIENCE_MS)]);
  }
  draining = undefined;
}

function hand(event, payload, answered) {
  try {
    if (queue.length >= QUEUE_MAX) queue.shift();
    queue.push({ event, payload: toText(payload), answered });
    draining ??= drain();
  } catch {
    // What cannot be written as JSON is not told.
  }
}

// At the end everything left goes out at once; order matters less than that it goes.
async function farewell() {
  const last = queue.splice(0).map(run);
  await Promise.race([Promise.all([draining, ...last]), patience(FAREWELL_MS)]);
}

// What an event on OpenCode's bus tells. `act` carries an answer out: {prompt} or {permission}.
function listener(act) {
  const status = new Map();
  const titles = new Map();
  const remember = (map, key, value) => {
    if (map.get(key) === value) return false;
    if (!map.has(key) && map.size >= SESSIONS_MAX) map.delete(map.keys().next().value);
    map.set(key, value);
    return true;
  };
  return (event) => {
    const type = event?.type;
    const about = event?.properties;
    if (typeof type !== "string" || typeof about !== "object" || about === null) return;
    const session = about.sessionID ?? about.info?.id;
    const answered = (answer) => act(answer, session, about);
    if (type === "session.status" || type === "session.idle") {
      // One a change: a status comes several times a step.
      const kind = type === "session.idle" ? "idle" : about.status?.type;
      if (!remember(status, session, kind)) return;
      hand(type, event, kind === "idle" && type === "session.status" ? answered : undefined);
    } else if (type === "session.updated") {
      const info = about.info ?? {};
      if (remember(titles, session, `${info.title}\n${info.parentID ?? ""}`)) hand(type, event);
    } else if (type === "message.part.updated") {
      // A call that failed or was rejected has no `tool.execute.after`.
      if (about.part?.type === "tool" && about.part.state?.status === "error") hand(type, event);
    } else if (ANSWERED.has(type)) {
      hand(type, event, answered);
    } else if (FORWARDED.has(type) || FORWARDED_FAMILIES.some((family) => type.startsWith(family))) {
      hand(type, event);
    }
  };
}

// A reply that could not be delivered leaves the session stopped.
async function carryOut(answer, session, about, prompt, reply) {
  if (typeof answer?.prompt === "string" && prompt) {
    try {
      const result = await prompt(session, answer.prompt);
      if (!result?.error) return;
    } catch {
      // As an error in the result.
    }
    hand("session.error", { properties: { sessionID: session, error: { name: "ReplyUndeliverable" } } });
  } else if ((answer?.permission === "once" || answer?.permission === "reject") && reply) {
    await reply(session, about.id, answer.permission);
  }
}

export default {
  id: "watchkeeper",

  // The first plugin surface.
  server: async ({ client }) => {
    const prompt = (id, text) => client.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text }] } });
    const reply = (id, permissionID, response) =>
      client.postSessionIdPermissionsPermissionId({ path: { id, permissionID }, body: { response } });
    const listen = listener((answer, session, about) => carryOut(answer, session, about, prompt, reply));
    const pass = (event) => async (input, output) => hand(event, { input, output });
    return {
      event: async ({ event }) => listen(event),
      "chat.message": pass("chat.message"),
      "tool.execute.before": pass("tool.execute.before"),
      "tool.execute.after": pass("tool.execute.after"),
      "experimental.session.compacting": pass("experimental.session.compacting"),
      dispose: farewell,
    };
  },

  // The second one, as far as a version offers events there.
  setup: async (context) => {
    const events = context?.event?.subscribe;
    if (typeof events !== "function") return;
    const prompt = context.session?.prompt && ((sessionID, text) => context.session.prompt({ sessionID, text }));
    const listen = listener((answer, session, about) => carryOut(answer, session, about, prompt));
    void (async () => {
      try {
        for await (const event of events.call(context.event)) {
          listen(event);
          if (event?.type?.startsWith?.("session.next.")) {
            const kind = event.type.slice("session.next.".length);
            if (/^(prompted|tool\.(called|success|failed)|compaction\.(started|ended))$/.test(kind)) {
              hand(event.type, event);
            }
          }
        }
      } catch {
        // The stream ended with OpenCode, or is of another kind.
      }
    })();
  },
};
