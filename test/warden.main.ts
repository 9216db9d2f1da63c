/**
 * `node warden.main.ts FOLDER`: waits until its standard input closes, then takes back what the run
 * of that folder made in the machine.
 */
import { takeBack } from './run-leftovers.ts';

const [folder = ''] = process.argv.slice(2);
if (folder === '') throw new Error('usage: warden.main.ts FOLDER');
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);

process.stdin.resume();
process.stdin.once('close', () => void end());

async function end(): Promise<void> {
  for (const line of await takeBack(folder)) console.error(line);
}
