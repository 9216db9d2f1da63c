import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { chmod, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock, Disk, LogFields } from '@rackwright/platform';
import { nodeDisk, nodeRandom } from '@rackwright/platform/node';
import { recordingLog } from '@rackwright/platform/testing';
import type { KeyAndChain } from '@rackwright/rpc';
import { openMemoryStore, type StateStore } from '@rackwright/store';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { StoreFollower } from '../following/index.ts';
import { hashAdminToken } from './admin-token.ts';
import { openAuthorities } from './authorities.ts';
import { type Identity, type IdentityOptions, openIdentity, withAuthorities } from './identity.ts';
import { defaultTrustTiming } from './rotation.ts';

const dayMs = 86_400_000;
const startMs = Date.UTC(2026, 10, 20);
const files = [
  'admin-token.sha256',
  'admin.token',
  'ca.pem',
  'ca.sealed',
  'complete',
  'erasure.key',
  'secrets.key',
  'server.key',
  'server.pem',
  'trust.pem',
];

let folder: string;
let diskFull: boolean;
let options: IdentityOptions;
let store: StateStore;
let serverNames: string[];
let lines: { fields: LogFields; message: string }[];
let time: { nowMs: number; fire: (() => void)[] };

beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), 'rackwright-identity-')), 'identity');
  lines = [];
  time = { nowMs: startMs, fire: [] };
  const log = recordingLog(({ fields, message }) => void lines.push({ fields, message }));
  const clock: Clock = {
    nowMs: () => time.nowMs,
    suspendAwareMs: () => time.nowMs,
    after: (_delayMs, callback) => {
      time.fire.push(callback);
      return () => {
        time.fire = time.fire.filter((each) => each !== callback);
      };
    },
  };
  diskFull = false;
  const real = nodeDisk();
  const disk: Disk = {
    ...real,
    writeAtomic: (path, contents, mode) =>
      diskFull
        ? Promise.reject(new Error('no space left'))
        : real.writeAtomic(path, contents, mode),
  };
  options = { disk, random: nodeRandom(), clock, log, folder, caLifetimeMs: 730 * dayMs };
  store = await openMemoryStore({ random: nodeRandom() });
  serverNames = ['cp.example', '127.0.0.1', '::1'];
});

afterEach(() => rm(join(folder, '..'), { recursive: true }));

/** A completed start. */
async function open(given: IdentityOptions = options): Promise<Identity> {
  const own = await openIdentity(given);
  if (own.isNew) await own.complete();
  const parts = { ...given, ...own, store, serverNames, sealer: own.secrets };
  const timing = { ...defaultTrustTiming };
  return withAuthorities(own, await openAuthorities({ ...parts, timing }));
}

const read = (name: string) => readFile(join(folder, name), 'utf8');

describe('the first start', () => {
  test('makes everything, private files for the owner only', async () => {
    const identity = await open();
    expect(identity.isNew).toBe(true);
    expect((await readdir(folder)).sort()).toEqual(files);
    const published = ['ca.pem', 'server.pem', 'trust.pem', 'complete'];
    for (const name of files) {
      const { mode } = await stat(join(folder, name));
      expect([name, mode & 0o777]).toEqual([name, published.includes(name) ? 0o644 : 0o600]);
    }
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
  });

  test('says where the admin token is, never what it is, and keeps only its hash', async () => {
    const identity = await open();
    const token = (await read('admin.token')).trim();
    expect(lines).toHaveLength(1);
    expect(lines[0]?.fields).toEqual({ file: join(folder, 'admin.token') });
    expect(JSON.stringify(lines)).not.toContain(token);
    expect(await read('admin-token.sha256')).not.toContain(token);
    expect(hashAdminToken(token)).toBe(identity.adminTokenSha256);
  });

  test('makes certificates that openssl accepts', async () => {
    await open();
    const verify = (...args: string[]) =>
      execFileSync('openssl', ['verify', '-CAfile', 'ca.pem', ...args], { cwd: folder }).toString();
    const at = String(startMs / 1_000);
    expect(verify('-attime', at, '-purpose', 'sslserver', 'server.pem')).toContain('OK');
    expect(verify('-attime', at, '-verify_hostname', 'cp.example', 'server.pem')).toContain('OK');
    expect(verify('-attime', at, '-verify_ip', '::1', 'server.pem')).toContain('OK');
  });

  test('a start that was interrupted goes on where it stopped', async () => {
    const identity = await open();
    await rm(join(folder, 'complete'));
    await rm(join(folder, 'admin-token.sha256'));
    const again = await open();
    expect(again.caSha256).toBe(identity.caSha256);
    expect(again.isNew).toBe(true);
    const token = (await read('admin.token')).trim();
    expect(hashAdminToken(token)).toBe(again.adminTokenSha256);
    expect((await readdir(folder)).sort()).toEqual(files);
  });
});

