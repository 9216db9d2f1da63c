import { create, toBinary } from '@bufbuild/protobuf';
import { type ExpectedHost, ExpectedHostSchema, store as wire } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { openMemoryStore, type StateStore } from '@rackwright/store';
import { beforeEach, expect, test } from 'vitest';
import { ExpectedRivals } from './expected-rivals.ts';

let nowMs = 0;
let lists = 0;
let store: StateStore;
let rivals: ExpectedRivals;

beforeEach(async () => {
  nowMs = 0;
  lists = 0;
  const faults = ({ kind }: { readonly kind: string }) => {
    if (kind === 'list') lists += 1;
    return { kind: 'none' } as const;
  };
  store = await openMemoryStore({ random: nodeRandom(), faults });
  rivals = new ExpectedRivals({ store, clock: { ...nodeClock(), suspendAwareMs: () => nowMs } });
});

function line(id: string, match: object, host = ''): ExpectedHost {
  return create(ExpectedHostSchema, { name: `expectedHosts/${id}`, match, host });
}

async function write(expectedHost: ExpectedHost): Promise<void> {
  const key = expectedHost.name.replace('/', '.');
  const before = await store.get(key);
  const record = create(wire.ExpectedHostRecordSchema, { expectedHost });
  const expected = before.kind === 'found' ? before.revision : 'absent';
  await store.put(key, toBinary(wire.ExpectedHostRecordSchema, record), expected);
}

test('reads a thousand lines once for a thousand that come after them', async () => {
  for (let n = 0; n < 1_000; n += 1) {
    const made = line(`h${n}`, { serial: `SN-${n}` });
    await rivals.refuse(made);
    await write(made);
    rivals.note(made);
  }
  expect(lists).toBe(1);
  await expect(rivals.refuse(line('x', { serial: 'SN-7' }))).rejects.toThrow(
    'expected_host.match.serial is that of expectedHosts/h7 too',
  );
  await rivals.refuse(line('h7', { serial: 'SN-7' }));
});

test('goes by what the store has of a rival now', async () => {
  await write(line('a', { mac: '52:54:00:00:00:01' }));
  const other = line('b', { mac: '52:54:00:00:00:01' });
  await expect(rivals.refuse(other)).rejects.toThrow('match.mac is that of expectedHosts/a');
  await write(line('a', { mac: '52:54:00:00:00:01' }, 'hosts/a'));
  await rivals.refuse(other);
  await write(line('a', { mac: '52:54:00:00:00:02' }));
  await rivals.refuse(other);
  expect(lists).toBe(1);
});

test('sees after a moment what somebody else has written', async () => {
  await rivals.refuse(line('a', { bmcAddress: '192.0.2.1' }));
  await write(line('b', { bmcAddress: '192.0.2.1' }));
  nowMs += 1_000;
  await expect(rivals.refuse(line('a', { bmcAddress: '192.0.2.1' }))).rejects.toThrow(
    'expected_host.match.bmc_address is that of expectedHosts/b too',
  );
});

test('takes so many lines, and what is there already still changes', async () => {
  for (let n = 0; n < 10_000; n += 1) rivals.note(line(`h${n}`, {}));
  // What was noted before the first look goes with it: the store decides.
  await rivals.refuse(line('x', {}));
  for (let n = 0; n < 10_000; n += 1) rivals.note(line(`h${n}`, {}));
  await expect(rivals.refuse(line('x', {}))).rejects.toThrow('10000 lines already');
  await rivals.refuse(line('h3', {}));
});
