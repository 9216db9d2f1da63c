/** The real program, killed at each boundary of a restoration, and what comes after that. */
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { openSqliteStore } from '@rackwright/store';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { programOf } from './programs.ts';

const program = programOf('controlplane');
const [clock, random] = [nodeClock(), nodeRandom()];
/** Enough that the store comes in several pieces. */
const hosts = 300;
const identityFiles: Readonly<Record<string, string>> = {
  'admin-token.sha256': 'aa11\n',
  'ca.pem': 'public',
  'ca.sealed': 'c2VhbGVk\n',
  complete: 'yes',
  'secrets.key': `${Buffer.alloc(32).toString('base64')}\n`,
};

let folder = '';
let tar = '';
let into = '';
let storePath = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-restore-killed-'));
  const source = join(folder, 'data');
  tar = join(folder, 'backup.tar');
  await mkdir(join(source, 'identity'), { recursive: true, mode: 0o700 });
  for (const [name, text] of Object.entries(identityFiles)) {
    await writeFile(join(source, 'identity', name), text, { mode: 0o600 });
  }
  const store = await openSqliteStore({ path: join(source, 'state.db'), random, clock });
  for (let n = 0; n < hosts; n += 1) {
    await store.put(`hosts.h${n}`, new Uint8Array(2_000).fill(n), 'absent');
  }
  await store.close();
  const config = join(folder, 'from.json');
  await writeFile(config, JSON.stringify({ dataFolder: source }));
  const { status, stderr } = run('backup', '--config', config, '--to', tar);
  if (status !== 0) throw new Error(stderr);
});

afterAll(() => rm(folder, { recursive: true }));

let attempt = 0;
beforeEach(() => {
  attempt += 1;
  into = join(folder, `into-${attempt}`);
  storePath = join(into, 'state.db');
});

function run(...args: string[]) {
  const { status, signal, stderr } = spawnSync(process.execPath, [program, ...args], {
    encoding: 'utf8',
    timeout: 60_000,
    killSignal: 'SIGTERM',
  });
  return { status, signal, stderr };
}

async function configOf(crash?: { readonly name: string; readonly occurrence: number }) {
  const path = join(folder, 'into.json');
  const armed = join(folder, 'armed');
  const content = {
    dataFolder: into,
    store: { driver: 'sqlite', path: storePath },
    operators: { port: 0 },
    agents: { port: 0 },
    metrics: { port: 0 },
    crashAt: armed,
  };
  await (crash === undefined
    ? rm(armed, { force: true })
    : writeFile(armed, JSON.stringify(crash)));
  await writeFile(path, JSON.stringify(content));
  return path;
}

async function restore(crash?: { readonly name: string; readonly occurrence: number }) {
  return run('restore', '--config', await configOf(crash), '--from', tar);
}

async function expectWhole(): Promise<void> {
  const expected = ['identity', ...Object.keys(identityFiles).map((name) => `identity/${name}`)];
  const found = await readdir(into, { recursive: true });
  const stores = storePath.startsWith(`${into}/`) ? ['state.db'] : [];
  expect(found.sort()).toEqual([...expected, ...stores].sort());
  for (const [name, text] of Object.entries(identityFiles)) {
    expect(await readFile(join(into, 'identity', name), 'utf8'), name).toBe(text);
  }
  const store = await openSqliteStore({ path: storePath, random, clock });
  const { entries } = await store.list('hosts');
  expect(entries).toHaveLength(hosts);
  await store.close();
}

const unfinished = [
  { name: 'cp.restoreBegun', occurrence: 1 },
  { name: 'cp.restoreFileWritten', occurrence: 1 },
  { name: 'cp.restoreFileWritten', occurrence: 6 },
  { name: 'cp.restoreUnpacked', occurrence: 1 },
  { name: 'cp.restoreStoreOpened', occurrence: 1 },
  { name: 'cp.restoreStoreClosed', occurrence: 1 },
  { name: 'cp.restoreStorePlaced', occurrence: 1 },
];
const finished = [
  { name: 'cp.restoreIdentityPlaced', occurrence: 1 },
  { name: 'cp.restoreStoreCleared', occurrence: 1 },
];

describe.each(unfinished)('a restoration killed at $name ($occurrence)', (crash) => {
  test('is no control plane, and the next one begins again and comes out whole', async () => {
    expect(await restore(crash)).toMatchObject({ signal: 'SIGKILL' });
    const started = run('--config', await configOf());
    expect(started).toMatchObject({ status: 1 });
    expect(started.stderr).toContain('run the restore again');
    expect(await readdir(into)).not.toContain('identity');
    expect(await restore()).toMatchObject({ status: 0, stderr: '' });
    await expectWhole();
  });
});

describe.each(unfinished.filter(({ name }) => /FileWritten|StorePlaced/.test(name)))(
  'one killed at $name ($occurrence), its store apart,',
  (crash) => {
    test('can be killed there again, and while the next one clears up', async () => {
      storePath = join(folder, `stores-${attempt}`, 'kept.db');
      expect(await restore(crash)).toMatchObject({ signal: 'SIGKILL' });
      const clearing = { name: 'cp.restoreStoreCleared', occurrence: 1 };
      expect(await restore(clearing)).toMatchObject({ signal: 'SIGKILL' });
      expect(await restore(crash)).toMatchObject({ signal: 'SIGKILL' });
      expect(await restore()).toMatchObject({ status: 0, stderr: '' });
      await expectWhole();
      expect(await readdir(join(folder, `stores-${attempt}`))).toEqual(['kept.db']);
    });
  },
);

test('one killed after it took its own store away begins again', async () => {
  expect(await restore({ name: 'cp.restoreStorePlaced', occurrence: 1 })).toMatchObject({
    signal: 'SIGKILL',
  });
  expect(await restore({ name: 'cp.restoreStoreTakenAway', occurrence: 1 })).toMatchObject({
    signal: 'SIGKILL',
  });
  expect(await restore()).toMatchObject({ status: 0, stderr: '' });
  await expectWhole();
});

test('a store that a person has put there meanwhile is not taken away', async () => {
  expect(await restore({ name: 'cp.restoreUnpacked', occurrence: 1 })).toMatchObject({
    signal: 'SIGKILL',
  });
  await writeFile(storePath, 'mine');
  const again = await restore();
  expect(again).toMatchObject({ status: 1 });
  expect(again.stderr).toContain('holds state.db');
  expect(await readFile(storePath, 'utf8')).toBe('mine');
});

describe.each(finished)('a restoration killed at $name', (crash) => {
  test('was whole: it says so, and the control plane clears up after it', async () => {
    expect(await restore(crash)).toMatchObject({ signal: 'SIGKILL' });
    const again = await restore();
    expect(again).toMatchObject({ status: 1 });
    expect(again.stderr).toContain('came to its end: start the control plane');
    // The made-up identity is refused, after the clearing up.
    expect(run('--config', await configOf())).toMatchObject({ status: 1 });
    await expectWhole();
  });
});
