/**
 * Roots of Debian that `mmdebstrap` makes from this machine's own package sources. Made once, and
 * kept as archives: of laboratories that need the same one at once, one makes it, the others wait.
 */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openArchive } from '@rackwright/runner/ramdisk';
import { runProgram } from './processes.ts';

const ROOT = join(import.meta.dirname, '../..');
const MAKE_TIMEOUT_MS = 1_500_000;

/** Makes the archive `file` with these words for mmdebstrap, unless it is there. */
export async function debianRoot(file: string, args: readonly string[]): Promise<void> {
  if (existsSync(file)) return;
  mkdirSync(dirname(file), { recursive: true });
  const folder = join(ROOT, '.cache/apt/own');
  await openArchive({ folder, now: Date.now() });
  const sources = join(folder, 'sources.list');
  const suite = /^deb (?:\[.*\] )?\S+ (\S+) /m.exec(readFileSync(sources, 'utf8'))?.[1] ?? '';
  const fresh = `${file}.new-${process.pid}.tar`;
  const making = ['mmdebstrap', '--quiet', ...args, suite, fresh, sources];
  const unlessThere = 'test -e "$0" || { fresh=$1; shift; "$@" && mv "$fresh" "$0"; }';
  await runProgram('flock', [`${file}.lock`, 'sh', '-c', unlessThere, file, fresh, ...making], {
    timeoutMs: MAKE_TIMEOUT_MS,
  });
}