describe('a later start', () => {
  test('makes another admin token when told to, and the old one is none any more', async () => {
    const first = await open();
    const old = await read('admin.token');
    const second = await open({ ...options, newAdminToken: true });
    const token = await read('admin.token');
    expect(token).not.toBe(old);
    expect(hashAdminToken(token.trim())).toBe(second.adminTokenSha256);
    expect(second.adminTokenSha256).not.toBe(first.adminTokenSha256);
    expect((await open()).adminTokenSha256).toBe(second.adminTokenSha256);
    expect(second.erasure).toEqual(first.erasure);
  });

  test('finds the same identity, also without the token’s file', async () => {
    const first = await open();
    await rm(join(folder, 'admin.token'));
    const second = await open();
    expect(second.isNew).toBe(false);
    for (const key of ['caCertificatePem', 'caSha256', 'erasure', 'adminTokenSha256'] as const) {
      expect(second[key]).toEqual(first[key]);
    }
    expect(second.secrets.keyId).toBe(first.secrets.keyId);
  });

  test.each(['ca.sealed', 'server.key', 'erasure.key', 'secrets.key', 'admin-token.sha256'])(
    'refuses when others can read %s, naming it and the command',
    async (name) => {
      await open();
      await chmod(join(folder, name), 0o640);
      await expect(open()).rejects.toThrow(`run: chmod 600 ${join(folder, name)}`);
    },
  );

  test('refuses when others can enter the folder', async () => {
    await open();
    await chmod(folder, 0o755);
    await expect(open()).rejects.toThrow(`run: chmod 700 ${folder}`);
  });

  test.each(['server.key', 'erasure.key', 'secrets.key', 'admin-token.sha256'])(
    'refuses when %s is lost, and regenerates nothing',
    async (name) => {
      await open();
      await rm(join(folder, name));
      await expect(open()).rejects.toThrow(`${join(folder, name)} is missing`);
      expect(await readdir(folder)).not.toContain(name);
    },
  );

  test('restores trust.pem, which follows from its key', async () => {
    const { erasure } = await open();
    await rm(join(folder, 'trust.pem'));
    await open();
    expect(await read('trust.pem')).toBe(erasure.publicKeyPem);
  });
});

describe('the server certificate', () => {
  const shown = ({ authorities }: Identity): KeyAndChain => authorities.now.server.tls;

  test('is renewed at a start past its half life, or under other names', async () => {
    const first = shown(await open());
    time.nowMs += 44 * dayMs;
    expect(shown(await open())).toEqual(first);
    time.nowMs += 2 * dayMs;
    expect(shown(await open())).not.toEqual(first);
    serverNames = ['other.example'];
    const third = shown(await open());
    expect(new X509Certificate(third.certificateChainPem).subjectAltName).toBe('DNS:other.example');
  });

  test('is renewed while running, and again after a failure', async () => {
    const { authorities } = await open();
    const following = new StoreFollower({ ...options, store, retryDelayMs: 1_000 });
    await authorities.start(following, () => []);
    const renewed: KeyAndChain[] = [];
    authorities.onChange((now) => renewed.push(now.server.tls));
    time.nowMs += 46 * dayMs;
    await fireUntil(() => renewed.length === 1);
    expect(await read('server.pem')).toContain(
      renewed[0]?.certificateChainPem.split('-----END')[0] ?? 'none',
    );
    time.nowMs += 46 * dayMs;
    diskFull = true;
    await fireUntil(() => lines.some(({ message }) => message.includes('could not be renewed')));
    expect(renewed).toHaveLength(1);
    diskFull = false;
    await fireUntil(() => renewed.length === 2);
    authorities.stop();
    expect(time.fire).toHaveLength(0);
  });
});

/** Fires every timer, repeatedly, until `holds`. */
async function fireUntil(holds: () => boolean): Promise<void> {
  const holdsAfterFiring = () => {
    if (!holds()) for (const callback of time.fire.splice(0)) callback();
    return holds();
  };
  await expect.poll(holdsAfterFiring, { interval: 5, message: String(holds) }).toBe(true);
}
