/** Programs that others wrote and our tests talk to: where they are, or why a test is skipped. */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import { peerMissing } from '../skipped-reporter.ts';

export type Peer =
  | { readonly kind: 'found'; readonly path: string }
  /** Hand `reason` to `context.skip`; with CI=true it fails the run. */
  | { readonly kind: 'missing'; readonly reason: string };

/** Debian keeps servers where an ordinary user's PATH does not look. */
const systemFolders = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

/** Where `npm run peers` unpacks servers that are not installed. */
export const UNPACKED = join(import.meta.dirname, '../../.cache/peers/unpacked');
/** Where `npm run peers -- --arm64` unpacks boot loaders for that architecture. */
export const UNPACKED_ARM64 = `${UNPACKED}-arm64`;
const unpackedFolders = ['usr/sbin', 'usr/bin'].map((folder) => join(UNPACKED, folder));

export interface PeerOptions {
  /** Takes no link to a program of another name: packages link their own to a common one. */
  readonly noLink?: boolean;
}

/** Looks a program up by name; `npm run peers` installs those of test/peers.txt. */
export function peer(program: string, { noLink = false }: PeerOptions = {}): Peer {
  const path = (process.env['PATH'] ?? '').split(':');
  const folders = [...path, ...systemFolders, ...unpackedFolders];
  for (const folder of folders.filter((one) => one !== '')) {
    const path = join(folder, program);
    try {
      accessSync(path, constants.X_OK);
      if (noLink && basename(realpathSync(path)) !== program) continue;
      return { kind: 'found', path };
    } catch {
      // Not in this folder.
    }
  }
  return { kind: 'missing', reason: `${peerMissing}${program}: run npm run peers` };
}

export interface PeerRun {
  readonly code: number | null;
  /** Standard output and error in the order in which they came. */
  readonly output: string;
}

/** Runs a peer to its end; killed after `timeoutMs`, and then its code is null. */
export function runPeer(
  path: string,
  args: readonly string[],
  timeoutMs = 300_000,
): Promise<PeerRun> {
  return new Promise((resolve, reject) => {
    const child: ChildProcess = spawn(path, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    });
    let output = '';
    const keep = (part: Buffer): void => {
      output += part.toString('latin1');
    };
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output }));
  });
}
