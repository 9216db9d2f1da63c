#!/usr/bin/env node
/** The rackwright program. */
import { readFile, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { text as readAll } from 'node:stream/consumers';
import { nodeVersionProblem } from '@rackwright/platform';
import { nodeClock } from '@rackwright/platform/node';
import { runCli } from './app.ts';
import { exitCodes } from './failure.ts';

const interrupt = new AbortController();
process.once('SIGINT', () => {
  process.exitCode = 130;
  interrupt.abort();
});
// A closed pipe ("| head") is the reader's decision, not an error.
process.stdout.on('error', () => process.exit(exitCodes.done));

async function readIfThere(path: string): Promise<Uint8Array | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

const problem = nodeVersionProblem(process.versions.node);
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`);
  process.exit(exitCodes.usage);
}
const code = await runCli(process.argv.slice(2), {
  environment: process.env,
  homeFolder: homedir(),
  clock: nodeClock(),
  readFile: readIfThere,
  writeFile: (path, contents) => writeFile(path, contents),
  readInput: async () => (process.stdin.isTTY ? undefined : await readAll(process.stdin)),
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
