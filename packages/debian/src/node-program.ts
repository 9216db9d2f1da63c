/** The pinned Node for a processor, stripped: a package has it to run its program. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { errorText } from '@rackwright/platform';
import { pinnedNode, type RamdiskArchitecture } from '@rackwright/runner/ramdisk';
import { licenceText } from './bundle.ts';

const run = promisify(execFile);
const programTimeoutMs = 300_000;

export const architectures = ['amd64', 'arm64'] as const satisfies readonly RamdiskArchitecture[];

const ownStrip = { x64: 'amd64', arm64: 'arm64' } as Readonly<Record<string, RamdiskArchitecture>>;
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
 * The Node that package-lock.json pins. `cacheFolder` keeps the fetched and stripped files. Rejects
 * without a `strip` for the processor: the packed program must not depend on the machine that packs
 * it.
 */
export async function nodeProgram(
  root: string,
  cacheFolder: string,
  architecture: RamdiskArchitecture,
): Promise<NodeProgram> {
  const { name, version, folder } = await pinnedNode(root, cacheFolder, architecture);
  const licence = licenceText(folder);
  const binary = join(folder, 'bin/node');
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
  architecture: RamdiskArchitecture,
): Promise<void> {
  const fresh = `${stripped}.new-${process.pid}`;
  try {
    await run(strip, ['-o', fresh, binary], { timeout: programTimeoutMs });
  } catch (cause) {
    const [text] = errorText(cause).split('\n', 1);
    throw new Error(
      `Node for ${architecture} cannot be stripped (${text}): install ${strip} (Debian: ` +
        'binutils, binutils-aarch64-linux-gnu, binutils-x86-64-linux-gnu), or leave this ' +
        'architecture out by --architectures',
      { cause },
    );
  }
  await rename(fresh, stripped);
}
