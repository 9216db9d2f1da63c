/** Reads only read: a method that changes nothing by the access table never writes to the store. */
import type { DescMethod } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { HostState, Role } from '@rackwright/messages';
import { MemoryDisk } from '@rackwright/store';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { accessTable } from '../access/index.ts';
import { addSide, type Names, tokenFor } from './access.fixture.ts';
import { callOf, methods, pathOf, requestOf } from './every-method.fixture.ts';
import { preparedHost, putHost } from './prepared.fixture.ts';
import { type Fixture, settled, startFixture } from './rpc.fixture.ts';

let fixture: Fixture;
let names: Names;
let token: string;
const disk = new MemoryDisk();
const reading = methods.filter((method) => accessTable[pathOf(method)]?.changes === false);

beforeAll(async () => {
  fixture = await startFixture({ disk });
  names = await addSide(fixture, 'aa');
  // A host without a run: the needs of its next run are checked.
  const idle = preparedHost(7, { state: HostState.MANAGEABLE, kind: undefined });
  const { rack, credential } = names;
  if (idle.host?.spec?.bmc === undefined) throw new Error('no spec');
  idle.host.spec.rack = rack;
  idle.host.spec.bmc.credential = credential;
  await putHost(fixture.store, idle);
  names = { ...names, host: idle.host.name };
  token = await tokenFor(fixture, 'viewer-everything', Role.ADMIN);
  // The use of a token is recorded at intervals, for any kind of use.
  for (const method of reading.slice(0, 1)) await read(method);
  await settled(fixture.store);
});

afterAll(() => fixture.stop());

function read(method: DescMethod) {
  return callOf(fixture.channel, method, requestOf(method, 'aa', names), token);
}

/** Removes what the host's next reconcile would take again, and a reader never would. */
async function loseAddresses(): Promise<void> {
  for (const { key, revision } of (await fixture.store.list('reservations')).entries) {
    await fixture.store.delete(key, revision);
  }
}

test('more than thirty methods are read-only', () => {
  expect(reading.length).toBeGreaterThan(30);
  expect(reading.map(pathOf)).toContain('rackwright.v1.HostService/ExplainHost');
});

test('the API says of the same methods that they have no side effects', () => {
  const isOurs = (method: DescMethod) => pathOf(method).startsWith('rackwright.');
  const { NO_SIDE_EFFECTS } = MethodOptions_IdempotencyLevel;
  const said = methods.filter(({ idempotency }) => idempotency === NO_SIDE_EFFECTS);
  expect(said.map(pathOf)).toEqual(reading.filter(isOurs).map(pathOf));
});

test.each(reading.map((method) => [pathOf(method), method] as const))(
  '%s writes nothing',
  async (_path, method) => {
    await loseAddresses();
    const before = disk.latest();
    await read(method);
    const written = disk.after(before, '', 100).map(({ key }) => key);
    expect(written).toEqual([]);
    expect(disk.latest()).toBe(before);
  },
);
