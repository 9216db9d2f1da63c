/**
 * R8, from the control plane's side: the answers to operations that this agent does not understand.
 */
import { create } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { World } from './testing/world.ts';

async function connected(): Promise<World> {
  const world = new World();
  await world.bootAndConnect();
  return world;
}

describe('R8: what is missing or unknown is never success', () => {
  const bmc = { address: '192.0.2.7', credential: 'credentials/bmc' };
  const step = { step: 'deploy.x', mode: agent.StepMode.RUN, destructive: true };
  const runStep = { ...step, bootOperationId: 'h/1/0/1' };
  const without = <K extends keyof typeof runStep>(name: K) => {
    const { [name]: _dropped, ...rest } = runStep;
    return rest;
  };
  const runner = { bmc, on: true, bootFrom: agent.BootTarget.RUNNER };
  const faulty: Record<string, NonNullable<Parameters<World['operation']>[1]>> = {
    kind: { case: undefined },
    'verify_access.bmc': { case: 'verifyAccess', value: {} },
    'verify_access.bmc.address': {
      case: 'verifyAccess',
      value: { bmc: { credential: 'credentials/bmc' } },
    },
    'set_power.bmc.credential': {
      case: 'setPower',
      value: { on: true, bmc: { address: '192.0.2.7' } },
    },
    'set_power.on': { case: 'setPower', value: { bmc } },
    'set_power.boot_from': {
      case: 'setPower',
      value: { bmc, on: true, bootFrom: 77 as agent.BootTarget },
    },
    'boots nothing': {
      case: 'setPower',
      value: { bmc, on: false, bootFrom: agent.BootTarget.DISK },
    },
    'set_power.shutdown_deadline': {
      case: 'setPower',
      value: { bmc, on: true, shutdownDeadline: { seconds: 1n } },
    },
    'set_power.boot_macs': { case: 'setPower', value: runner },
    'set_power.grant_expire_time': {
      case: 'setPower',
      value: { ...runner, bootMacs: ['52:54:00:00:00:01'] },
    },
    'set_power.boot_macs is': {
      case: 'setPower',
      value: { ...runner, bootFrom: agent.BootTarget.RESCUE },
    },
    'inspect.boot_operation_id': { case: 'inspect', value: {} },
    'run_step.step': { case: 'runStep', value: without('step') },
    'run_step.mode': { case: 'runStep', value: without('mode') },
    'run_step.mode:': { case: 'runStep', value: { ...runStep, mode: 9 as agent.StepMode } },
    'run_step.destructive': { case: 'runStep', value: without('destructive') },
    'run_step.bmc.credential': {
      case: 'runStep',
      value: { ...without('bootOperationId'), bmc: { address: '192.0.2.7' } },
    },
    'run_step.boot_operation_id': { case: 'runStep', value: without('bootOperationId') },
    'cancel.operation_id': { case: 'cancel', value: {} },
  };

  for (const [field, kind] of Object.entries(faulty)) {
    test(`answers unsupported, naming it: ${field}`, async () => {
      const world = await connected();
      await world.issue(world.operation('h/1/1/1', kind));
      expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({
        kind: 'failed',
        type: 'unsupported',
        message: expect.stringContaining(field),
      });
      expect(world.touched).toEqual([]);
    });
  }

  test('answers unsupported without deadline or host, or with the id of another host', async () => {
    const world = await connected();
    const whole = world.erase('h/1/1/1');
    const { deadline: _deadline, ...withoutDeadline } = whole;
    await world.issue(create(agent.OperationSchema, withoutDeadline));
    await world.issue(create(agent.OperationSchema, { ...whole, id: 'h/1/1/2', hostUid: '' }));
    await world.issue(create(agent.OperationSchema, { ...whole, id: 'g/1/1/3' }));
    for (const id of ['h/1/1/1', 'h/1/1/2', 'g/1/1/3']) {
      expect(world.controlPlane.outcome(id)).toMatchObject({ type: 'unsupported' });
    }
    expect(world.touched).toEqual([]);
  });

  test('reports in Hello which kinds it takes, and takes no other', async () => {
    const world = new World();
    world.kinds = ['verifyAccess', 'setPower'];
    await world.bootAndConnect();
    expect(world.controlPlane.hellos[0]?.operationKinds).toEqual([
      'verifyAccess',
      'setPower',
      'cancel',
    ]);
    await world.issue(world.erase('h/1/1/1'));
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({ type: 'unsupported' });
  });

  test('ignores a message of an unknown kind and keeps the session', async () => {
    const world = await connected();
    world.controlPlane.send({ case: undefined });
    await world.issue(world.verify('h/1/1/1'));
    expect(world.controlPlane.hellos).toHaveLength(1);
    expect(world.controlPlane.outcome('h/1/1/1')).toEqual({ kind: 'complete' });
  });
});
