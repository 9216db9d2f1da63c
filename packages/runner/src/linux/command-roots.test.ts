/** The shell text is the real one; `mount` and `unshare`, which need rights, are stood in for. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { linuxCommandRoots } from './command-roots.ts';

const folder = mkdtempSync(join(tmpdir(), 'rackwright-roots-'));
afterAll(() => rmSync(folder, { recursive: true }));
const programs = join(folder, 'bin');
const mounted = join(folder, 'mounted');
mkdirSync(programs);
const standIns = {
  mount: `echo "$*" >> ${mounted}`,
  unshare: 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
};
for (const [name, text] of Object.entries(standIns)) {
  writeFileSync(join(programs, name), `#!/bin/sh\n${text}\n`);
  chmodSync(join(programs, name), 0o755);
}

async function entering(secrets: Readonly<Record<string, string>>) {
  const roots = linuxCommandRoots({
    folder: join(folder, 'roots'),
    path: `${programs}:/usr/bin:/bin`,
    procRoot: '/proc',
    chowns: false,
  });
  const root = await roots.make({ entriesMax: 10, bytesMax: 1_000 });
  return root.enter({
    ...{ operationId: 'op1', commandLine: ['/usr/bin/env'], folder: '/', secrets },
    environment: { PATH: '/usr/bin:/bin', SHOWN: 'yes' },
  });
}

async function seenWith(secrets: Readonly<Record<string, string>>): Promise<string[]> {
  const { file, args, environment } = await entering(secrets);
  const env = { ...environment, RACKWRIGHT_OPERATION: 'op1' };
  const seen = execFileSync(file, args, { env, encoding: 'utf8' }).split('\n').filter(Boolean);
  // The stand-in's shell adds it for the program, behind the text that is tested.
  return seen.filter((line) => !line.startsWith('PWD='));
}

describe('a program in a folder that it takes for "/"', () => {
  test('sees its own environment and nothing of ours', async () => {
    const own = ['PATH=/usr/bin:/bin', 'RACKWRIGHT_OPERATION=op1', 'SHOWN=yes'];
    expect((await seenWith({})).sort()).toEqual(own);
    expect((await seenWith({ TOKEN: 'x' })).sort()).toEqual([...own, 'TOKEN=x']);
    const root = join(folder, 'roots/root');
    const each = ['dev', 'proc', 'sys'].map((name) => `-o rbind /${name} ${root}/${name}\n`);
    expect(readFileSync(mounted, 'utf8')).toBe([...each, ...each].join(''));
  });

  test('gets secrets under whatever names they have, those of our shell as well', async () => {
    const names = ['root', 'each', 'name', 'path', 'IN', 'i', 'USER', 'HOME', 'TERM', 'a_1'];
    const secrets = Object.fromEntries(names.map((name) => [name, `secret of ${name}`]));
    const seen = await seenWith(secrets);
    for (const name of names) expect(seen).toContain(`${name}=secret of ${name}`);
  });

  test.each(['PATH', 'LC_ALL', 'PWD', 'OLDPWD', 'SHLVL', '_'])(
    'is not started when a secret would be lost: %s',
    async (name) => {
      await expect(entering({ [name]: 'x' })).rejects.toThrow(`the variable ${name}`);
    },
  );
});
