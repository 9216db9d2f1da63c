/** A watch with a filter reports hosts that begin or cease to match, and nothing else. */
import { create, toBinary } from '@bufbuild/protobuf';
import {
  type HostId,
  HostView,
  WatchHostsResponse_Kind as Kind,
  store as wire,
} from '@rackwright/messages';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  specOf,
  startFixture,
} from '../../services/rpc.fixture.ts';

let fixture: Fixture;

beforeAll(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
  for (const n of [1, 2, 3]) {
    const labels = { site: n === 1 ? 'a' : 'b' };
    await fixture.hosts.createHost({ hostId: `h${n}`, host: { spec: specOf(n), labels } });
  }
});

afterAll(() => fixture.stop());

async function move(hostId: HostId, site: string): Promise<void> {
  const host = { name: `hosts/${hostId}`, labels: { site } };
  await fixture.hosts.updateHost({ host, updateMask: { paths: ['labels.site'] } });
}

/** Kinds and names of the responses, one by one; of two equal ones in a row only the first. */
async function* told(request: Parameters<Fixture['hosts']['watchHosts']>[0]) {
  let last = '';
  for await (const { kind, host, position } of fixture.hosts.watchHosts(request)) {
    const name = host?.name.replace('hosts/', '') ?? '';
    const word = Object.entries(Kind).find(([, value]) => value === kind)?.[0];
    const line = `${word} ${name} ${host?.labels['site'] ?? ''}`.trim();
    if (line !== last) yield { line, position };
    last = line;
  }
}

/** The next response about one of these hosts. */
async function next(of: AsyncGenerator<{ line: string; position: string }>) {
  const { value, done } = await of.next();
  if (done === true) throw new Error('the watch has ended');
  return value;
}

test('a watch sends matches, then new ones, and those that cease to match as deleted', async () => {
  const watch = told({ filter: 'labels.site = a' });
  expect((await next(watch)).line).toBe('UPDATED h1 a');
  const synced = await next(watch);
  expect(synced.line).toBe('SYNCED');
  await move('h2', 'a');
  expect((await next(watch)).line).toBe('UPDATED h2 a');
  await move('h3', 'c');
  await move('h1', 'b');
  expect((await next(watch)).line).toBe('DELETED h1');
  await move('h1', 'c');
  await move('h1', 'a');
  expect((await next(watch)).line).toBe('UPDATED h1 a');
  await watch.return(undefined);

  // After a resume, the earlier responses are unknown.
  const resumed = told({ filter: 'labels.site = a', position: synced.position });
  const lines = new Set<string>();
  while (!lines.has('UPDATED h1 a')) lines.add((await next(resumed)).line);
  await resumed.return(undefined);
  expect(lines).toContain('UPDATED h2 a');
  expect(lines).toContain('DELETED h3');
  expect(lines).toContain('DELETED h1');
});

test('a watch of changes only sends nothing that was there before, and no inventory', async () => {
  const request = { changesOnly: true, view: HostView.BASIC };
  const watch = fixture.hosts.watchHosts(request)[Symbol.asyncIterator]();
  const first = await watch.next();
  expect(first.value).toMatchObject({ kind: Kind.SYNCED, position: expect.stringMatching(/./) });
  const facts = create(wire.HostFactsSchema, {
    hostUid: (await fixture.hosts.getHost({ name: 'hosts/h2' })).uid,
    inventory: { memoryBytes: 1n },
  });
  await fixture.store.put('facts.h2', toBinary(wire.HostFactsSchema, facts), 'absent');
  await move('h2', 'now');
  for (let labels: Record<string, string> = {}; labels['site'] !== 'now'; ) {
    const { host } = (await watch.next()).value ?? {};
    expect(host?.name).toBe('hosts/h2');
    expect(host?.status?.inventory).toBeUndefined();
    labels = host?.labels ?? {};
  }
  await watch.return?.();
});

test('one host is watched with a filter; a wrong filter is refused with its place', async () => {
  const watch = told({ name: 'hosts/h3', filter: 'labels.site = z' });
  expect((await next(watch)).line).toBe('SYNCED');
  await move('h3', 'z');
  expect((await next(watch)).line).toBe('UPDATED h3 z');
  await watch.return(undefined);
  const refused = told({ filter: 'site = a' }).next();
  const violations = [{ field: 'filter', description: expect.stringContaining('character 1') }];
  expect(await failureOf(refused)).toMatchObject({ kind: 'invalidArgument', violations });
});

test('a rack’s record that cannot be decoded ends no watch of racks', async () => {
  await fixture.store.put('racks.a1', Uint8Array.of(255, 255), 'absent');
  await fixture.store.put('racks.a2', Uint8Array.of(255, 255), 'absent');
  const watch = fixture.racks.watchRacks({})[Symbol.asyncIterator]();
  const nextName = async () => (await watch.next()).value?.rack?.name;
  expect(await nextName()).toBe('racks/r1');
  expect(await nextName()).toBe(undefined);
  const found = await fixture.store.get('racks.a2');
  await fixture.store.put('racks.a2', Uint8Array.of(255), found.revision ?? 0);
  await fixture.racks.createRack({ rackId: 'r2' });
  expect(await nextName()).toBe('racks/r2');
  await watch.return?.();
});

test('a record that cannot be decoded ends no watch', async () => {
  await fixture.store.put('hosts.broken', Uint8Array.of(255, 255), 'absent');
  const watch = told({});
  const lines: string[] = [];
  while (lines.at(-1) !== 'SYNCED') lines.push((await next(watch)).line);
  expect(lines.map((line) => line.split(' ')[1]).filter(Boolean)).toEqual(['h1', 'h2', 'h3']);
  await fixture.store.put('hosts.broken2', Uint8Array.of(255, 255), 'absent');
  await move('h2', 'after');
  expect((await next(watch)).line).toBe('UPDATED h2 after');
  await watch.return(undefined);
});
