#!/usr/bin/env node
/** The rackwright program. */
import { homedir } from 'node:os';
import { createInterface } from 'node:readline/promises';
import { text as readAll } from 'node:stream/consumers';
import { nodeVersionProblem } from '@rackwright/platform';
import { nodeClock, nodeUserFiles, nodeWebClient } from '@rackwright/platform/node';
import { runCli } from './app.ts';
import { exitCodes } from './failure.ts';
import { typeSecret } from './secret-line.ts';

const interrupt = new AbortController();
process.once('SIGINT', () => {
  process.exitCode = 130;
  interrupt.abort();
});
// A closed pipe ("| head") is the reader's decision, not an error.
process.stdout.on('error', () => process.exit(exitCodes.done));

/** What was typed after the end of a hidden line. */
let typedAhead = '';

/** Raw mode keeps the terminal from showing what is typed, and hands us every key. */
function askHidden(question: string): Promise<string | undefined> {
  const { stdin, stderr } = process;
  stdin.setRawMode(true);
  stdin.setEncoding('utf8');
  stderr.write(question);
  return new Promise((resolve) => {
    let text = '';
    const end = (answer: string | undefined) => {
      stdin.off('data', take).off('end', giveUp).pause();
      stdin.setRawMode(false);
      stderr.write('\n');
      resolve(answer);
    };
    const giveUp = () => end(undefined);
    const take = (keys: string) => {
      const line = typeSecret(text, keys);
      if (line.kind === 'open') {
        text = line.text;
        return;
      }
      if (line.kind === 'ended') {
        typedAhead = line.rest;
        end(line.text);
        return;
      }
      if (line.by === 'interrupt') process.exitCode = 130;
      giveUp();
    };
    stdin.on('data', take).on('end', giveUp).resume();
    take(typedAhead);
  });
}

async function ask(question: string): Promise<string | undefined> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined;
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await lines.question(question, { signal: interrupt.signal });
  } finally {
    lines.close();
  }
}

const problem = nodeVersionProblem(process.versions.node);
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`);
  process.exit(exitCodes.usage);
}
const code = await runCli(process.argv.slice(2), {
  ...nodeUserFiles(),
  environment: process.env,
  homeFolder: homedir(),
  clock: nodeClock(),
  web: nodeWebClient(),
  readInput: async () => (process.stdin.isTTY ? undefined : await readAll(process.stdin)),
  askHidden,
  ask,
  out: {
    write: (text) => void process.stdout.write(text),
    columns: process.stdout.isTTY ? process.stdout.columns : undefined,
  },
  err: {
    write: (text) => void process.stderr.write(text),
    columns: process.stderr.isTTY ? process.stderr.columns : undefined,
  },
  signal: interrupt.signal,
});
process.exitCode ??= code;
