/** A step that takes its runner away, up to the message to the runner. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { agent } from '@rackwright/messages';
import { beforeEach, describe, expect, test } from 'vitest';
import { World } from './testing/world.ts';

const boot = 'h/1/1/1';
const step = 'h/1/2/1';
let world: World;

beforeEach(async () => {
  world = new World();
  world.work = async (operation, context) => {
    await context.begin();
    if (operation.kind.case === 'setPower') {
      await context.openGrant({ macs: ['52:54:00:00:00:01'], expiresAtMs: 9e12 });
    }
    return { kind: 'complete' };
  };
  await world.bootAndConnect();
  await world.issue(world.power(boot));
  world.handOffs.length = 0;
  // Like the control plane: an ended operation is reported again until it is answered.
  world.controlPlane.direct = ({ answered }) =>
    answered ? agent.Directive_Action.FORGET : agent.Directive_Action.CONTINUE;
});

const handOff = () => world.erase(step, { bootOperationId: boot, handOff: true });
const state = () => world.session?.handOffState(step);
const grant = () => world.session?.grants.byOperation(boot);

test('a hand-off acts once its end is applied, and its boot starts no runner', async () => {
  expect(world.session?.bootState().grants).toHaveLength(1);
  const ordered = handOff();
  await world.issue(ordered);
  expect(world.handOffs).toEqual([`${step} acts`]);
  expect(state()).toBe('released');
  const decided = {
    operationId: step,
    bootOperationId: boot,
    destructive: true,
    deadlineMs: ordered.deadline && timestampMs(ordered.deadline),
  };
  expect(grant()?.handedOff).toEqual(decided);
  expect(world.session?.bootState().grants).toEqual([]);
  await world.restart();
  expect(state()).toBe('released');
  expect(grant()?.handedOff).toEqual(decided);
  expect(world.session?.bootState().grants).toEqual([]);
  expect(world.controlPlane.hellos.at(-1)?.grants).toEqual([]);
});

test('a hand-off acts only after its answer, also across a restart', async () => {
  world.controlPlane.answers = false;
  await world.issue(handOff());
  expect([state(), world.handOffs]).toEqual(['pending', []]);
  await world.restart();
  expect([state(), world.handOffs]).toEqual(['pending', []]);
  world.controlPlane.answers = true;
  world.controlPlane.verdict = agent.ReportAnswer_Verdict.DUPLICATE;
  await world.restart();
  expect([state(), world.handOffs]).toEqual(['released', [`${step} acts`]]);
});

test.each([
  ['of a run that is over', agent.ReportAnswer_Verdict.STALE],
  ['that is refused', agent.ReportAnswer_Verdict.REFUSED],
])('a hand-off %s never acts', async (_name, verdict) => {
  world.controlPlane.verdict = verdict;
  await world.issue(handOff());
  expect([state(), world.handOffs]).toEqual(['none', [`${step} never acts`]]);
  expect(grant()?.handedOff).toBeUndefined();
  await world.restart();
  expect(state()).toBe('none');
});

test('a hand-off never acts when it has failed', async () => {
  world.work = async (_operation, context) => {
    await context.begin();
    return { kind: 'failed', type: 'invalidArgument', message: 'no script' };
  };
  await world.issue(handOff());
  expect([state(), world.handOffs]).toEqual(['none', []]);
  expect(world.endedHooks).toContain(step);
});

test('a hand-off never acts if its permission cannot be written to disk', async () => {
  world.controlPlane.answers = false;
  await world.issue(handOff());
  world.disk.failing = true;
  world.controlPlane.answers = true;
  world.controlPlane.cut();
  await world.run(60_000);
  expect(world.handOffs).toEqual([]);
  world.disk.failing = false;
  await world.restart();
  expect([state(), world.handOffs]).toEqual(['released', [`${step} acts`]]);
});

test('no other operation acts on the host until its runner is told to act', async () => {
  await world.issue(handOff());
  world.handOffUnderWay = step;
  await world.issue(world.power('h/1/3/1'));
  const outcome = world.controlPlane.outcome('h/1/3/1');
  expect(outcome).toMatchObject({ kind: 'retryAfter', reason: 'locked' });
  world.handOffUnderWay = undefined;
  await world.issue(world.power('h/1/3/2'));
  expect(world.controlPlane.outcome('h/1/3/2')).toMatchObject({ kind: 'complete' });
});

describe('killed at a boundary', () => {
  /** Crash point → the outcome in the next life. */
  const ends: Readonly<Record<string, string>> = {
    'agent.ended': 'released',
    'agent.reported': 'released',
    'agent.handedOff': 'released',
  };
  for (const [name, end] of Object.entries(ends)) {
    test(`a kill at ${name} ends with the hand-off ${end}`, async () => {
      world.crashAt = { name, occurrence: 1 };
      await world.issue(handOff());
      expect(world.alive).toBe(false);
      expect(world.handOffs).toEqual([]);
      world.controlPlane.verdict = agent.ReportAnswer_Verdict.DUPLICATE;
      await world.bootAndConnect();
      await world.run(1_000);
      expect(state()).toBe(end);
    });
  }
});
