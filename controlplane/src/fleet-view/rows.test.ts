/** Rows, indexes and counts equal the result of a scan over all hosts. */

import { create, toBinary } from '@bufbuild/protobuf';
import { type HostId, HostState, store as wire } from '@rackwright/messages';
import { asWriteId } from '@rackwright/store';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { FleetRows, rowOf } from './index.ts';
import type { IndexedField } from './rows.ts';
import { SortedIds } from './sorted-ids.ts';

const ids = ['a', 'a-b', 'b', 'c', 'd'];
const names = ['', 'x', 'y'];
const states = [HostState.NEW, HostState.AVAILABLE];

interface Write {
  readonly hostId: HostId;
  /** Undefined: it is deleted. */
  readonly host: { rack: string; credential: string; state: HostState } | 'undecodable' | undefined;
  /** How many writes ago it was made, for late reports. */
  readonly late: number;
}

const anyHost = fc.record({
  rack: fc.constantFrom(...names),
  credential: fc.constantFrom(...names),
  state: fc.constantFrom(...states),
});
const anyWrite: fc.Arbitrary<Write> = fc.record({
  hostId: fc.constantFrom(...ids),
  host: fc.oneof(anyHost, anyHost, fc.constant('undecodable' as const), fc.constant(undefined)),
  late: fc.constantFrom(0, 0, 0, 1, 3),
});

function valueOf(host: Exclude<Write['host'], undefined>): Uint8Array {
  if (host === 'undecodable') return Uint8Array.of(255, 255);
  const { rack, credential, state } = host;
  const spec = { rack, bmc: { credential } };
  const record = create(wire.HostRecordSchema, { host: { spec, status: { state } } });
  return toBinary(wire.HostRecordSchema, record);
}

function told(rows: FleetRows, { hostId, host }: Write, revision: number): void {
  if (host === undefined) return rows.take(hostId, revision);
  const written = { key: `hosts.${hostId}`, revision, writeId: asWriteId('w') };
  rows.put(rowOf({ ...written, value: valueOf(host) }));
}

test('an index names exactly the hosts whose field has its value, and counts count them', () => {
  fc.assert(
    fc.property(fc.array(anyWrite, { maxLength: 60 }), (writes) => {
      const rows = new FleetRows();
      const model = new Map<string, Exclude<Write['host'], undefined>>();
      for (const [at, write] of writes.entries()) {
        told(rows, write, at + 1);
        if (write.host === undefined) model.delete(write.hostId);
        else model.set(write.hostId, write.host);
        // A watch may repeat an earlier report, as long as the present record is newer.
        const again = writes[at - write.late];
        if (again !== undefined && model.has(again.hostId)) told(rows, again, at + 1 - write.late);
      }
      const all = [...model].sort(([a], [b]) => (a < b ? -1 : 1));
      const where = (isSo: (host: Write['host']) => boolean) =>
        all.filter(([, host]) => isSo(host)).map(([hostId]) => hostId);
      const isHost = (host: Write['host']) => typeof host === 'object';
      for (const field of ['rack', 'credential'] as const) {
        for (const name of names) {
          const wanted = where((host) => typeof host === 'object' && host[field] === name);
          expect([...rows.idsBy(field, name)]).toEqual(wanted);
          const behind = wanted.filter((id) => id > 'a-b');
          expect([...rows.idsBy(field, name, 'a-b')]).toEqual(behind);
        }
        const either = where((host) => typeof host === 'object' && host[field] !== 'y');
        const values = [[field, 'x'] as const, [field, ''] as const];
        expect([...rows.idsAmong(values)]).toEqual(either);
        expect([...rows.idsAmong(values, 'a-b')]).toEqual(either.filter((id) => id > 'a-b'));
      }
      expect([...rows.behind()].map(({ hostId }) => hostId)).toEqual(all.map(([id]) => id));
      expect(rows.size).toBe(model.size);
      expect(rows.unreadable().map(({ hostId }) => hostId)).toEqual(where((each) => !isHost(each)));
      for (const state of states) {
        const wanted = where((host) => typeof host === 'object' && host.state === state);
        expect(rows.tally.byState.get(state) ?? 0).toBe(wanted.length);
        for (const name of names) {
          const there = where(
            (host) => typeof host === 'object' && host.state === state && host.rack === name,
          );
          expect(rows.tally.byRack.get(name)?.byState.get(state) ?? 0).toBe(there.length);
        }
      }
    }),
  );
});

