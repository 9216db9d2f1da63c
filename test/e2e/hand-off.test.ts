/** A workflow whose script reboots its host, with each process killed at each boundary of it. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HostGoal, HostState, RunKind, RunOutcome, RunPhase } from '@rackwright/api';
import { describe, expect, test } from 'vitest';
import { handOffBoundaries, handOffTable, victims } from './kill-table.ts';
import type { MachinePlan } from './machines.ts';
import { type Crash, Rack } from './rack.ts';

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

async function rebootByWorkflow(crash: Crash | undefined, held: boolean): Promise<string[]> {
  const armed = crash === undefined ? {} : { crash };
  const rack = await Rack.start({ machines: [machine], goal: HostGoal.MANAGEABLE, ...armed });
  const marks = join(rack.folder, 'marks');
  try {
    await rack.untilHost('h1', 'verified', ({ status }) => {
      return status?.state === HostState.MANAGEABLE && status.run?.phase === RunPhase.ENDED;
    });
    const { templates, workflows } = rack.clients;
    await templates.createTemplate({ templateId: 'again', template: { source: template(marks) } });
    await workflows.createWorkflow({ parent: 'hosts/h1', workflowId: 'again' });
    const host = await rack.untilHost('h1', held ? 'held' : 'run to its end', ({ status }) => {
      const run = status?.run;
      if (run?.kind !== RunKind.WORKFLOW) return false;
      return held ? run.waiting?.reason === 'hold' : run.phase === RunPhase.ENDED;
    });
    const run = host.status?.run;
    expect(run?.error?.message).toBeUndefined();
    if (!held) expect(run?.outcome).toBe(RunOutcome.SUCCEEDED);
    if (!held) expect(await outputOf(rack, 'before')).toBe('hello\nexit 0');
    return existsSync(marks) ? readFileSync(marks, 'utf8').trim().split('\n') : [];
  } finally {
    await rack.stop();
  }
}

/** What is kept of the output of a step of the run, and how it ended. */
async function outputOf(rack: Rack, step: string): Promise<string> {
  const name = 'hosts/h1/workflows/again/runs/1';
  let found = '';
  for await (const answer of rack.clients.workflows.readStepOutput({ name, step, follow: true })) {
    found += new TextDecoder().decode(answer.content);
    if (answer.exit !== undefined) found += `exit ${answer.exit.code}`;
  }
  return found;
}

test('a script reboots its host, and the next step boots it again', { timeout: rowTimeoutMs }, () =>
  expect(rebootByWorkflow(undefined, false)).resolves.toEqual(['before', 'acted', 'after']),
);

describe.concurrent('a hand-off, kill -9', () => {
  test.for(rows)(
    'of the $victim at $name',
    { timeout: rowTimeoutMs },
    async ({ name, occurrence, victim, expected }) => {
      const held = expected.end === 'held';
      const marks = await rebootByWorkflow({ name, occurrence, victim }, held);
      expect(marks.filter((line) => line === 'acted')).toHaveLength(expected.acted);
      expect(marks.filter((line) => line === 'before')).toHaveLength(1);
      if (!held) expect(marks.at(-1)).toBe('after');
    },
  );
});
