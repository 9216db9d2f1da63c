/** Backups of a real folder with a real store, restored, and interrupted at every point. */

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/messages';
import type { LocalListener } from '@rackwright/platform';
import {
  nodeClock,
  nodeDisk,
  nodeLargeFiles,
  nodeLocalCalls,
  nodeRandom,
} from '@rackwright/platform/node';
import { quietLog as log } from '@rackwright/platform/testing';
import { openSqliteStore, type StateStore } from '@rackwright/store';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type ControlPlaneConfig, parseConfig } from '../config.ts';
import {
  createSecrets,
  formatKey,
  openKeySource,
  ownerOnlyFile,
  secretsKeyId,
} from '../secrets/index.ts';
import { copyStore, removeCopy } from './copy-service.ts';
import { backupCommand, openCopyService, restoreCommand } from './index.ts';
import { tarEnd, tarHeader, tarPadding } from './tar.ts';

/** vitest's own is one second, which a loaded machine does not keep. */
const patienceMs = 60_000;

const [clock, disk, files, random] = [nodeClock(), nodeDisk(), nodeLargeFiles(), nodeRandom()];
const calls = nodeLocalCalls();
const privateKey = 'the CA’s private key';

let folder = '';
let config: ControlPlaneConfig;
let target: ControlPlaneConfig;
let tar = '';

const open = (path: string, restored = false) => openSqliteStore({ path, random, clock, restored });
const parts = { disk, files, calls, clock, random };
const backup = (to = tar) =>
  backupCommand(config, to, {
    ...parts,
    openStore: () => open(config.store.driver === 'sqlite' ? config.store.path : ''),
  });
const restore = (from = tar, into = target) =>
  restoreCommand(into, from, { ...parts, openRestored: (path) => open(path, true) });

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-backup-'));
  const configOf = (name: string) =>
    parseConfig(JSON.stringify({ dataFolder: join(folder, name) }));
  config = configOf('data');
  target = configOf('new');
  tar = join(folder, 'backup.tar');
  const identity = join(config.dataFolder, 'identity');
  await mkdir(identity, { recursive: true, mode: 0o700 });
  await writeFile(join(identity, 'ca.key'), privateKey, { mode: 0o600 });
  await writeFile(join(identity, 'ca.pem'), 'public');
  await writeFile(join(identity, 'secrets.key'), formatKey(new Uint8Array(32)), { mode: 0o600 });
  await writeFile(join(identity, 'complete'), 'yes');
  const store = await open(join(config.dataFolder, 'state.db'));
  await store.put('hosts.h1', new Uint8Array(1_000).fill(1), 'absent');
  const credential = create(wire.CredentialRecordSchema, {
    credential: { name: 'credentials/c1', version: 1n },
    ...createSecrets([new Uint8Array(32)], random).seal('credentials/c1', 1n, 'calvin'),
  });
  await store.put('credentials.c1', toBinary(wire.CredentialRecordSchema, credential), 'absent');
  await store.close();
});

afterEach(() => rm(folder, { recursive: true }));

async function inventory(of: string): Promise<string[]> {
  const names = await readdir(of, { recursive: true });
  return names.sort();
}

