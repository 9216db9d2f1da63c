import { create } from '@bufbuild/protobuf';
import { BmcProtocol, HostSpecSchema, RunPhase, store as wire } from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { openMemoryStore, storeKey } from '@rackwright/store';
import { beforeEach, describe, expect, test } from 'vitest';
import { deleteRecord, type RecordWriter, readRecord, writeRecord } from '../../records/index.ts';
import { identityReservation } from './removal.ts';
import {
  confirm,
  hasAllReservations,
  type ReservationHolder,
  releaseReservations,
  releaseReserved,
  releaseUnnamed,
  reserve,
  reservedValues,
} from './reservations.ts';

const random = nodeRandom();
const h1: ReservationHolder = { name: 'hosts/h1', uid: 'u1' };
const h2: ReservationHolder = { name: 'hosts/h2', uid: 'u2' };
const spec = create(HostSpecSchema, {
  bmc: { address: '192.0.2.7' },
  bootMacs: ['52:54:00:00:00:01', '52:54:00:00:00:02'],
});
const values = reservedValues(spec);
let writer: RecordWriter;

beforeEach(async () => {
  writer = { store: await openMemoryStore({ random }) };
});

async function writeHost({ name, uid }: ReservationHolder, expected: number | 'absent' = 'absent') {
  const record = create(wire.HostRecordSchema, { host: { name, uid, spec } });
  const key = storeKey(...name.split('/'));
  expect((await writeRecord(writer, wire.HostRecordSchema, key, record, expected)).kind).toBe('ok');
  return record;
}

