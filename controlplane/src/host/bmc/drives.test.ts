/** The drives that a BMC lists: requested, stored as facts, and dropped with their BMC. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type agent,
  BmcDriveListSchema,
  BmcPartsSchema,
  BmcProtocol,
  HostGoal,
  StorageSignKind,
  StorageSource,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { type Bench, bench, driveToInspect, inspected, uuid, verified } from '../testing/bench.ts';

const redfish = {
  goal: HostGoal.MANAGEABLE,
  bmc: { address: '10.0.0.1', credential: 'credentials/c1', protocol: BmcProtocol.REDFISH },
} as const;
const known = ({ snapshot }: Bench) => snapshot.facts.bmcDrives;

type DriveListInit = MessageInitShape<typeof BmcDriveListSchema>;

/** A result of an agent that has also asked the BMC. */
function withDrives(result: agent.Report['result'], told: DriveListInit): agent.Report['result'] {
  if (result.case === 'complete' && result.value.observations !== undefined) {
    result.value.observations.bmcDrives = create(BmcDriveListSchema, told);
  }
  return result;
}

function listed(...serials: string[]): DriveListInit {
  const kind = StorageSignKind.DRIVE;
  const drives = serials.map((serial) => ({ source: StorageSource.BMC, kind, serial }));
  return { available: true, complete: true, drives };
}

/** A host at a requested inspection. */
function toInspection(spec: Parameters<typeof bench>[0], told?: DriveListInit): Bench {
  const host = bench(spec);
  host.apply({ kind: 'tick' });
  host.report(told === undefined ? verified() : withDrives(verified(), told));
  host.request({ kind: 'inspect' });
  driveToInspect(host);
  return host;
}

test('a Redfish BMC is asked with the inspection, as the one that was proved', () => {
  const host = toInspection(redfish, listed('A'));
  expect(known(host)).toMatchObject(listed('A'));
  expect(host.operation().kind).toMatchObject({
    case: 'inspect',
    value: {
      bmc: { address: '10.0.0.1', protocol: 'redfish', credentialVersion: 1n },
      expectedIdentity: { guid: uuid },
    },
  });
  const effects = host.report(withDrives(inspected(), listed('A', 'B')));
  expect(effects).toContainEqual({
    kind: 'facts',
    facts: { bmcDrives: expect.objectContaining({ available: true }) },
  });
  expect(known(host)).toMatchObject(listed('A', 'B'));
});

test('other parts that it lists are kept within bounds, and dropped when told no more', () => {
  const withParts = (parts?: MessageInitShape<typeof BmcPartsSchema>) => {
    const result = withDrives(inspected(), listed('A'));
    if (result.case === 'complete' && result.value.observations !== undefined && parts) {
      result.value.observations.bmcParts = create(BmcPartsSchema, parts);
    }
    return result;
  };
  const host = toInspection(redfish, listed('A'));
  const memoryModules = Array.from({ length: 65 }, () => ({ slot: 'S'.repeat(500) }));
  host.report(withParts({ complete: true, memoryModules, firmware: [{ name: 'BIOS' }] }));
  const { bmcParts: kept } = host.snapshot.facts;
  expect(kept).toMatchObject({ complete: false, firmware: [{ name: 'BIOS' }] });
  expect(kept?.memoryModules).toHaveLength(64);
  expect(kept?.memoryModules[0]?.slot.length).toBeLessThan(100);
  const again = toInspection(redfish, listed('A'));
  again.snapshot = { ...again.snapshot, facts: { ...again.snapshot.facts, bmcParts: kept } };
  again.report(withParts());
  expect(again.snapshot.facts.bmcParts).toBeUndefined();
});

test('a BMC that gives no list fails nothing', () => {
  const host = toInspection(redfish, listed('A'));
  const told = { available: false, unavailableReason: 'it is asleep' };
  host.report(withDrives(inspected(), told));
  expect(known(host)).toMatchObject({ ...told, drives: [] });
  expect(host.operation().kind.case).toBe('setPower');
});

test('an IPMI BMC is not asked, and a list of before it is dropped', () => {
  const host = toInspection({ goal: HostGoal.MANAGEABLE });
  const asked = host.operation().kind;
  expect(asked.case === 'inspect' && asked.value.bmc === undefined).toBe(true);
  const { facts } = host.snapshot;
  const bmcDrives = create(BmcDriveListSchema, listed('A'));
  host.snapshot = { ...host.snapshot, facts: { ...facts, bmcDrives } };
  host.report(inspected());
  expect(known(host)).toBeUndefined();
});

test('a list is bounded, and says so', () => {
  const host = toInspection(redfish, listed('x'.repeat(1_000), ...Array(300).fill('Y')));
  const kept = known(host);
  expect(kept).toMatchObject({ available: true, complete: false });
  expect(kept?.drives).toHaveLength(256);
  expect(kept?.drives[0]?.serial.length).toBeLessThan(300);
});