describe('a backup', () => {
  test.each([
    ['the archive', () => tar, /name a file in a folder of that user/],
    [
      'the data',
      () => join(config.dataFolder, 'identity/complete'),
      /chown -R rackwright: .* owner of that folder/,
    ],
  ])(
    'a user who may not make a backup is told who that is, and what to do: %s',
    async (_, its, advice) => {
      const refused = its();
      const refusing = {
        ...disk,
        stat: async (path: string) => {
          if (path !== refused) return disk.stat(path);
          const message = `EACCES: permission denied, stat '${path}'`;
          throw Object.assign(new Error(message), { code: 'EACCES', path });
        },
        read: async (path: string) => {
          if (path !== refused) return disk.read(path);
          const message = `EACCES: permission denied, open '${path}'`;
          throw Object.assign(new Error(message), { code: 'EACCES', path });
        },
      };
      const openStore = () => open(join(config.dataFolder, 'state.db'));
      const said = await backupCommand(config, tar, { ...parts, disk: refusing, openStore }).catch(
        (error: unknown) => String(error),
      );
      expect(said).toMatch(/permission denied.*runs as rackwright, also when root calls it/);
      expect(said).toMatch(advice);
      expect(String(said).includes('name a file')).toBe(refused === tar);
    },
  );

  test('comes back whole, as another incarnation, each file with its rights', async () => {
    const said = await backup();
    expect(said.join('\n')).toContain('The key of secrets is in it');
    expect((await stat(tar)).mode & 0o777).toBe(0o600);
    await rm(config.dataFolder, { recursive: true });
    expect((await restore()).join('\n')).toContain('accept-restored-store');
    expect(await inventory(target.dataFolder)).toEqual([
      'identity',
      'identity/ca.key',
      'identity/ca.pem',
      'identity/complete',
      'identity/secrets.key',
      'state.db',
    ]);
    const mode = async (name: string) => (await stat(join(target.dataFolder, name))).mode & 0o777;
    expect(await mode('identity')).toBe(0o700);
    expect(await mode('identity/ca.key')).toBe(0o600);
    expect(await mode('identity/ca.pem')).toBe(0o644);
    expect(await readFile(join(target.dataFolder, 'identity/ca.key'), 'utf8')).toBe(privateKey);
    const store = await open(join(target.dataFolder, 'state.db'));
    expect(await store.get('hosts.h1')).toMatchObject({ kind: 'found', revision: 1 });
    await store.close();
  });

  test('is an archive that tar reads', async () => {
    await backup();
    const names = execFileSync('tar', ['-tf', tar], { encoding: 'utf8' }).trim().split('\n');
    expect(names[0]).toBe('manifest.json');
    expect(names).toContain('state.db');
    const manifest: unknown = JSON.parse(
      execFileSync('tar', ['-xOf', tar, 'manifest.json'], { encoding: 'utf8' }),
    );
    expect(manifest).toMatchObject({ format: 'rackwright-backup/1', store: { revision: 2 } });
  });

  test('replaces no file, and leaves nothing behind when it cannot be made', async () => {
    await writeFile(tar, 'mine');
    await expect(backup()).rejects.toThrow('exists already');
    expect(await readFile(tar, 'utf8')).toBe('mine');
    const nowhere = join(folder, 'none', 'backup.tar');
    await expect(backup(nowhere)).rejects.toThrow();
    await rm(join(config.dataFolder, 'identity/complete'));
    await expect(backup(join(folder, 'b.tar'))).rejects.toThrow('has ever started');
    expect((await readdir(folder)).sort()).toEqual(['backup.tar', 'data']);
    expect(await inventory(config.dataFolder)).not.toContain('copy');
  });
});

