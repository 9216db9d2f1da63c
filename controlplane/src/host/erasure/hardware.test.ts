/** Hardware changes in an available host: a pure comparison, and the consequences. */
import { clone, create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  agent,
  BmcDriveListSchema,
  faultOfType,
  HostGoal,
  HostState,
  type Inventory,
  InventorySchema,
  PartKind,
  RunKind,
  RunOutcome,
  StorageSignKind,
  StorageSource,
  store,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { hostEventsOf } from '../../events/derive/host-events.ts';
import { explainHost } from '../explain/explain.ts';
import {
  availableHost,
  type Bench,
  driveToInspect,
  statusOf,
  verified,
  virtioDisk,
} from '../testing/bench.ts';
import { driveChanges, unknownBootMacs } from './hardware.ts';

const mac = '52:54:00:00:00:01';
const disk = (serial: string) => ({ ...virtioDisk, serial });

function inventory(serials: readonly string[], macs: readonly string[] = [mac]): Inventory {
  return create(InventorySchema, {
    devices: serials.map(disk),
    interfaces: macs.map((each, at) => ({ name: `eth${at}`, mac: each })),
    runnerSession: 's1',
    bootId: 'b1',
  });
}

function listed(serials: readonly string[], more: object = {}) {
  const kind = StorageSignKind.DRIVE;
  const drives = serials.map((serial) => ({ source: StorageSource.BMC, kind, serial }));
  return create(BmcDriveListSchema, { available: true, complete: true, drives, ...more });
}

test('a boot MAC is known when an interface has it, in whatever letters', () => {
  const now = inventory([], ['52:54:00:00:00:0A']);
  expect(unknownBootMacs({ bootMacs: ['52:54:00:00:00:0a'] }, now)).toEqual([]);
  expect(unknownBootMacs({ bootMacs: ['52:54:00:00:00:0a', mac] }, now)).toEqual([mac]);
  // A runner that lists no interface reports nothing about them.
  expect(unknownBootMacs({ bootMacs: [mac] }, inventory([], []))).toEqual([]);
});

test('the drives that a BMC lists differ from an inventory by what came and what went', () => {
  const now = inventory(['SERIAL-A', 'SERIAL-B']);
  const both = listed(['SERIAL-A', 'SERIAL-B']);
  expect(driveChanges(now, both, both)).toEqual([]);
  expect(driveChanges(now, both, listed(['SERIAL-A', 'SERIAL-C']))).toEqual([
    'its BMC lists drive SERIAL-C, which was not there',
    'its BMC lists disk SERIAL-B no more',
  ]);
  // An incomplete list, or none before, shows nothing about missing drives.
  expect(driveChanges(now, both, listed(['SERIAL-A'], { complete: false }))).toEqual([]);
  expect(driveChanges(now, undefined, listed(['SERIAL-A']))).toEqual([]);
  expect(driveChanges(now, both, listed([], { available: false }))).toEqual([]);
  expect(driveChanges(now, both, undefined)).toEqual([]);
});

/** An available host with this inventory, by its goal. */
function ready(known: Inventory): Bench {
  const host = availableHost();
  const { facts } = host.snapshot;
  host.snapshot = { ...host.snapshot, facts: { ...facts, inventory: known } };
  if (host.record.host?.spec !== undefined) host.record.host.spec.goal = HostGoal.AVAILABLE;
  host.apply({ kind: 'tick' });
  expect(statusOf(host).state).toBe(HostState.AVAILABLE);
  return host;
}

function changeMac(host: Bench, bootMacs: string[]): void {
  const { spec, labels } = host.record.host ?? {};
  if (spec === undefined) throw new Error('a host has a spec');
  host.request({ kind: 'update', spec: { ...spec, bootMacs }, labels: { ...labels } });
}

function inspectedAs(now: Inventory): agent.Report['result'] {
  const observations = { inventory: now };
  return { case: 'complete', value: create(agent.CompleteSchema, { observations }) };
}

/** The inspection that a fault began, with the same result as before. */
function inspectAgain(host: Bench): void {
  driveToInspect(host);
  const still = inventory(['DISK-1']);
  host.report(inspectedAs(still));
  host.snapshot = { ...host.snapshot, facts: { ...host.snapshot.facts, inventory: still } };
  host.report({ case: 'complete', value: create(agent.CompleteSchema, {}) });
}

const faultsOf = (host: Bench) => statusOf(host).faults.map(({ type }) => type);

test('a boot MAC that no interface has takes a host out of available, and is inspected for', () => {
  const other = '52:54:00:00:00:99';
  const host = ready(inventory(['DISK-1']));
  changeMac(host, [other]);
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  expect(faultsOf(host)).toEqual(['bootMacUnknown']);
  expect(statusOf(host).run).toMatchObject({ kind: RunKind.INSPECT });
  inspectAgain(host);
  // Nothing is erased for a host that may never boot the runner again; a person fixes it.
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE });
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told.blocker).toBe('a person');
  expect(told.causes[0]?.text).toBe(`${other} is on no interface of its last inventory`);
  expect(told.unblock.join()).toContain('rackwright host update h1 --mac MAC');
  changeMac(host, [mac]);
  expect(faultsOf(host)).toEqual([]);
  expect(statusOf(host).run).toMatchObject({ kind: RunKind.CLEAN });
});

