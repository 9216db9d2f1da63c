#!/usr/bin/env node
/** The rackwright program. */
import { homedir } from 'node:os';
import { createInterface } from 'node:readline/promises';
import { text as readAll } from 'node:stream/consumers';
import type { WebClient } from '@rackwright/platform';
import { nodeVersionProblem } from '@rackwright/platform';
import { nodeClock, nodeRandom, nodeUserFiles } from '@rackwright/platform/node';
import { runCli } from './app.ts';
import type { Output } from './command-io.ts';
import { exitCodes } from './failure.ts';
import { typeSecret } from './secret-line.ts';

/** The size of a VT100 terminal. */
const usualSize = { columns: 80, rows: 24 } as const;

const interrupt = new AbortController();
process.once('SIGINT', () => {
  process.exitCode = 130;
  interrupt.abort();
});
// A closed pipe ("| head") is the reader's decision, not an error.
process.stdout.on('error', () => process.exit(exitCodes.done));

/** Input after the end of a hidden line. */
let typedAhead = '';

/** Raw mode keeps the terminal from showing the input, and passes every key to us. */
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

/** Raw mode: Ctrl-C is a key like others. */
function takeKeys(take: (keys: string) => void): () => void {
  const { stdin } = process;
  stdin.setRawMode(true);
  stdin.setEncoding('utf8');
  stdin.on('data', take).resume();
  return () => {
    stdin.off('data', take).pause();
    stdin.setRawMode(false);
  };
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

/** Few commands ask a registry or an identity provider; it takes its time to load. */
const lazyWeb: WebClient = {
  send: async (...args) => (await import('./web/main.ts')).web.send(...args),
};

/** A terminal may change its size at any time; one that reports none has the usual size. */
function outputTo(stream: NodeJS.WriteStream): Output {
  return {
    write: (text) => void stream.write(text),
    get columns() {
      return stream.isTTY ? stream.columns || usualSize.columns : undefined;
    },
    get rows() {
      return stream.isTTY ? stream.rows || usualSize.rows : undefined;
    },
  };
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
  random: nodeRandom(),
  web: lazyWeb,
  readInput: async () => (process.stdin.isTTY ? undefined : await readAll(process.stdin)),
  askHidden,
  ask,
  takeKeys: process.stdin.isTTY ? takeKeys : undefined,
  out: outputTo(process.stdout),
  err: outputTo(process.stderr),
  signal: interrupt.signal,
});
process.exitCode ??= code;