describe('a backup of a control plane that runs', () => {
  let store: StateStore;
  let service: LocalListener;
  beforeEach(async () => {
    store = await open(join(config.dataFolder, 'state.db'));
    service = await openCopyService(
      { store, files, disk, random, clock, log, folder: config.dataFolder },
      calls,
    );
  });
  afterEach(async () => {
    await service.close();
    await store.close();
  });

  test('holds what was written a moment ago, and not what comes after', async () => {
    await store.put('hosts.h2', new Uint8Array(1_000).fill(2), 'absent');
    await backup();
    await store.put('hosts.h3', new Uint8Array(1_000).fill(3), 'absent');
    await restore();
    const copy = await open(join(target.dataFolder, 'state.db'));
    expect((await copy.list('hosts')).entries.map(({ key }) => key)).toEqual([
      'hosts.h1',
      'hosts.h2',
    ]);
    expect(copy.incarnation).not.toBe(store.incarnation);
    await copy.close();
    const left = await inventory(config.dataFolder);
    expect(left.filter((name) => name.startsWith('copy-'))).toEqual([]);
  });

  const copies = async () =>
    (await inventory(config.dataFolder)).filter((name) => name.startsWith('copy-'));
  const socket = () => join(config.dataFolder, 'control.sock');

  test('is made once at a time: its copy stays until it has ended', async () => {
    const first = await calls.callAndStay(socket(), 'copy', 10_000);
    expect(JSON.parse(first?.answer ?? '')).toMatchObject({ driver: 'sqlite', revision: 2 });
    const [copy] = await copies();
    await expect(backup()).rejects.toThrow('another backup is being made');
    expect(await copies()).toEqual([copy]);
    await first?.release();
    await backup();
    await backup(join(folder, 'at-once.tar'));
    expect(await copies()).toEqual([]);
  });

  test('begun twice is whole, and disturbed by the other at no time', async () => {
    for (let n = 0; n < 200; n += 1) {
      await store.put(`hosts.many${n}`, new Uint8Array(50_000).fill(n), 'absent');
    }
    const one = backup(join(folder, 'one.tar'));
    // Either seen during the copy, or finished between two looks.
    let ended = false;
    const end = one.finally(() => {
      ended = true;
    });
    const patience = { interval: 1, timeout: patienceMs };
    await vi.waitUntil(async () => ended || (await copies()).length > 0, patience);
    const [other] = await Promise.allSettled([backup(join(folder, 'two.tar'))]);
    // Fulfilled if the first was earlier.
    if (other.status === 'rejected') {
      expect(String(other.reason)).toContain('another backup is being made');
    }
    await end;
    await restore(join(folder, 'one.tar'));
    expect(await copies()).toEqual([]);
  });

  test('leaves no copy when it dies, and what an ended control plane left goes', async () => {
    await (await calls.callAndStay(socket(), 'copy', 10_000))?.release();
    await vi.waitUntil(async () => (await copies()).length === 0, { timeout: patienceMs });
    await service.close();
    await writeFile(join(config.dataFolder, `copy-${'0'.repeat(32)}.db`), 'left');
    service = await openCopyService(
      { store, files, disk, random, clock, log, folder: config.dataFolder },
      calls,
    );
    expect(await copies()).toEqual([]);
  });

  test('says of the copy what is in the copy, whatever is written meanwhile', async () => {
    const { copyTo } = store;
    const slow: StateStore = Object.create(store, {
      copyTo: {
        value: async (path: string) => {
          await copyTo?.call(store, path);
          // As if a key rotation ended between the copy and the count.
          await store.delete('credentials.c1', 2);
        },
      },
    });
    const about = await copyStore({ ...parts, store: slow, folder: config.dataFolder });
    expect(about).toMatchObject({ revision: 2, keyIds: [secretsKeyId(new Uint8Array(32))] });
    await removeCopy(about.path ?? '', files);
    expect(await copies()).toEqual([]);
  });

  test('has its keys sealed by who runs, where the key of secrets is kept apart', async () => {
    await service.close();
    const secrets = createSecrets([new Uint8Array(32)], random);
    const own = { store, files, disk, random, clock, log, secrets, folder: config.dataFolder };
    service = await openCopyService(own, calls);
    const key = { file: join(folder, 'in-nobody-else’s-reach') };
    const json = JSON.stringify({ dataFolder: config.dataFolder, secrets: { key } });
    const openStore = () => Promise.reject(new Error('the store is not ours to open'));
    await backupCommand(parseConfig(json), tar, { ...parts, openStore });
    expect((await readFile(tar, 'utf8')).includes(privateKey)).toBe(false);
    expect(execFileSync('tar', ['-tf', tar], { encoding: 'utf8' })).toContain('ca.key.sealed');
  });

  test('is refused when the key that seals in it has been taken away', async () => {
    const key = join(config.dataFolder, 'identity/secrets.key');
    await writeFile(key, formatKey(new Uint8Array(32).fill(7)), { mode: 0o600 });
    await expect(backup()).rejects.toThrow('does not hold by now');
    await expect(stat(tar)).rejects.toThrow('ENOENT');
  });
});

