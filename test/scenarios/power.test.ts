/** Power as people ask for it, down to a BMC that is slow, busy or lies. */
import { World } from '@rackwright/agent/testing';
import { bench, done, driveToErase, failed } from '@rackwright/controlplane/testing';
import { FailureType, HostState, RunKind, RunOutcome } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { PoweredHost } from './powered.ts';
import {
  driveToAvailable,
  explained,
  faultsOf,
  pass,
  refusalOf,
  runOf,
  sentBy,
  statusOf,
} from './words.ts';

const powerOn = { kind: 'powerOn', bootOldDiskReason: 'a test' } as const;
const powerReset = { kind: 'powerReset', bootOldDiskReason: 'a test' } as const;

// That a Redfish BMC's 409 is `busy` too, is shown with its driver.
test('ironic-33: a BMC that is busy for 50 s after off is asked again until it is on', async () => {
  const powered = await PoweredHost.open({ power: 'on' });
  await powered.play();
  powered.restMs = 50_000;
  const startedMs = powered.world.clock.nowMs;
  await powered.ask(powerReset);
  expect(runOf(powered.host)).toMatchObject({
    kind: RunKind.POWER,
    outcome: RunOutcome.SUCCEEDED,
  });
  expect(powered.bmc.power).toBe('on');
  expect(powered.switchCommands).toBeGreaterThan(3);
  expect(powered.world.clock.nowMs - startedMs).toBeGreaterThan(50_000);
  expect(faultsOf(powered.host)).toEqual([]);
  expect(statusOf(powered.host).lastError).toBeUndefined();
});

test('ironic-47: what ends while the link is down is reported once when it is back', async () => {
  const world = new World();
  world.work = async (_operation, context, touch) => {
    await context.begin();
    touch();
    await world.clock.sleep(5 * 60_000);
    return { kind: 'complete' };
  };
  await world.bootAndConnect();
  await world.issue(world.erase('u1/3/4/1'), 10_000);
  world.controlPlane.reachable = false;
  world.controlPlane.cut();
  await world.run(10 * 60_000);
  expect(world.controlPlane.reports).toEqual([]);
  world.controlPlane.reachable = true;
  await world.run(60_000);
  world.controlPlane.cut();
  await world.run(60_000);
  const told = world.controlPlane.reports.map(({ operationId, result }) => [
    operationId,
    result.case,
  ]);
  expect(told).toEqual([['u1/3/4/1', 'complete']]);
  expect(world.touched).toEqual(['u1/3/4/1']);
  await world.issue(world.erase('u1/3/5/1'), 6 * 60_000);
  expect(world.controlPlane.outcome('u1/3/5/1')).toEqual({ kind: 'complete' });
});

test('metal3-15: a power-on that fails is a fault, and the host stays where it was', async () => {
  const powered = await PoweredHost.open();
  await powered.play();
  powered.bmc.lying = true;
  await powered.ask(powerOn);
  expect(statusOf(powered.host).state).toBe(HostState.MANAGEABLE);
  expect(faultsOf(powered.host)).toEqual(['powerFailed']);
  expect(statusOf(powered.host).lastError).toMatchObject({
    run: 'power 2',
    failure: { type: FailureType.NOT_APPLIED },
  });

  const available = bench();
  driveToAvailable(available);
  expect(refusalOf(available, powerOn).message).toContain('set its goal to manageable first');
});

test('metal3-15: a power command that fails hides nothing of why the goal waits', () => {
  const host = bench();
  driveToErase(host);
  host.report(failed('notErased', 'disk DISK-1 still holds old data'));
  const before = explained(host);
  host.request({ kind: 'powerOff' });
  host.report(failed('notApplied', 'the BMC did nothing'));
  expect(faultsOf(host)).toEqual(['cleanFailed', 'powerFailed']);
  expect(explained(host).causes).toEqual(before.causes);
  expect(explained(host).unblock).toEqual(before.unblock);
});

test('metal3-55: while work holds a host, power is refused and no command sent', async () => {
  const host = bench();
  driveToErase(host);
  for (const kind of ['powerOn', 'powerOff', 'powerReset'] as const) {
    const refusal = refusalOf(host, { kind, bootOldDiskReason: 'a test' });
    expect(refusal.message).toContain('clean 3 holds the host (at');
    expect(refusal.message).toContain('(at deploy.erase_devices)');
  }
  host.report(done);
  expect(sentBy(pass(host, 1_000))).toEqual([]);

  const world = new World();
  world.work = async (_operation, context, touch) => {
    await context.begin();
    touch();
    await world.clock.sleep(60_000);
    return { kind: 'complete' };
  };
  await world.bootAndConnect();
  await world.issue(world.erase('u1/3/4/1'));
  await world.issue(world.power('u1/4/0/1'));
  expect(world.controlPlane.outcome('u1/4/0/1')).toMatchObject({
    kind: 'retryAfter',
    reason: 'locked',
  });
  expect(world.touched).toEqual(['u1/3/4/1']);
});

test('metal3-57: after a failed power-on the next request commands again', async () => {
  const powered = await PoweredHost.open();
  await powered.play();
  powered.bmc.lying = true;
  await powered.ask(powerOn);
  expect(runOf(powered.host)).toMatchObject({ outcome: RunOutcome.FAILED });
  const commands = powered.switchCommands;
  await powered.play(60_000);
  expect(powered.switchCommands).toBe(commands);
  powered.bmc.lying = false;
  await powered.ask(powerOn);
  expect(powered.switchCommands).toBe(commands + 1);
  expect(powered.bmc.power).toBe('on');
  expect(faultsOf(powered.host)).toEqual([]);
  expect(statusOf(powered.host).lastError).toBeUndefined();
});

test('metal3-75: a verify that finds all as it was writes nothing', async () => {
  const powered = await PoweredHost.open({ power: 'on', bootFlags: [0x80, 8] });
  await powered.play();
  const before = statusOf(powered.host);
  const bmc = { ...powered.bmc };
  await powered.ask({ kind: 'verify' });
  expect(runOf(powered.host)).toMatchObject({ number: 2n, outcome: RunOutcome.SUCCEEDED });
  expect(powered.bmc).toEqual(bmc);
  expect(powered.switchCommands).toBe(0);
  const after = statusOf(powered.host);
  expect({ ...after, run: before.run }).toEqual(before);
  const settled = powered.host.record;
  expect(pass(powered.host, 3_600_000)).toEqual([]);
  expect(powered.host.record).toEqual(settled);
});
