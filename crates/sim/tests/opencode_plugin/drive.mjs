// Drives the plugin as OpenCode does: node drive.mjs PLUGIN SURFACE
// Its input is one step a line: {bus: event} or {call: name, input, output}. It prints what the plugin asks of OpenCode, one
// JSON a line, and at the end of its input it ends as OpenCode ends.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// A plugin that makes OpenCode wait is a broken one.
const LIMIT_MS = 60000;

setTimeout(() => process.exit(3), LIMIT_MS).unref();
process.on("unhandledRejection", () => process.exit(4));

const [path, surface] = process.argv.slice(2);
const plugin = (await import(pathToFileURL(path))).default;
const asked = (what) => async (words) => {
  process.stdout.write(`${JSON.stringify({ [what]: words })}\n`);
  return {};
};

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
  const { bus, call, input, output } = JSON.parse(line);
  if (bus) await opencode.bus(bus);
  else await opencode.call(call, input, output);
}
await opencode.end();