test('a walk through the rows meets each once, whatever comes and goes meanwhile', () => {
  const anyStep = fc.record({
    at: fc.nat({ max: 20 }),
    id: fc.nat({ max: 40 }),
    comes: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 20 }), (steps) => {
      const rows = new FleetRows();
      let revision = 0;
      const idOf = (n: number) => `h${String(n).padStart(2, '0')}`;
      const write = (id: number, comes: boolean) => {
        revision += 1;
        const host = comes ? ({ rack: 'x', credential: '', state: 1 } as const) : undefined;
        told(rows, { hostId: idOf(id), host, late: 0 }, revision);
      };
      for (let id = 0; id < 40; id += 2) write(id, true);
      const changed = new Set(steps.map(({ id }) => idOf(id)));
      const met: string[] = [];
      for (const { hostId } of rows.behind()) {
        for (const { id, comes } of steps.filter(({ at }) => at === met.length)) write(id, comes);
        met.push(hostId);
      }
      expect(met).toEqual([...new Set(met)].toSorted());
      const stayed = Array.from({ length: 20 }, (_, n) => idOf(2 * n));
      const unchanged = (ids: readonly string[]) => ids.filter((id) => !changed.has(id));
      expect(unchanged(met)).toEqual(unchanged(stayed));
    }),
  );
});

test('hosts are found by address, serial and state in any case, until they change', () => {
  const rows = new FleetRows();
  const write = (hostId: HostId, revision: number, macs: string[], state: HostState) => {
    const bmc = { address: `BMC-${hostId}.example` };
    const host = {
      spec: { bmc, bootMacs: macs },
      status: { state, bmcIdentity: { serial: 'SN-1', boardSerial: `B-${hostId}` } },
    };
    const value = toBinary(wire.HostRecordSchema, create(wire.HostRecordSchema, { host }));
    rows.put(rowOf({ key: `hosts.${hostId}`, value, revision, writeId: asWriteId('w') }));
  };
  const found = (field: IndexedField, value: string, after?: string) => [
    ...rows.idsBy(field, value, after),
  ];
  write('b', 1, ['52:54:00:00:00:0A', '52:54:00:00:00:0b'], HostState.NEW);
  write('a', 2, ['52:54:00:00:00:0c'], HostState.NEW);
  expect(found('boot_macs', '52:54:00:00:00:0a')).toEqual(['b']);
  expect(found('boot_macs', '52:54:00:00:00:0b', 'b')).toEqual([]);
  expect(found('bmc.address', 'bmc-a.example')).toEqual(['a']);
  expect(found('serial', 'sn-1')).toEqual(['a', 'b']);
  expect(found('state', String(HostState.NEW))).toEqual(['a', 'b']);
  write('b', 3, ['52:54:00:00:00:0c'], HostState.AVAILABLE);
  expect(found('boot_macs', '52:54:00:00:00:0a')).toEqual([]);
  expect(found('boot_macs', '52:54:00:00:00:0c')).toEqual(['a', 'b']);
  expect(rows.countsBy('state').get(String(HostState.AVAILABLE))).toBe(1);
  expect(rows.countBy('serial', 'sn-1')).toBe(2);
  rows.take('a', 4);
  expect(found('boot_macs', '52:54:00:00:00:0c')).toEqual(['b']);
  expect([...rows.countsBy('state')]).toEqual([[String(HostState.AVAILABLE), 1]]);
});

test('a row that changes in one field moves no list of another', () => {
  const rows = new FleetRows();
  const write = (hostId: HostId, state: HostState, revision: number) => {
    const host = { rack: 'x', credential: 'y', state };
    told(rows, { hostId, host, late: 0 }, revision);
  };
  for (const [at, hostId] of ids.entries()) write(hostId, HostState.NEW, at + 1);
  const adds = vi.spyOn(SortedIds.prototype, 'add');
  const deletes = vi.spyOn(SortedIds.prototype, 'delete');
  write('b', HostState.NEW, 10);
  expect([adds.mock.calls.length, deletes.mock.calls.length]).toEqual([0, 0]);
  // It leaves the list of its state, and is alone in the other, which needs no list.
  write('b', HostState.AVAILABLE, 11);
  expect([adds.mock.calls.length, deletes.mock.calls.length]).toEqual([0, 1]);
  vi.restoreAllMocks();
});
