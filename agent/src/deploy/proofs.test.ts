import { agent, asRunNumber, deploymentIdOf } from '@rackwright/messages';
import { quietLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { Journal } from '../journal/index.ts';
import { MemoryDisk } from '../journal/testing/disk.ts';
import { TestClock } from '../session/testing/clock.ts';
import { Proofs } from './proofs.ts';
import { loadDeployKey } from './token.ts';

const uid = 'ab'.repeat(16);
const keyPath = '/state/deploy-key';
const random = { bytes: (count: number) => new Uint8Array(count).fill(7), fraction: () => 0.5 };

/** One agent's proofs on a disk that outlives them. */
async function setUp(platters = new MemoryDisk(), time = new TestClock()) {
  const { disk } = platters.open();
  const { clock } = time.open();
  const log = quietLog;
  const journal = await Journal.open({ disk, path: '/state/journal', clock, random, log });
  const key = await loadDeployKey(disk, random, keyPath);
  const appended: string[] = [];
  const proofs = new Proofs({
    ...{ clock, log, key },
    journal: {
      get state() {
        return journal.state;
      },
      append: (...records) => {
        appended.push(...records.map((record) => record.case ?? ''));
        return journal.append(...records);
      },
    },
  });
  const call = (run: number, token = tokenOf(proofs, run)) =>
    proofs.phoneHome(`${uid}.${run}`, token, '10.0.0.9');
  return { appended, call, journal, platters, proofs, time };
}

function tokenOf(proofs: Proofs, run: number): string {
  return (
    proofs
      .phoneHomePath(deploymentIdOf(uid, asRunNumber(run)))
      .split('/')
      .at(-1) ?? ''
  );
}

test('a host proves its deployment with its token, durably and once', async () => {
  const { appended, call, journal, platters, proofs, time } = await setUp();
  expect(proofs.isProved(deploymentIdOf(uid, asRunNumber(3)))).toBe(false);
  expect(await Promise.all([call(3), call(3)])).toEqual(['proved', 'proved']);
  expect(await call(3)).toBe('proved');
  expect(appended).toEqual(['hostProved']);
  expect(proofs.isProved(deploymentIdOf(uid, asRunNumber(3)))).toBe(true);
  await journal.close();
  const later = await setUp(platters, time);
  expect(later.proofs.isProved(deploymentIdOf(uid, asRunNumber(3)))).toBe(true);
  expect(tokenOf(later.proofs, 3)).toBe(tokenOf(proofs, 3));
});

test('no neighbour proves a host: not without its token, nor with that of another', async () => {
  const { appended, call, proofs } = await setUp();
  const own = tokenOf(proofs, 3);
  const others =
    proofs
      .phoneHomePath(deploymentIdOf('cd'.repeat(16), asRunNumber(3)))
      .split('/')
      .at(-1) ?? '';
  for (const token of ['', own.slice(1), `${own}0`, own.replace(/^./, 'x'), others]) {
    expect(await call(3, token)).toBe('wrong');
  }
  for (const id of ['', uid, `${uid}.`, `${uid}.x`, `${uid}/3`, '.3', `${uid}.3.4`]) {
    expect(await proofs.phoneHome(id, own, '10.0.0.66')).toBe('wrong');
  }
  expect(appended).toEqual([]);
  const { WRONG_TOKEN } = agent.HostSignKind;
  expect(proofs.signsSince(uid, 0)).toMatchObject([{ kind: WRONG_TOKEN, detail: '10.0.0.9' }]);
});

test('the call of an older deployment proves nothing once a later one is proved', async () => {
  const { appended, call, proofs } = await setUp();
  expect(await call(9)).toBe('proved');
  expect(await call(3)).toBe('outdated');
  expect(proofs.isProved(deploymentIdOf(uid, asRunNumber(9)))).toBe(true);
  expect(appended).toHaveLength(1);
  // Numbers, not texts.
  expect(await call(10)).toBe('proved');
});

test('the call of an older deployment never proves the one that is waited for', async () => {
  const { call, proofs, time } = await setUp();
  const proved = proofs.waitUntilProved(
    deploymentIdOf(uid, asRunNumber(4)),
    60_000,
    new AbortController().signal,
  );
  expect(await call(3)).toBe('proved');
  await time.run(60_000);
  expect(await proved).toBe(false);
});

test('a waiter hears of a proof at once, and of one that came before as well', async () => {
  const { call, proofs } = await setUp();
  const { signal } = new AbortController();
  const proved = proofs.waitUntilProved(deploymentIdOf(uid, asRunNumber(4)), 60_000, signal);
  await call(4);
  expect(await proved).toBe(true);
  expect(await proofs.waitUntilProved(deploymentIdOf(uid, asRunNumber(4)), 0, signal)).toBe(true);
});

test('a proof that cannot be written to disk does not count', async () => {
  const { call, platters, proofs } = await setUp();
  platters.failing = true;
  expect(await call(3)).toBe('notDurable');
  expect(proofs.isProved(deploymentIdOf(uid, asRunNumber(3)))).toBe(false);
  platters.failing = false;
  expect(await call(3)).toBe('proved');
});

test('a host that is forgotten leaves no proof behind, after a restart neither', async () => {
  const { call, journal, platters, proofs, time } = await setUp();
  await call(3);
  await proofs.forgetHost(uid);
  expect(proofs.isProved(deploymentIdOf(uid, asRunNumber(3)))).toBe(false);
  await journal.close();
  expect((await setUp(platters, time)).proofs.isProved(deploymentIdOf(uid, asRunNumber(3)))).toBe(
    false,
  );
});

test('the last of each kind seen of a host is kept, and why a call was refused', async () => {
  const { call, platters, proofs, time } = await setUp();
  const Kind = agent.HostSignKind;
  const kinds = (sinceMs: number) => proofs.signsSince(uid, sinceMs).map(({ kind }) => kind);
  for (const stage of ['dhcp', 'script']) proofs.noteNetboot(uid, stage);
  await time.run(1_000);
  const { clock } = time.open();
  const laterMs = clock.nowMs();
  proofs.noteAddressAsked(uid);
  proofs.noteFirstBoot(uid);
  await call(9);
  await call(3);
  platters.failing = true;
  await call(10);
  expect(kinds(0)).toEqual([
    ...[Kind.NETBOOT, Kind.ADDRESS_ASKED, Kind.FIRST_BOOT_FETCHED],
    ...[Kind.OUTDATED_CALL, Kind.NOT_DURABLE],
  ]);
  expect(proofs.signsSince(uid, 0)[0]?.detail).toBe('script');
  expect(kinds(laterMs)).not.toContain(Kind.NETBOOT);
  expect(proofs.signsSince('cd'.repeat(16), 0)).toEqual([]);
});

test('a key of another length is not taken for one', async () => {
  const platters = new MemoryDisk();
  platters.replace(keyPath, new Uint8Array(31));
  await expect(setUp(platters)).rejects.toThrow(/31 bytes instead of 32/);
});
