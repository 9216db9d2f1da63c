import { type AddressPlan, asMac, LeaseBook, makeAddressPlan } from '@rackwright/dhcp';
import type { Log } from '@rackwright/platform';
import { recordingLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { MemoryDisk } from '../journal/testing/disk.ts';
import { TestClock } from '../session/testing/clock.ts';
import { formatLeases, LeaseFile, parseLeases, readLeases, steadyTime } from './lease-file.ts';

const path = '/state/dhcp-leases';
const mac = asMac('52:54:00:77:00:01');
const lease = { mac, address: '10.77.0.10', bound: true, untilMs: 5_000 };
const setAside = { mac, address: '10.77.0.11', untilMs: 6_000 };

class Rig {
  readonly time = new TestClock();
  readonly disk = new MemoryDisk();
  readonly lines: string[] = [];
  readonly parts = {
    disk: this.disk.open().disk,
    clock: this.time.open().clock,
    path,
    log: this.log(),
  };
  readonly book = new LeaseBook();
  writes = 0;

  /** A file that counts how often it is written. */
  file(): LeaseFile {
    const { disk } = this.parts;
    const writeAtomic: typeof disk.writeAtomic = (...written) => {
      this.writes += 1;
      return disk.writeAtomic(...written);
    };
    return new LeaseFile({ ...this.parts, disk: { ...disk, writeAtomic } }, this.book, () => 77);
  }

  written() {
    const bytes = this.disk.bytes(path);
    return bytes && parseLeases(new TextDecoder().decode(bytes));
  }

  log(): Log {
    return recordingLog(({ message }) => void this.lines.push(message));
  }
}

function plan(): AddressPlan {
  const range = { first: '10.77.0.10', last: '10.77.0.20' };
  const made = makeAddressPlan({ network: '10.77.0.0/24', reservations: [], range }, []);
  if (made.kind === 'bad') throw new Error(made.problem.text);
  return made.value;
}

test('the lease file is written soon after a change, and read again', async () => {
  const rig = new Rig();
  const file = rig.file();
  rig.book.apply([
    { kind: 'leased', lease },
    { kind: 'setAside', ...setAside },
  ]);
  file.changed();
  await rig.time.run(1);
  const found = await readLeases(rig.parts, plan());
  expect(found).toEqual({ records: { leases: [lease], setAside: [setAside] }, writtenAtMs: 77 });
});

test('the lease file is written at most once a second, at last with the last change', async () => {
  const rig = new Rig();
  const file = rig.file();
  for (let round = 0; round < 500; round += 1) {
    rig.book.apply([{ kind: 'leased', lease: { ...lease, untilMs: round } }]);
    file.changed();
    await rig.time.run(10);
  }
  await rig.time.run(2_000);
  expect(rig.writes).toBeGreaterThan(3);
  expect(rig.writes).toBeLessThan(9);
  expect(rig.written()?.records.leases).toEqual([{ ...lease, untilMs: 499 }]);
});

test('the lease file writes pending changes when it is closed, and nothing otherwise', async () => {
  const rig = new Rig();
  await rig.file().close();
  expect(rig.writes).toBe(0);
  const file = rig.file();
  rig.book.apply([{ kind: 'leased', lease }]);
  file.changed();
  await file.close();
  expect(rig.written()?.records.leases).toEqual([lease]);
  await rig.time.run(100_000);
  expect(rig.writes).toBe(1);
});

test('a write that fails is logged and tried again', async () => {
  const rig = new Rig();
  const file = rig.file();
  rig.disk.failing = true;
  rig.disk.keptFraction = 0;
  rig.book.apply([{ kind: 'leased', lease }]);
  file.changed();
  await rig.time.run(20_000);
  expect(rig.lines).toEqual(['leases are in force but not on disk']);
  expect(rig.written()).toBeUndefined();
  rig.disk.failing = false;
  await rig.time.run(20_000);
  expect(rig.written()?.records.leases).toEqual([lease]);
});

test('without a lease file the book is empty; an unreadable file is logged as well', async () => {
  const rig = new Rig();
  const nothing = { records: { leases: [], setAside: [] }, writtenAtMs: 0 };
  expect(await readLeases(rig.parts, plan())).toEqual(nothing);
  expect(rig.lines).toEqual([]);
  for (const text of ['', '{"version":1', '{"version":2}', 'null', '[]']) {
    rig.disk.replace(path, new TextEncoder().encode(text));
    expect(await readLeases(rig.parts, plan())).toEqual(nothing);
  }
  expect(rig.lines).toHaveLength(5);
});

test('leases in a file of the old name count until the new file is written', async () => {
  const rig = new Rig();
  const parts = { ...rig.parts, path: `${path}-eth1`, formerPath: path };
  const elsewhere = { ...lease, mac: asMac('52:54:00:77:00:02'), address: '10.78.0.10' };
  const put = (at: string, ...leases: (typeof lease)[]) => {
    const text = formatLeases({ leases, setAside: [] }, 7);
    rig.disk.replace(at, new TextEncoder().encode(text));
  };
  put(path, lease, elsewhere);
  const found = await readLeases(parts, plan());
  expect(found).toEqual({ records: { leases: [lease], setAside: [] }, writtenAtMs: 7 });
  put(parts.path);
  expect((await readLeases(parts, plan())).records.leases).toEqual([]);
});

test('the lease file leaves out leases that the configuration no longer allows', async () => {
  const rig = new Rig();
  const elsewhere = { ...lease, address: '10.77.0.99' };
  const text = formatLeases({ leases: [elsewhere], setAside: [] }, 1);
  rig.disk.replace(path, new TextEncoder().encode(text));
  expect((await readLeases(rig.parts, plan())).records.leases).toEqual([]);
});

test.each([
  ['a MAC that is none', { mac: 'x' }],
  ['an address that is none', { address: '10.77.0' }],
  ['a time that is none', { untilMs: -1 }],
  ['a field that nobody knows', { extra: 1 }],
])('the lease file refuses a file with %s', (_name, change) => {
  const text = formatLeases({ leases: [lease], setAside: [] }, 1);
  const parsed = JSON.parse(text);
  const broken = { ...parsed, leases: [{ ...parsed.leases[0], ...change }] };
  expect(() => parseLeases(JSON.stringify(broken))).toThrow(Error);
  expect(() => parseLeases(text)).not.toThrow();
});

test('the time of leases never goes back, whatever the clock or a restart does', async () => {
  const time = new TestClock();
  const { clock } = time.open();
  const nowMs = steadyTime(clock, 0);
  const startMs = nowMs();
  expect(startMs).toBe(clock.nowMs());
  time.wallAheadMs -= 86_400_000;
  await time.run(1_000.7);
  expect(nowMs()).toBe(startMs + 1_000);
  expect(steadyTime(clock, nowMs())()).toBe(startMs + 1_000);
});
