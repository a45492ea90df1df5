// watchkeeper plugin for OpenCode, version 3
// Hands what happens in OpenCode to watchkeeper-hook. OpenCode waits for no hook, only for the moment that an event takes to be
// written into a file and a process to be started, and at its own end for what is left. Nothing is thrown into it.
// Written by `watchkeeper install`, replaced by newer versions, deleted by `watchkeeper uninstall`.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, openSync, unlinkSync, writeFileSync } from "node:fs";
import { lstat, opendir, unlink } from "node:fs/promises";
import { join } from "node:path";

const COMMAND = ["watchkeeper-hook", "opencode"];
// A folder that only this user can look into.
const FOLDER = ".";

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
// A payload has a name for a moment only; an older one was left behind by an OpenCode that was killed just then. To lose the
// name does no harm, so that a clock that was set does none: then the payload goes through a pipe.
const STRAY_AFTER_MS = 3600000;
// Names looked at for such ones at a start; those behind them stay for another one.
const SWEPT_NAMES_MAX = 4096;

const FORWARDED = new Set([
  "session.created",
  "session.deleted",
  "session.compacted",
  "session.execution.failed",
  "session.execution.interrupted",
]);
// Of these and of a turn's end the hook may be held until a person has answered.
const PERMISSIONS = new Set(["permission.asked", "permission.v2.asked", "permission.updated"]);
const TURN_ENDS = new Set(["session.execution.succeeded"]);
const FORWARDED_FAMILIES = ["permission.", "question.", "form."];
// Work begins with it, and OpenCode is often busy with itself for long right after it.
const PROMPT = "chat.message";
// These say only what a session is: before a prompt or after it, they are as true.
const PORTRAITS = new Set(["session.created", "session.updated"]);

const queue = [];
let draining;
// What the queue waits for, and the prompt that did not.
let underway;
let overtook;

// At the end of a whole character.
function cut(text) {
  const last = text.charCodeAt(TEXT_MAX - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? TEXT_MAX - 1 : TEXT_MAX);
}

// JSON spells out halves of characters that stand alone; they are no text, and readers refuse them.
const HALF = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;

function toText(payload) {
  const text = JSON.stringify(payload, (_key, value) =>
    typeof value === "string" && value.length > TEXT_MAX ? cut(value) : value,
  );
  return text.replace(HALF, "$1\\ufffd");
}

function remove(path) {
  try {
    unlinkSync(path);
    return true;
  } catch {
    return false;
  }
}

const PAYLOAD_NAME = /^\.opencode-\d{1,10}-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

// Deletes payloads that were left behind. OpenCode does not wait for this.
async function sweep() {
  try {
    let names = 0;
    for await (const { name } of await opendir(FOLDER)) {
      if (++names > SWEPT_NAMES_MAX) break;
      if (!PAYLOAD_NAME.test(name)) continue;
      const path = join(FOLDER, name);
      try {
        const about = await lstat(path);
        if (about.isFile() && Date.now() - about.mtimeMs > STRAY_AFTER_MS) await unlink(path);
      } catch {
        // Its owner, or another OpenCode, was faster.
      }
    }
  } catch {
    // There is no such folder, or it cannot be read.
  }
}

// The payload as an open file, which needs no name any more where the system lets it go. A pipe would be written when the
// event loop has time for it, and the hook may not wait that long; it is for a folder that is gone or full.
function openPayload(payload) {
  const path = join(FOLDER, `.opencode-${process.pid}-${randomUUID()}`);
  try {
    writeFileSync(path, payload, { mode: 0o600, flag: "wx" });
    const input = openSync(path, "r");
    return { input, left: remove(path) ? undefined : path };
  } catch {
    remove(path);
    return { input: "pipe" };
  }
}

// Runs the hook once; the promise tells at its end whether it ran well. `answered` gets what it printed, if that is an object.
function run({ event, payload, answered }) {
  return new Promise((done) => {
    const { input, left } = openPayload(payload);
    const over = (well) => {
      if (left) remove(left);
      done(well);
    };
    try {
      let child;
      try {
        child = spawn(COMMAND[0], [...COMMAND.slice(1), event], {
          stdio: [input, "pipe", "ignore"],
          detached: process.platform !== "win32",
          windowsHide: true,
        });
      } finally {
        if (input !== "pipe") closeSync(input);
      }
      child.on("error", () => over(false));
      if (child.stdin) {
        child.stdin.on("error", () => {});
        child.stdin.end(payload);
      }
      let answer = "";
      child.stdout.setEncoding("utf8");
      child.stdout.on("data", (text) => {
        if (answer.length < ANSWER_MAX) answer += text;
      });
      child.on("close", (code) => {
        over(code === 0);
        if (!answered || !answer.trim()) return;
        try {
          Promise.resolve(answered(JSON.parse(answer))).catch(() => {});
        } catch {
          // Not an answer.
        }
      });
      // A hook that is held keeps OpenCode from nothing, not from its end either.
      child.unref();
      child.stdout.unref?.();
    } catch {
      over(false);
    }
  });
}

