/**
 * `node warden.main.ts FOLDER`: waits until its standard input closes, then ends every process that
 * has the folder among its words, and removes the folder.
 */
import { rmSync } from 'node:fs';
import { endProcessesOf, processesOf } from './e2e/leftovers.ts';

const [folder = ''] = process.argv.slice(2);
if (folder === '') throw new Error('usage: warden.main.ts FOLDER');
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);

process.stdin.resume();
process.stdin.once('close', () => void end());

async function end(): Promise<void> {
  const left = processesOf(folder);
  if (left.length > 0) console.error(`ended what the tests had left: ${left.length} processes`);
  await endProcessesOf(folder);
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
}
