/** A workflow whose script reboots its host, with each process killed at each boundary of it. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  HostGoal,
  HostState,
  hostWaitOf,
  RunKind,
  RunOutcome,
  RunPhase,
} from '@rackwright/messages';
import { afterAll, describe, expect, test } from 'vitest';
import { type Crash, victims } from './crash.ts';
import { handOffBoundaries, handOffTable } from './kill-table.ts';
import type { MachinePlan } from './machines.ts';
import type { Rack } from './rack.ts';
import { RackPool } from './rack-pool.ts';

const rowTimeoutMs = 600_000;
const machine: MachinePlan = {
  name: 'h1',
  bmcAddress: '127.0.0.29',
  mac: '52:54:00:00:00:01',
  uuid: '0102030405060708090a0b0c0d0e0f10',
  serial: 'SN-1',
  disks: [{ name: 'vda', serial: 'DISK-1', kind: 'discard' }],
};

const template = (marks: string) => `
description: A script, a reboot by hand-off, and a script afterwards
steps:
  - { name: before, script: "echo before >>${marks}; echo hello", destructive: false }
  - { name: away, script: "echo acted >>${marks}; exec reboot", destructive: false, handOff: true }
  - { name: after, script: "echo after >>${marks}", destructive: false, idempotent: true }
`;

const rows = handOffBoundaries.flatMap(({ name, occurrence }) =>
  victims.map((victim) => ({ name, occurrence, victim, expected: handOffTable[name][victim] })),
);

const racks = new RackPool({ goal: HostGoal.MANAGEABLE });

afterAll(() => racks.close());

/** What the scripts have marked, in order, on a machine of its own. */
async function rebootByWorkflow(
  rack: Rack,
  crash: Crash | undefined,
  held: boolean,
): Promise<string[]> {
  const { plan, folder } = await rack.addHost(machine, crash);
  const marks = join(folder, 'marks');
  await rack.untilHost(plan.name, 'verified', ({ status }) => {
    return status?.state === HostState.MANAGEABLE && status.run?.phase === RunPhase.ENDED;
  });
  const { templates, workflows } = rack.clients;
  const templateId = `again-${plan.name}`;
  await templates.createTemplate({ templateId, template: { source: template(marks) } });
  await workflows.createWorkflow({ parent: `hosts/${plan.name}`, workflowId: templateId });
  const host = await rack.untilHost(plan.name, held ? 'held' : 'run to its end', ({ status }) => {
    const run = status?.run;
    if (run?.kind !== RunKind.WORKFLOW) return false;
    return held ? hostWaitOf(run.waiting) === 'hold' : run.phase === RunPhase.ENDED;
  });
  const run = host.status?.run;
  expect(run?.error?.message).toBeUndefined();
  if (!held) expect(run?.outcome).toBe(RunOutcome.SUCCEEDED);
  const runName = `hosts/${plan.name}/workflows/${templateId}/runs/1`;
  if (!held) expect(await outputOf(rack, runName, 'before')).toBe('hello\nexit 0');
  return existsSync(marks) ? readFileSync(marks, 'utf8').trim().split('\n') : [];
}

/** What is kept of the output of a step of a run, and how it ended. */
async function outputOf(rack: Rack, name: string, step: string): Promise<string> {
  let found = '';
  for await (const answer of rack.clients.workflows.readStepOutput({ name, step, follow: true })) {
    found += new TextDecoder().decode(answer.content);
    if (answer.exit !== undefined) found += `exit ${answer.exit.code}`;
  }
  return found;
}

test('a script reboots its host, and the next step boots it again', { timeout: rowTimeoutMs }, () =>
  racks.use(async (rack) => {
    const marks = await rebootByWorkflow(rack, undefined, false);
    expect(marks).toEqual(['before', 'acted', 'after']);
  }),
);

describe.concurrent('a hand-off, kill -9', () => {
  test.for(rows)(
    'a hand-off survives kill -9 of the $victim at $name, and acts as the table says',
    { timeout: rowTimeoutMs },
    ({ name, occurrence, victim, expected }) =>
      racks.use(async (rack) => {
        const held = expected.end === 'held';
        const marks = await rebootByWorkflow(rack, { name, occurrence, victim }, held);
        expect(marks.filter((line) => line === 'acted')).toHaveLength(expected.acted);
        expect(marks.filter((line) => line === 'before')).toHaveLength(1);
        if (!held) expect(marks.at(-1)).toBe('after');
      }),
  );
});