function patience(ms) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    timer.unref?.();
  });
}

// Runs the hook for one that waited; what was not told is its teller's again.
async function tell(one) {
  if (!(await run(one))) one.lost?.();
}

async function drain() {
  for (let next = queue.shift(); next; next = queue.shift()) {
    underway = next;
    await Promise.race([tell(next), patience(next.answered ? PATIENCE_WITH_HELD_MS : PATIENCE_MS)]);
    while (overtook) {
      const prompt = overtook;
      overtook = undefined;
      await Promise.race([prompt, patience(PATIENCE_MS)]);
    }
  }
  draining = undefined;
}

// `answered`: what becomes of the hook's answer, for an event that may have one. `lost` is called when it was not told.
function hand(event, payload, { answered, lost } = {}) {
  try {
    const one = { event, payload: toText(payload), answered, lost };
    if (event === PROMPT && draining && !overtook && [underway, ...queue].every((it) => PORTRAITS.has(it.event))) {
      overtook = tell(one);
      return;
    }
    if (queue.length >= QUEUE_MAX) queue.shift().lost?.();
    queue.push(one);
    draining ??= drain();
  } catch {
    // What cannot be written as JSON is not told.
    lost?.();
  }
}

// At the end everything left goes out at once; order matters less than that it goes.
async function farewell() {
  const last = queue.splice(0).map(run);
  let timer;
  // This one keeps the process: whoever waits for the end of this gets it.
  const limit = new Promise((done) => (timer = setTimeout(done, FAREWELL_MS)));
  await Promise.race([Promise.all([draining, ...last]), limit]);
  clearTimeout(timer);
}

// What an event on OpenCode's bus tells. `prompt` and `reply` carry answers out, as far as there is a way to.
function listener({ prompt, reply }) {
  const status = new Map();
  const titles = new Map();
  // Whether this is news about the session. It counts as told until it turns out to be lost.
  const remember = (map, session, value) => {
    if (map.get(session) === value) return undefined;
    if (!map.has(session) && map.size >= SESSIONS_MAX) map.delete(map.keys().next().value);
    map.set(session, value);
    return () => map.get(session) === value && map.delete(session);
  };
  return (event) => {
    const type = event?.type;
    const about = event?.properties;
    if (typeof type !== "string" || typeof about !== "object" || about === null) return;
    const session = about.sessionID ?? about.info?.id;
    // Where no answer can be carried out, nobody must be asked for one.
    const ask = (way, lost) => {
      if (!way) return hand(type, { ...event, unanswerable: true }, { lost });
      hand(type, event, { answered: (answer) => carryOut(answer, session, about, prompt, reply), lost });
    };
    if (type === "session.status") {
      // One a change: a status comes several times a step.
      const lost = remember(status, session, about.status?.type);
      if (!lost) return;
      if (about.status?.type === "idle") ask(prompt, lost);
      else hand(type, event, { lost });
    } else if (type === "session.idle" || type === "session.error") {
      status.delete(session);
      hand(type, event);
    } else if (type === "session.updated") {
      const info = about.info ?? {};
      const lost = remember(titles, session, `${info.title}\n${info.parentID ?? ""}`);
      if (lost) hand(type, event, { lost });
    } else if (type === "message.part.updated") {
      // A call that failed or was rejected has no `tool.execute.after`.
      if (about.part?.type === "tool" && about.part.state?.status === "error") hand(type, event);
    } else if (TURN_ENDS.has(type)) {
      ask(prompt);
    } else if (PERMISSIONS.has(type)) {
      ask(reply);
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
    void sweep();
    const listen = listener({
      prompt:
        client?.session?.promptAsync &&
        ((id, text) => client.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text }] } })),
      reply:
        client?.postSessionIdPermissionsPermissionId &&
        ((id, permissionID, response) =>
          client.postSessionIdPermissionsPermissionId({ path: { id, permissionID }, body: { response } })),
    });
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

  // The second one, as far as a version offers events there. It offers no way to answer a permission.
  setup: async (context) => {
    const events = context?.event?.subscribe;
    if (typeof events !== "function") return;
    void sweep();
    const listen = listener({
      prompt: context.session?.prompt && ((sessionID, text) => context.session.prompt({ sessionID, text })),
    });
    void (async () => {
      try {
        for await (const event of events.call(context.event)) listen(event);
      } catch {
        // The stream ended with OpenCode, or is of another kind.
      }
    })();
  },
};