describe('a restoration', () => {
  beforeEach(() => backup());

  test('is into an empty folder only', async () => {
    await expect(restore(tar, config)).rejects.toThrow('into an empty folder only');
    await mkdir(target.dataFolder);
    await writeFile(join(target.dataFolder, 'something'), '');
    await expect(restore()).rejects.toThrow('holds something');
    expect(await readdir(target.dataFolder)).toEqual(['something']);
    await rm(join(target.dataFolder, 'something'));
    await mkdir(join(target.dataFolder, 'folder'));
    await expect(restore()).rejects.toThrow('holds folder');
    await rm(join(target.dataFolder, 'folder'), { recursive: true });
    await mkdir(join(target.dataFolder, 'lost+found'));
    await restore();
    await expect(restore()).rejects.toThrow('into an empty folder only');
  });

  test('takes no archive of which a byte was changed or is missing', async () => {
    const whole = await readFile(tar);
    const damaged = join(folder, 'damaged.tar');
    const step = Math.floor(whole.length / 25);
    let passed = 0;
    // The two blocks of zeros at the end have no content.
    for (let at = 0; at < whole.length - 1_024; at += step) {
      const changed = Buffer.from(whole);
      changed[at] = (changed[at] ?? 0) ^ 0x40;
      await writeFile(damaged, changed);
      const taken = await restore(damaged).then(
        () => true,
        () => false,
      );
      // File times and padding are not checked.
      if (taken) passed += 1;
      if (taken)
        expect(await readFile(join(target.dataFolder, 'identity/ca.key'), 'utf8')).toBe(privateKey);
      await rm(target.dataFolder, { recursive: true, force: true });
      await writeFile(damaged, whole.subarray(0, at));
      await expect(restore(damaged)).rejects.toThrow();
      expect(await readdir(target.dataFolder)).toEqual([]);
    }
    expect(passed).toBeLessThan(8);
  });

  test.each([
    ['identity/../../outside', 'does not name'],
    ['../outside', 'does not name'],
    ['state.db', 'does not name'],
  ])('takes no %s that the manifest does not name', async (name, text) => {
    const manifest = Buffer.from(
      JSON.stringify({
        format: 'rackwright-backup/1',
        time: '2026-11-22T00:00:00Z',
        store: { driver: 'sqlite', incarnation: 'x', revision: 1 },
        secretsKey: { keyIds: [], source: '', included: true },
        files: [],
      }),
    );
    const sum = Buffer.from(createHash('sha256').update(manifest).digest('hex'));
    const pieces = [
      ...[tarHeader('manifest.json', manifest.length, 0), manifest, tarPadding(manifest.length)],
      ...[tarHeader('manifest.json.sha256', sum.length, 0), sum, tarPadding(sum.length)],
      ...[tarHeader(name, 1, 0), Buffer.from('x'), tarPadding(1), tarEnd],
    ];
    await writeFile(join(folder, 'evil.tar'), Buffer.concat(pieces));
    await expect(restore(join(folder, 'evil.tar'))).rejects.toThrow(text);
    expect((await readdir(folder)).sort()).not.toContain('outside');
  });

  test('says what is no backup, and what is missing', async () => {
    await expect(restore(join(folder, 'none.tar'))).rejects.toThrow('is missing');
    await writeFile(join(folder, 'text'), 'x'.repeat(2_000));
    await expect(restore(join(folder, 'text'))).rejects.toThrow('cannot be read');
    await writeFile(join(folder, 'empty'), '');
    await expect(restore(join(folder, 'empty'))).rejects.toThrow();
  });

  test('asks for the key under which secrets are, where that is kept apart', async () => {
    const keys = join(folder, 'kek');
    await writeFile(keys, formatKey(new Uint8Array(32).fill(1)), { mode: 0o600 });
    const apart = parseConfig(
      JSON.stringify({ dataFolder: target.dataFolder, secrets: { key: { file: keys } } }),
    );
    const keySource = ownerOnlyFile(disk, keys);
    const again = () =>
      restoreCommand(apart, tar, { ...parts, keySource, openRestored: (path) => open(path, true) });
    await expect(again()).rejects.toThrow('add that key as a line of its own; it is in the backup');
    expect(await readdir(target.dataFolder)).toEqual([]);
    await writeFile(keys, formatKey(new Uint8Array(32).fill(1)) + formatKey(new Uint8Array(32)));
    await again();
    expect(await readdir(target.dataFolder)).toContain('state.db');
  });

  test('a restored copy whose key is kept apart opens nothing without that key', async () => {
    const keys = join(folder, 'kek');
    await writeFile(keys, formatKey(new Uint8Array(32)), { mode: 0o600 });
    const identity = join(config.dataFolder, 'identity');
    await rm(join(identity, 'secrets.key'));
    const secret: Record<string, string> = { 'server.key': 'of TLS', 'erasure.key': 'of proofs' };
    for (const [name, text] of Object.entries(secret)) await writeFile(join(identity, name), text);
    await writeFile(join(identity, 'admin.token'), 'token-of-the-first');
    const apart = (dataFolder: string) =>
      parseConfig(JSON.stringify({ dataFolder, secrets: { key: { file: keys } } }));
    const keySource = ownerOnlyFile(disk, keys);
    const sealed = join(folder, 'sealed.tar');
    const openStore = () => open(join(config.dataFolder, 'state.db'));
    const made = { ...parts, keySource, openStore };
    const said = await backupCommand(apart(config.dataFolder), sealed, made);
    expect(said.join(' ')).toMatch(/private keys are sealed.* Tokens are not in it/);
    const bytes = await readFile(sealed, 'latin1');
    for (const text of [...Object.values(secret), privateKey, 'token-of-the-first']) {
      expect(bytes.includes(Buffer.from(text).toString('latin1')), text).toBe(false);
    }
    const openRestored = (path: string) => open(path, true);
    await expect(restore(sealed)).rejects.toThrow(secretsKeyId(new Uint8Array(32)));
    const taking = { ...parts, keySource, openRestored };
    await restoreCommand(apart(target.dataFolder), sealed, taking);
    const taken = await readdir(join(target.dataFolder, 'identity'));
    const wanted = ['ca.key', 'ca.pem', 'complete', 'erasure.key', 'server.key'];
    expect(taken.sort()).toEqual(wanted);
    for (const [name, text] of Object.entries({ ...secret, 'ca.key': privateKey })) {
      const path = join(target.dataFolder, 'identity', name);
      expect(await readFile(path, 'utf8')).toBe(text);
      expect((await stat(path)).mode & 0o777).toBe(0o600);
    }
  });

  test('has no token', async () => {
    await writeFile(join(config.dataFolder, 'identity/admin.token'), 'token-of-the-first');
    const again = join(folder, 'again.tar');
    await backup(again);
    expect((await readFile(again, 'latin1')).includes('token-of-the-first')).toBe(false);
  });

  test('asks for no key where no secret is under one', async () => {
    const store = await open(join(config.dataFolder, 'state.db'));
    await store.delete('credentials.c1', 2);
    await store.close();
    const plain = join(folder, 'plain.tar');
    await backup(plain);
    const keySource = openKeySource({ kind: 'systemdCredential', name: 'secrets-key' }, { disk });
    const openRestored = (path: string) => open(path, true);
    const taking = (from: string) =>
      restoreCommand(target, from, { ...parts, keySource, openRestored });
    await expect(taking(tar)).rejects.toThrow('LoadCredential=secrets-key');
    await taking(plain);
    expect(await readdir(target.dataFolder)).toContain('state.db');
  });

  test('puts the store where it is kept apart, in a folder that it makes', async () => {
    const path = join(folder, 'stores/one/kept.db');
    const apart = parseConfig(
      JSON.stringify({ dataFolder: target.dataFolder, store: { driver: 'sqlite', path } }),
    );
    await restore(tar, apart);
    expect(await inventory(join(folder, 'stores'))).toEqual(['one', 'one/kept.db']);
    const store = await open(path);
    expect(await store.get('hosts.h1')).toMatchObject({ kind: 'found', revision: 1 });
    await store.close();
    await rm(target.dataFolder, { recursive: true });
    await expect(restore(tar, apart)).rejects.toThrow('kept.db exists');
    expect(await inventory(join(folder, 'stores'))).toEqual(['one', 'one/kept.db']);
  });

  test('leaves an unreadable folder alone', async () => {
    await cp(config.dataFolder, target.dataFolder, { recursive: true });
    await chmod(target.dataFolder, 0o700);
    const before = await inventory(target.dataFolder);
    await expect(restore()).rejects.toThrow('into an empty folder only');
    expect(await inventory(target.dataFolder)).toEqual(before);
  });
});
