/** RAID volumes, with the simulated BMC over real sockets. */
import type { RedfishBmcOptions } from '@rackwright/sim/redfish';
import { afterEach, expect, test } from 'vitest';
import { type BeforeOrder, transient, type VolumeHooks, type VolumeOrder } from '../driver.ts';
import { Governor } from '../governor.ts';
import { defaultGovernorLimits } from '../governor-state.ts';
import { clock, driverFor, machineIdentity, readBack, startHost } from './rig.fixture.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

const drive = {
  model: 'D',
  manufacturer: 'M',
  capacityBytes: 1e12,
  media: 'SSD' as const,
  protocol: 'SAS' as const,
};
const inventory = {
  drives: ['a', 'b', 'c', 'd'].map((serial) => ({ ...drive, serial })),
  emptyBays: 1,
};
const volumes = { windowMs: 4_000, pollMs: 40, shownWithinMs: 1_000 };
/** For what has to succeed, also on a machine that is busy with something else. */
const patient = { windowMs: 60_000, pollMs: 40, shownWithinMs: 30_000 };
/** Two volumes, of which the first is to stay. */
const raid = {
  volumes: [
    { raidType: 'RAID1', drives: [1, 2] },
    { raidType: 'RAID0', drives: [3] },
  ],
  applyTimes: ['Immediate', 'OnReset'] as const,
};
const order: VolumeOrder = {
  controller: '1',
  volumes: [
    { raidType: 'RAID1', drives: ['2', '1'] },
    { raidType: 'RAID1', drives: ['3', '4'] },
  ],
  checkOnly: false,
};

type Changes = Pick<Partial<RedfishBmcOptions>, 'habits' | 'fault' | 'raid'>;

async function start(
  { habits, ...others }: Changes = {},
  limits = volumes,
  answer: BeforeOrder = () => undefined,
) {
  const { bmc } = await startHost({
    inventory,
    raid,
    habits: { restartMs: 300, ...habits },
    ...others,
  });
  closers.push(() => bmc.close());
  // A BMC that restarts is silent: it is asked again soon.
  const breaker = { breakerOpenMs: 50, breakerOpenMsMax: 50, spacingMs: 0 };
  const governor = new Governor(clock, { ...defaultGovernorLimits, ...breaker }, () => {});
  const driver = driverFor(bmc, { parts: { readBack, volumes: limits, governor } });
  const told: number[] = [];
  const states: string[] = [];
  const permitted: Parameters<BeforeOrder>[] = [];
  const hooks: VolumeHooks = {
    onProgress: (percent, state) => {
      told.push(percent);
      states.push(state);
    },
    beforeOrder: (...asked) => {
      permitted.push(asked);
      return answer(...asked);
    },
  };
  const apply = (more: Partial<VolumeOrder> = {}) =>
    driver.applyVolumes({ ...order, ...more }, hooks);
  return { bmc, apply, told, states, permitted };
}

const before = ['RAID1 1+2', 'RAID0 3'];
const after = ['RAID1 1+2', 'RAID1 3+4'];

test.each(['task', 'location', 'nothing'] as const)(
  'a change answered by %s is over when the volumes read so; volumes that are right stay',
  async (volumeAnswers) => {
    const { bmc, apply, told } = await start({ habits: { volumeAnswers } });
    expect(await apply()).toEqual({ kind: 'ok', value: { changed: true, notes: [] } });
    expect(bmc.volumes()).toEqual({ orders: 2, layout: after });
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(await apply()).toEqual({ kind: 'ok', value: { changed: false, notes: [] } });
    expect(bmc.volumes().orders).toBe(2);
  },
);

test('each order is permitted before it is sent, by the BMC and what was done', async () => {
  const { apply, permitted } = await start();
  expect(await apply()).toMatchObject({ kind: 'ok' });
  const seen = expect.objectContaining({ serial: machineIdentity.serial });
  expect(permitted).toEqual([
    [seen, []],
    [seen, ['delete RAID0 of 1 drives']],
  ]);
});

test('an order that is not permitted yet waits, and the changes are made once it is', async () => {
  let refusals = 2;
  const { bmc, apply, permitted } = await start({}, patient, (_, done) => {
    if (done.length === 0 || refusals === 0) return undefined;
    refusals -= 1;
    return transient('busy', 'the rack is frozen');
  });
  expect(await apply()).toMatchObject({ kind: 'ok', value: { changed: true } });
  expect(bmc.volumes()).toEqual({ orders: 2, layout: after });
  expect(permitted).toHaveLength(4);
});

test('an order that is never permitted ends as pending, with what it waited for', async () => {
  const { bmc, apply, states } = await start({}, volumes, (_, done) =>
    done.length === 0 ? undefined : transient('busy', 'the rack is frozen'),
  );
  expect(await apply()).toMatchObject({
    type: 'stillPending',
    message: expect.stringMatching(/^"create RAID1 of 3, 4" was not begun: the rack is frozen; /),
  });
  expect(bmc.volumes().orders).toBe(1);
  expect(states).toContain('create RAID1 of 3, 4: waits: the rack is frozen');
  expect(states).not.toContain('create RAID1 of 3, 4: ordered');
});

test('volumes of every page of the list count, so none stays that nobody wants', async () => {
  const { bmc, apply } = await start({ habits: { membersPerPage: 1 } });
  expect(await apply({ volumes: order.volumes.slice(0, 1) })).toMatchObject({ kind: 'ok' });
  expect(bmc.volumes()).toEqual({ orders: 1, layout: ['RAID1 1+2'] });
});