test('another set of unknown boot MACs is inspected for, another text is not', () => {
  const [first, second] = ['52:54:00:00:00:98', '52:54:00:00:00:99'];
  const host = ready(inventory(['DISK-1']));
  const shownFault = () => faultOfType(statusOf(host).faults, 'bootMacUnknown');
  changeMac(host, [first, second]);
  inspectAgain(host);
  expect(shownFault()?.unknownBootMacs).toEqual([first, second]);
  const { since, message } = shownFault() ?? {};
  host.nowMs += 60_000;
  changeMac(host, [second, first]);
  expect(shownFault()?.message).not.toBe(message);
  expect(shownFault()?.since).toEqual(since);
  expect(statusOf(host).run).toMatchObject({ outcome: RunOutcome.SUCCEEDED });
  changeMac(host, [second]);
  expect(shownFault()?.unknownBootMacs).toEqual([second]);
  expect(shownFault()?.since).not.toEqual(since);
  expect(statusOf(host).run).toMatchObject({
    kind: RunKind.INSPECT,
    outcome: RunOutcome.UNSPECIFIED,
  });
});

test('a disk that the BMC newly lists takes a host out of available until it is inspected', () => {
  const known = inventory(['DISK-1']);
  const host = ready(known);
  const told = (...serials: string[]) => {
    const result = verified() as { value: MessageInitShape<typeof agent.CompleteSchema> };
    Object.assign(result.value.observations ?? {}, { bmcDrives: listed(serials) });
    return result as agent.Report['result'];
  };
  host.request({ kind: 'verify' });
  host.report(told('DISK-1'));
  expect(statusOf(host).state).toBe(HostState.AVAILABLE);
  host.request({ kind: 'verify' });
  host.report(told('DISK-1', 'FOREIGN-2'));
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  expect(faultsOf(host)).toEqual(['hardwareChanged']);
  expect(statusOf(host).run).toMatchObject({ kind: RunKind.INSPECT });
  driveToInspect(host);
  const before = clone(store.HostRecordSchema, host.record);
  host.report(inspectedAs(inventory(['DISK-1', 'FOREIGN-2'])));
  expect(faultsOf(host)).toEqual([]);
  const change = { kind: PartKind.DRIVE, part: 'FOREIGN-2', before: '', after: 'disk' };
  expect(statusOf(host).hardwareChange).toMatchObject({ changes: [change], further: 0 });
  const segments = ['hosts', 'h1'];
  const changesTold = (was: store.HostRecord) =>
    hostEventsOf({ segments, before: was, after: host.record }).contents.flatMap((each) =>
      each.case === 'hardwareChanged' ? [each.value] : [],
    );
  const message = 'disk FOREIGN-2 is new';
  expect(changesTold(before)).toMatchObject([{ changes: [change], further: 0, message }]);
  expect(changesTold(host.record)).toEqual([]);
});

test('a host keeps the first changes of an inspection, each cut to its bound', () => {
  const known = inventory(['DISK-1']);
  const host = ready(known);
  host.request({ kind: 'inspect' });
  driveToInspect(host);
  const many = Array.from({ length: 40 }, (_, at) => `${at}`.padEnd(200, 'X'));
  host.report(inspectedAs(inventory(['DISK-1'], [mac, ...many])));
  const { changes = [], further } = statusOf(host).hardwareChange ?? {};
  expect([changes.length, further]).toEqual([32, 8]);
  for (const { part } of changes) expect(part.length).toBeLessThan(160);
  expect(host.record.change?.cause.length).toBeLessThan(1_200);
});
