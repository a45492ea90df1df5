// Drives the plugin as OpenCode does: node drive.mjs PLUGIN SURFACE
// Its input is one step a line: {bus: event} or {call: name, input, output}. It prints what the plugin asks of OpenCode, one
// JSON a line, and at the end of its input it ends as OpenCode ends. After a step {bus: event, settle: true}, of an event that
// is one of its kind and told always, it prints {settled: how many hooks were run so far}, once that event's hook was run, as
// was every one before it by then, and all of them have ended.

import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// A plugin that makes OpenCode wait is a broken one.
const LIMIT_MS = 60000;

setTimeout(() => process.exit(3), LIMIT_MS).unref();
process.on("unhandledRejection", () => process.exit(4));

const [path, surface] = process.argv.slice(2);
const asked = (what) => async (words) => {
  process.stdout.write(`${JSON.stringify({ [what]: words })}\n`);
  return {};
};

// Hooks are counted as they come and go.
const { spawn } = childProcess;
let begun = 0;
let running = 0;
let settling;
function settle(event) {
  if (!settling) return;
  if (settling.event === event) settling.begun = true;
  if (!settling.begun || running) return;
  settling = undefined;
  process.stdout.write(`${JSON.stringify({ settled: begun })}\n`);
}
childProcess.spawn = (command, words, options) => {
  begun += 1;
  const child = spawn(command, words, options);
  running += 1;
  child.once("close", () =>
    // Not before the plugin has drawn its conclusions.
    setImmediate(() => {
      running -= 1;
      settle();
    }),
  );
  settle(words.at(-1));
  return child;
};
syncBuiltinESMExports();
const plugin = (await import(pathToFileURL(path))).default;

// Events for whoever reads them.
const waiting = [];
let wake = () => {};
let over = false;
async function* subscribe() {
  for (;;) {
    while (waiting.length) yield waiting.shift();
    if (over) return;
    await new Promise((done) => (wake = done));
  }
}

const surfaces = {
  server: async () => {
    const client = { session: { promptAsync: asked("prompt") }, postSessionIdPermissionsPermissionId: asked("permission") };
    const hooks = await plugin.server({ client });
    return {
      bus: (event) => hooks.event({ event }),
      call: (name, input, output) => hooks[name]?.(input, output),
      end: () => hooks.dispose(),
    };
  },
  setup: async () => {
    await plugin.setup({ event: { subscribe } });
    return {
      bus: (event) => {
        waiting.push(event);
        wake();
      },
      end: () => {
        over = true;
        wake();
      },
    };
  },
};

const opencode = await surfaces[surface]();
for await (const line of createInterface({ input: process.stdin })) {
  const { bus, call, input, output, settle } = JSON.parse(line);
  if (settle) settling = { event: bus.type };
  if (bus) await opencode.bus(bus);
  else await opencode.call(call, input, output);
}
await opencode.end();
