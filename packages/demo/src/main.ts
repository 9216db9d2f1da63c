/** The demo as a program; its options are in options.ts. */
import { nodeVersionProblem } from '@rackwright/platform';
import { Demo } from './demo.ts';
import { parseOptions, usage } from './options.ts';

const exitUsage = 2;
const columnsDefault = 80;
const rowsDefault = 24;

const problem = nodeVersionProblem(process.versions.node);
if (problem !== undefined) stop(problem, 1);
if (process.platform !== 'linux') stop('The demo needs Linux: its machines are processes.', 1);
const parsed = parseOptions(process.argv.slice(2));
if (parsed.kind === 'help') stop(usage, 0);
if (parsed.kind === 'wrong') stop(`${parsed.message}\n\n${usage}`, exitUsage);
const { stdout } = process;
const demo = new Demo(
  parsed.options,
  {
    isTerminal: stdout.isTTY,
    inColour: stdout.isTTY && process.env['NO_COLOR'] === undefined,
    size: () => ({
      columns: stdout.isTTY ? stdout.columns : columnsDefault,
      rows: stdout.isTTY ? stdout.rows : rowsDefault,
    }),
    write: (text) => void stdout.write(text),
  },
  Date.now() - process.uptime() * 1_000,
);
// A reader that goes away ("| head") ends it as Ctrl-C does.
stdout.on('error', () => demo.interrupt());
let interrupts = 0;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    interrupts += 1;
    demo.interrupt();
    // A third signal ends it at once: the guard cleans up.
    if (interrupts > 2) process.exit(130);
  });
}
process.exit(await demo.run());

function stop(message: string, code: number): never {
  (code === 0 ? process.stdout : process.stderr).write(`${message.trimEnd()}\n`);
  process.exit(code);
}