test.each(['updateRestarts', 'tasksReordered', 'dropsHalfway'] as const)(
  'a change of volumes survives %s, by what is read back, and nothing is ordered twice',
  async (kind) => {
    const { bmc, apply } = await start({ fault: { kind } }, patient);
    expect(await apply()).toMatchObject({ kind: 'ok', value: { changed: true } });
    expect(bmc.volumes()).toEqual({ orders: 2, layout: after });
  },
);

test.each(['redirect', 'tooManyBytes', 'gatewayTimeout'] as const)(
  'a change of volumes whose order is answered by %s is not taken for refused',
  async (by) => {
    const { bmc, apply } = await start({ fault: { kind: 'answersOddly', by } }, patient);
    expect(await apply()).toMatchObject({ kind: 'ok', value: { changed: true } });
    expect(bmc.volumes()).toEqual({ orders: 2, layout: after });
  },
);

test.each(['volumesLie', 'yesButNothing'] as const)(
  'volumes that are said to be changed and are not (%s) are reported as such after one order',
  async (kind) => {
    const { bmc, apply } = await start({ fault: { kind } });
    expect(await apply()).toMatchObject({
      type: 'notApplied',
      message: 'the BMC accepted to delete RAID0 of 1 drives, and did not',
      backendText: 'it lists RAID1 of 1, 2; RAID0 of 3',
    });
    expect(bmc.volumes()).toEqual({ orders: 1, layout: before });
  },
);

test('a volume that does not say its drives, which may be any, is not the wanted one', async () => {
  const { bmc, apply } = await start({ raid: {}, fault: { kind: 'volumesElsewhere' } });
  const wanted = { volumes: order.volumes.slice(0, 1) };
  expect(await apply(wanted)).toMatchObject({
    type: 'notApplied',
    backendText: 'it lists RAID1 of none',
  });
  expect(bmc.volumes().orders).toBe(1);
});

test('a change whose task fails says why, and what comes behind it is not ordered', async () => {
  const { bmc, apply } = await start({ fault: { kind: 'volumesFail' } });
  expect(await apply()).toMatchObject({ type: 'volumesRefused', backendText: 'a drive is bad' });
  expect(bmc.volumes().orders).toBe(1);
});

test('a controller that refuses is shown with its own words', async () => {
  const { bmc, apply } = await start({ fault: { kind: 'volumesRefused' } });
  expect(await apply()).toMatchObject({
    type: 'volumesRefused',
    message: 'the BMC refuses to delete RAID0 of 1 drives',
    backendText: '400: the controller is locked',
  });
  expect(bmc.volumes().layout).toEqual(before);
});

test('a change that does not end in time is still pending, and none is ordered again', async () => {
  const { bmc, apply } = await start({ habits: { volumeMs: 600_000 } });
  expect(await apply()).toMatchObject({ kind: 'failed', type: 'stillPending' });
  expect(bmc.volumes().orders).toBe(1);
});

test('a BMC that does not come back leaves it pending, and nothing to be tried again', async () => {
  const { apply } = await start({
    habits: { restartMs: 60_000 },
    fault: { kind: 'updateRestarts' },
  });
  expect(await apply()).toMatchObject({ kind: 'failed', type: 'stillPending' });
});

test('a change that was ordered before is only observed', async () => {
  const { bmc, apply } = await start();
  expect(await apply({ checkOnly: true })).toMatchObject({ type: 'notApplied' });
  expect(bmc.volumes().orders).toBe(0);
});

test.each(['needed', 'refused'] as const)(
  'a name that is %s is no obstacle',
  async (volumeNames) => {
    const { bmc, apply } = await start({ raid: {}, habits: { volumeNames } });
    expect(await apply()).toMatchObject({ kind: 'ok' });
    expect(bmc.volumes().layout).toEqual(after);
  },
);

test('all volumes go when none is wanted, also those that share a drive', async () => {
  const shared = [
    { raidType: 'RAID1', drives: [1, 2] },
    { raidType: 'RAID1', drives: [1, 2] },
    { raidType: 'None', drives: [4] },
  ];
  const { bmc, apply } = await start({ raid: { volumes: shared } });
  expect(await apply({ volumes: [] })).toMatchObject({ kind: 'ok', value: { changed: true } });
  expect(bmc.volumes(), 'what is no RAID stays').toEqual({ orders: 2, layout: ['None 4'] });
});

test.each<readonly [Changes, Partial<VolumeOrder>, object]>([
  [{}, { controller: '2' }, { type: 'volumesRefused', backendText: 'it lists 1' }],
  [
    {},
    { volumes: [{ raidType: 'RAID1', drives: ['1', '9'] }] },
    { message: 'the controller has no drive 9', backendText: 'it lists 1, 2, 3, 4' },
  ],
  [{}, { volumes: [{ raidType: 'RAID0', drives: ['5'] }] }, { type: 'volumesRefused' }],
  [
    { raid: { ...raid, raidTypes: ['RAID0'] } },
    {},
    { message: 'the controller makes no RAID1', backendText: 'it makes RAID0' },
  ],
  [{ raid: { ...raid, applyTimes: ['OnReset'] } }, {}, { type: 'unsupported' }],
])('wrong volumes are refused before a deletion (%#)', async (changes, wanted, refusal) => {
  const { bmc, apply } = await start(changes);
  expect(await apply(wanted)).toMatchObject({ kind: 'failed', ...refusal });
  expect(bmc.volumes()).toEqual({ orders: 0, layout: before });
});

test('a BMC without volumes does not support them', async () => {
  const { bmc } = await startHost({ inventory });
  closers.push(() => bmc.close());
  const hooks = { onProgress: () => {}, beforeOrder: () => undefined };
  const refused = await driverFor(bmc).applyVolumes(order, hooks);
  expect(refused).toMatchObject({ type: 'unsupported' });
});