describe('reservations', () => {
  test('cover every boot MAC and the BMC with its port', () => {
    expect(values.map(({ value, field }) => [value, field])).toEqual([
      ['52:54:00:00:00:01', 'spec.boot_macs[0]'],
      ['52:54:00:00:00:02', 'spec.boot_macs[1]'],
      ['192.0.2.7:623', 'spec.bmc.address'],
    ]);
    const other = create(HostSpecSchema, { bmc: { address: '192.0.2.7', port: 6230 } });
    expect(reservedValues(other)[0]?.key).not.toBe(values[2]?.key);
    expect(reservedValues(create(HostSpecSchema))).toEqual([]);
    const redfish = { address: '192.0.2.7', protocol: BmcProtocol.REDFISH };
    expect(reservedValues(create(HostSpecSchema, { bmc: redfish }))[0]?.value).toBe(
      '192.0.2.7:443',
    );
  });

  test('name the socket of a webhook device, and nothing for a host switched by hand', () => {
    const socketOf = (onPath: string) => {
      const bmc = { address: '192.0.2.9', protocol: BmcProtocol.WEBHOOK, webhook: { onPath } };
      return reservedValues(create(HostSpecSchema, { bmc }))[0];
    };
    expect(socketOf('/relay/4/on')?.value).toBe('192.0.2.9:443/relay/4/on');
    expect(socketOf('/relay/4/on')?.key).not.toBe(socketOf('/relay/5/on')?.key);
    const bmc = { protocol: BmcProtocol.MANUAL };
    expect(reservedValues(create(HostSpecSchema, { bmc }))).toEqual([]);
  });

  test('are refused to a second host, which then holds nothing of what it added', async () => {
    await reserve(writer, h1, values.slice(1, 2));
    await writeHost(h1);
    const outcome = await reserve(writer, h2, values);
    expect(outcome).toEqual({ kind: 'taken', taken: [{ value: values[1], by: 'hosts/h1' }] });
    for (const value of values.filter((_, index) => index !== 1)) {
      expect(await readRecord(writer.store, wire.ReservationSchema, value.key)).toBeUndefined();
    }
  });

  test('can be asked for again by the same host', async () => {
    expect(await reserve(writer, h1, values)).toEqual({ kind: 'reserved', added: values });
    expect(await reserve(writer, h1, values)).toEqual({ kind: 'reserved', added: [] });
  });

  test('reservations of a holder that is gone, or was created again, are taken over', async () => {
    await reserve(writer, h1, values);
    expect((await reserve(writer, h2, values)).kind).toBe('reserved');
    await writeHost({ ...h2, uid: 'u2-again' });
    expect((await reserve(writer, h1, values)).kind).toBe('reserved');
  });

  test('reservations of a change that never came, or left them, are taken over', async () => {
    const other = create(HostSpecSchema, {
      bmc: { address: '192.0.2.8' },
      bootMacs: ['52:54:00:00:00:03'],
    });
    await reserve(writer, h1, reservedValues(other));
    await reserve(writer, h1, values);
    await writeHost(h1);
    expect((await reserve(writer, h2, reservedValues(other))).kind).toBe('reserved');
    expect((await reserve(writer, h2, values)).kind).toBe('taken');
  });

  test('reservations that are named meanwhile are not released', async () => {
    await reserve(writer, h1, values);
    const record = await writeHost(h1);
    await releaseUnnamed(writer, h1, values, async () => record);
    expect(await hasAllReservations(writer.store, h1.uid, spec)).toBe(true);
    const late = async () => {
      expect(await confirm(writer, h1, values)).toBe(true);
      return undefined;
    };
    await releaseUnnamed(writer, h1, values, late);
    expect(await hasAllReservations(writer.store, h1.uid, spec)).toBe(true);
  });

  test('a reservation whose release was lost is taken over from a changed holder', async () => {
    const guid = Uint8Array.of(...Array(16).keys());
    const identity = [identityReservation(guid)];
    const status = (phase: RunPhase, proved: Uint8Array) =>
      create(wire.HostRecordSchema, {
        host: { ...h1, status: { run: { phase }, bmcIdentity: { guid: proved } } },
      });
    await reserve(writer, h1, identity);
    const key = storeKey('hosts', 'h1');
    const verifying = status(RunPhase.RUNNING, Uint8Array.of(9));
    const put = async (record: wire.HostRecord) => {
      const kept = await readRecord(writer.store, wire.HostRecordSchema, key);
      await writeRecord(writer, wire.HostRecordSchema, key, record, kept?.revision ?? 'absent');
    };
    for (const record of [verifying, status(RunPhase.ENDED, guid)]) {
      await put(record);
      expect(await reserve(writer, h2, identity)).toMatchObject({ kind: 'taken' });
    }
    await put(status(RunPhase.ENDED, Uint8Array.of(9)));
    expect(await reserve(writer, h2, identity)).toMatchObject({ kind: 'reserved' });
  });

  test('reservations taken over before the record was written cannot be confirmed', async () => {
    await reserve(writer, h1, values);
    await reserve(writer, h2, values.slice(2));
    await writeHost(h1);
    expect(await confirm(writer, h1, values)).toBe(false);
    await writeHost(h2);
    expect(await confirm(writer, h2, values.slice(2))).toBe(true);
  });

  test('a rival that looked before the record existed takes no confirmed reservation', async () => {
    await reserve(writer, h1, values);
    const seenByRival = await readRecord(
      writer.store,
      wire.ReservationSchema,
      values[0]?.key ?? '',
    );
    await writeHost(h1);
    expect(await confirm(writer, h1, values)).toBe(true);
    const theft = create(wire.ReservationSchema, { holder: h2.name, holderUid: h2.uid });
    const written = await writeRecord(
      writer,
      wire.ReservationSchema,
      values[0]?.key ?? '',
      theft,
      seenByRival?.revision ?? 0,
    );
    expect(written.kind).toBe('conflict');
    expect(await hasAllReservations(writer.store, h1.uid, spec)).toBe(true);
  });

  test('are released by their holder only', async () => {
    await reserve(writer, h1, values);
    const record = await writeHost(h1);
    await releaseReserved(writer, h2, values);
    expect(await hasAllReservations(writer.store, h1.uid, spec)).toBe(true);
    await releaseReservations(writer, record);
    expect(await hasAllReservations(writer.store, h1.uid, spec)).toBe(false);
    expect((await reserve(writer, h2, values)).kind).toBe('reserved');
  });

  test('are not held by who bears the name of their holder later', async () => {
    await reserve(writer, h1, values);
    await writeHost({ ...h1, uid: 'u1-again' });
    expect(await hasAllReservations(writer.store, 'u1-again', spec)).toBe(false);
  });

  test('reservations among many racing creators go to exactly one', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const holder = { name: `hosts/race${index}`, uid: `uid${index}` };
        const outcome = await reserve(writer, holder, values);
        if (outcome.kind === 'taken') return false;
        await writeHost(holder);
        if (await confirm(writer, holder, values)) return true;
        const key = storeKey(...holder.name.split('/'));
        const kept = await readRecord(writer.store, wire.HostRecordSchema, key);
        await deleteRecord(writer, key, kept?.revision ?? 0);
        await releaseReserved(writer, holder, values);
        return false;
      }),
    );
    expect(outcomes.filter(Boolean).length).toBeLessThanOrEqual(1);
    const winner = outcomes.indexOf(true);
    if (winner >= 0) {
      expect(await hasAllReservations(writer.store, `uid${winner}`, spec)).toBe(true);
    }
  });
});
