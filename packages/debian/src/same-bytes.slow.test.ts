import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Bundle, bundle } from './bundle.ts';
import { commandFiles, programPackage, programs } from './contents.ts';
import { debianPackage } from './deb.ts';

const root = join(import.meta.dirname, '../../..');
const { entry } = programs.cli;
const version = '1.0';
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'same-bytes-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Another clone: the packages of this tree, and the program's parts of other authors. */
function cloneInto(to: string, { parts }: Bundle): string {
  const own = readdirSync(join(root, 'packages'));
  cpSync(join(root, 'tsconfig.json'), join(to, 'tsconfig.json'));
  for (const name of own) {
    cpSync(join(root, 'packages', name), join(to, 'packages', name), {
      recursive: true,
      filter: (path) => !/\/node_modules$|\.test\.ts$/.test(path),
    });
  }
  for (const { name } of parts) {
    const path = join('node_modules', name);
    cpSync(join(root, path), join(to, path), { recursive: true });
  }
  const scope = join(to, 'node_modules/@rackwright');
  mkdirSync(scope, { recursive: true });
  for (const name of own)
    symlinkSync(relative(scope, join(to, 'packages', name)), join(scope, name));
  return to;
}

/** The package of the command. Which Node is in it is pinned, and not the question here. */
async function packed(made: Bundle): Promise<Uint8Array> {
  const node = { bytes: Buffer.from('node'), version: '1', licence: '' };
  const release = { version, timeSeconds: 1_700_000_000 };
  const content = programPackage('cli', 'amd64', release, {
    ...{ bundle: made, node },
    made: await commandFiles(release),
    served: new Map(),
  });
  return debianPackage(content, release.timeSeconds);
}

test('two clones in different folders give the same bytes', async () => {
  const here = await bundle(root, entry, version, 'parts');
  const paths = [join(folder, 'a'), join(folder, 'somewhere/else, quite deep')];
  const [a, b] = await Promise.all(
    paths.map(async (to) => packed(await bundle(cloneInto(to, here), entry, version, 'parts'))),
  );
  expect(a?.length).toBeGreaterThan(100_000);
  expect(Buffer.compare(a ?? Buffer.alloc(0), b ?? Buffer.alloc(1))).toBe(0);
  expect(Buffer.compare(a ?? Buffer.alloc(0), await packed(here))).toBe(0);
});
