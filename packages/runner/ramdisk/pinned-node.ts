/** The Node that package-lock.json pins, for a processor that need not be this machine's. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { namesOf, type RamdiskArchitecture } from './architecture.ts';

const run = promisify(execFile);
const programTimeoutMs = 300_000;

/** The unpacked package of npm; its program is `bin/node` in `folder`. */
export interface PinnedNode {
  readonly name: string;
  readonly version: string;
  readonly folder: string;
}

/**
 * The Node of this processor is installed below `root`; npm fetches another's into `cacheFolder`,
 * once for each version. Rejects content that package-lock.json does not name.
 */
export async function pinnedNode(
  root: string,
  cacheFolder: string,
  architecture: RamdiskArchitecture,
): Promise<PinnedNode> {
  const name = namesOf[architecture].nodePackage;
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<
      Record<string, { readonly version: string; readonly integrity: string } | undefined>
    >;
  };
  const pinned = lock.packages[`node_modules/${name}`];
  if (pinned === undefined) throw new Error(`package-lock.json pins no ${name}`);
  const installed = join(root, 'node_modules', name);
  const folder = existsSync(join(installed, 'bin/node'))
    ? installed
    : await fetched(cacheFolder, name, pinned);
  return { name, version: pinned.version, folder };
}

async function fetched(
  cacheFolder: string,
  name: string,
  pinned: { readonly version: string; readonly integrity: string },
): Promise<string> {
  const home = join(cacheFolder, `${name}-${pinned.version}`);
  if (existsSync(home)) return join(home, 'package');
  const fresh = `${home}.new-${process.pid}`;
  await mkdir(fresh, { recursive: true });
  try {
    const args = ['pack', `${name}@${pinned.version}`, '--silent', '--pack-destination', fresh];
    const { stdout } = await run('npm', args, { timeout: programTimeoutMs });
    const file = join(fresh, stdout.trim().split('\n').at(-1) ?? '');
    const [algorithm = '', wanted = ''] = pinned.integrity.split('-');
    const got = createHash(algorithm)
      .update(await readFile(file))
      .digest('base64');
    if (got !== wanted) throw new Error(`${file} is not what package-lock.json pins`);
    await run('tar', ['-xzf', file, '-C', fresh], { timeout: programTimeoutMs });
    await rm(file);
    await rename(fresh, home);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  return join(home, 'package');
}
