/** What faults, holds and power of a host in service mean for its pool. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  FaultSeverity,
  HoldScope,
  HostState,
  type HostStatusSchema,
  RolloutSlotState,
  store as wire,
} from '@rackwright/api';
import { expect, test } from 'vitest';
import { bmcFaults } from '../host/index.ts';
import { landings } from '../host/life/machine-tables.ts';
import { image, Rollout } from './rollout.fixture.ts';
import { type SeenHost, seenHost } from './seen.ts';

const failures = Object.values(landings)
  .flatMap((each) => Object.values(each))
  .flatMap(({ fault }) => fault ?? []);
const lacks = ['notUnique', 'noCredential', 'a fault of the future'];
const faults = [...new Set([...failures, ...bmcFaults, ...lacks])];

/** A host that runs A, is on, and has this about it. */
function seenWith(
  about: MessageInitShape<typeof HostStatusSchema>,
): Pick<SeenHost, 'illness' | 'service' | 'keptBy'> {
  const status = { state: HostState.PROVISIONED, image: image('A'), poweredOn: true, ...about };
  const seen = seenHost(create(wire.HostRecordSchema, { host: { name: 'hosts/h1', status } }));
  if (seen === undefined) throw new Error('it has a status');
  const { illness, service, keptBy } = seen;
  return { illness, service, keptBy };
}

/** Its pool has a gate and a window that is shut, and wants B. */
function wantsB(host: Partial<SeenHost>): Rollout {
  const windows = [{ cron: '0 2 * * *', duration: durationFromMs(3_600_000), timeZone: '' }];
  const pool = new Rollout(1, { rollout: { gate: { approval: true }, windows } });
  pool.push('A');
  pool.set(1, host);
  return pool.push('B');
}

test.each(faults.filter((type) => type !== 'reimageFailed'))(
  'a host with the fault %s is in service: nobody takes it outside the window, or unasked',
  (type) => {
    const host = seenWith({ faults: [{ type, message: 'm', severity: FaultSeverity.ERROR }] });
    expect(host.illness).toBe(`${type}: m`);
    const pool = wantsB(host);
    expect(pool.out).toBe('');
    pool.nowMs += 14 * 3_600_000;
    pool.look();
    const isOfBmc = bmcFaults.has(type);
    expect(pool.slots.map(({ state }) => state)).toEqual(isOfBmc ? [] : [RolloutSlotState.GATE]);
    if (isOfBmc) expect(pool.surveyed().standings[0]?.why).toBe(`its BMC, ${type}: m`);
  },
);

test.each([
  { faults: [{ type: 'reimageFailed', message: 'm', severity: FaultSeverity.ERROR }] },
  { poweredOn: false },
  { inRescue: true },
])('a host that serves nobody is healed at once: %j', (about) => {
  expect(wantsB(seenWith(about)).slots.map(({ state }) => state)).toEqual([
    RolloutSlotState.RUNNING,
  ]);
});

test('hosts whose BMC refuses keep nobody else; one whose BMC is silent counts as out', () => {
  const told = (type: string) =>
    seenWith({ faults: [{ type, message: 'm', severity: FaultSeverity.ERROR }] });
  const takes = (host: Partial<SeenHost>) => {
    const pool = new Rollout(2).push('A');
    pool.set(1, host);
    return pool.push('B').out;
  };
  expect(takes(told('bmcAuthentication'))).toBe('h2');
  expect(takes(told('bmcUnreachable'))).toBe('');
});

test.each([
  ['its work is held by ann: disks', HoldScope.WORK],
  ['its power is held by ann: disks', HoldScope.POWER],
  [undefined, HoldScope.RELEASE],
])('what a pool says of a hold: %s', (why, scope) => {
  expect(seenWith({ holds: [{ scope, by: 'ann', reason: 'disks' }] }).keptBy).toBe(why);
});
