/** Any accepted list, with any events on the way: it ends, or waits for a person. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  HostGoal,
  hostWaitOf,
  RerunClass,
  RunPhase,
  TransientCause,
  userActor,
} from '@rackwright/messages';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Bench, bench, done, failed, inspected, verified } from '../testing/bench.ts';

const described = (name: string, rerunClass: RerunClass = RerunClass.SAFE, rebootAfter = false) =>
  create(agent.StepDescriptionSchema, {
    name,
    rerunClass,
    rebootAfter,
    destructive: false,
    abortable: true,
  });

const flash = 'firmware.flash';
const names = [
  'vendor.tune',
  flash,
  'bios.set',
  'management.clear_event_log',
  'hold',
  'wait',
  'powerOff',
  'powerOn',
  'reboot',
] as const;

function manageable(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const runnerSteps = [
    described('vendor.tune'),
    described(flash, RerunClass.NEVER_TWICE),
    described('bios.set', RerunClass.SAFE, true),
  ];
  host.snapshot = {
    ...host.snapshot,
    agentSteps: [described('management.clear_event_log')],
    facts: { ...host.snapshot.facts, runnerSteps },
  };
  return host;
}

/** The result of one attempt. */
type Luck = 'done' | 'interrupted' | 'bootOver' | 'away';

const luck = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Luck>('done') },
  { weight: 1, arbitrary: fc.constantFrom<Luck>('interrupted', 'bootOver', 'away') },
);

function resultOf(host: Bench, what: Luck): agent.Report['result'] {
  const { kind } = host.operation();
  switch (what) {
    case 'interrupted':
      return failed('interrupted');
    case 'bootOver': {
      const value = create(agent.RetryAfterSchema, {
        reason: agent.ConflictReason.INVALID_STATE,
        message: 'the boot is over',
        delay: durationFromMs(0),
      });
      return { case: 'retryAfter', value };
    }
    case 'away': {
      const value = create(agent.TransientErrorSchema, {
        cause: TransientCause.BUSY,
        message: 'busy',
      });
      return { case: 'transientError', value };
    }
    case 'done':
      return kind.case === 'inspect' ? inspected() : done;
  }
}

const runOf = (host: Bench) => {
  const run = host.record.host?.status?.run;
  if (run === undefined) throw new Error('no run');
  return run;
};

/** Longest walks: each luck but `done` adds a few boots. */
const walkMax = 400;

/** Advances the run as far as possible; no id may recur once its attempt was reported. */
function walk(host: Bench, lucks: readonly Luck[]): void {
  const reported = new Set<string>();
  const left = [...lucks];
  for (let at = 0; at < walkMax && runOf(host).phase !== RunPhase.ENDED; at++) {
    const run = runOf(host);
    const step = run.steps[run.currentStep];
    host.nowMs += 61_000;
    if (hostWaitOf(run.waiting) === 'hold') host.request({ kind: 'resume', reason: '' });
    else if (step?.name === 'runner.await') host.runnerReady();
    else if (host.record.operation === undefined) host.apply({ kind: 'tick' });
    else {
      host.apply({ kind: 'tick' });
      const { id } = host.operation();
      expect(reported.has(id), `${id} (${step?.name}) names two attempts`).toBe(false);
      reported.add(id);
      host.report(resultOf(host, left.shift() ?? 'done'), id);
    }
  }
}

const lists = fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 8 });

test('every list that is accepted ends, and no id names two attempts', () => {
  let accepted = 0;
  fc.assert(
    fc.property(lists, fc.array(luck, { maxLength: 40 }), (listed, lucks) => {
      const host = manageable();
      const steps = listed.map((step) => ({
        step,
        arguments: step === 'wait' ? { seconds: '30' } : {},
      }));
      const request = { kind: 'clean', steps } as const;
      const by = { actor: userActor('test') };
      if (host.try({ kind: 'request', request, by }).kind === 'refused') return;
      accepted += 1;
      host.request(request);
      walk(host, lucks);
      expect(runOf(host).phase).toBe(RunPhase.ENDED);
    }),
    { numRuns: 300, seed: 4711 },
  );
  expect(accepted, 'the property is about lists that run').toBeGreaterThan(50);
});

test('a step that never runs twice runs again only on a person’s word', () => {
  fc.assert(
    fc.property(fc.array(luck, { maxLength: 30 }), (lucks) => {
      const host = manageable();
      const steps = [flash, 'bios.set', 'vendor.tune'].map((step) => ({ step, arguments: {} }));
      host.request({ kind: 'clean', steps });
      let resumes = 0;
      let begun = 0;
      const left = [...lucks];
      for (let at = 0; at < walkMax && runOf(host).phase !== RunPhase.ENDED; at++) {
        const run = runOf(host);
        const step = run.steps[run.currentStep];
        host.nowMs += 61_000;
        if (hostWaitOf(run.waiting) === 'hold') {
          resumes += 1;
          host.request({ kind: 'resume', reason: '' });
        } else if (step?.name === 'runner.await') host.runnerReady();
        else {
          host.apply({ kind: 'tick' });
          const what = left.shift() ?? 'done';
          // An attempt that was busy, or had no runner, has begun nothing.
          if (step?.name === flash && (what === 'done' || what === 'interrupted')) begun += 1;
          host.report(resultOf(host, what));
        }
      }
      expect(runOf(host).phase).toBe(RunPhase.ENDED);
      expect(begun).toBeLessThanOrEqual(1 + resumes);
    }),
    { numRuns: 200, seed: 4712 },
  );
});
