/**
 * Any template with any results of its attempts. The judge is a simulated machine: it has a runner
 * only while it was booted into one, and counts what really began on it.
 */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  HostState,
  hostWaitOf,
  RerunClass,
  RunOutcome,
  RunPhase,
  StepState,
  TransientCause,
} from '@rackwright/messages';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { agentWordMs } from '../operation/operation.ts';
import type { WorkflowStep } from '../pass/types.ts';
import { type Bench, bootOfRunner, done, failed } from '../testing/bench.ts';
import {
  bmcStep,
  exited,
  rendered,
  runOf,
  startOn,
  workable,
  wrote,
} from '../testing/templates.ts';

/** The result of one attempt. */
type Luck = 'done' | 'fails' | 'late' | 'silent' | 'interrupted' | 'away' | 'resets';

const luck: fc.Arbitrary<Luck> = fc.oneof(
  { weight: 8, arbitrary: fc.constant<Luck>('done') },
  { weight: 2, arbitrary: fc.constantFrom<Luck>('fails', 'late', 'silent') },
  { weight: 2, arbitrary: fc.constantFrom<Luck>('interrupted', 'away', 'resets') },
);

const kinds = [
  'run.script',
  'run.script',
  'run.file',
  bmcStep,
  'wait',
  'hold',
  'powerOff',
  'powerOn',
  'reboot',
  'bootDisk',
];

const policies = ['fail', 'continue', 'hold', 'tidy'];
const conditions = ['', '', '', 'steps.s0.state == "succeeded"', 'steps.s0.exitCode == 1'];

const oneStep = fc.record({
  step: fc.constantFrom(...kinds),
  retries: fc.nat(2),
  onFailure: fc.constantFrom(...policies),
  onTimeout: fc.constantFrom(...policies),
  condition: fc.constantFrom(...conditions),
  once: fc.boolean(),
  handOff: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
});

const template = fc.record({
  steps: fc.array(oneStep, { minLength: 1, maxLength: 8 }),
  tidyInRunner: fc.boolean(),
});

/** A host whose disk may be booted. */
function bootable(state: HostState = HostState.MANAGEABLE): Bench {
  const host = workable(state);
  const { status } = host.record.host ?? {};
  if (status !== undefined) status.dirty = false;
  return host;
}

function renderedOf({
  steps,
  tidyInRunner,
}: {
  steps: {
    step: string;
    retries: number;
    onFailure: string;
    onTimeout: string;
    condition: string;
    once: boolean;
    handOff: boolean;
  }[];
  tidyInRunner: boolean;
}): WorkflowStep[] {
  const main = steps.map(({ step, once, handOff, condition, ...more }, index) => {
    const isProgram = step === 'run.script';
    return rendered(`s${index}`, step, {
      ...more,
      timeoutMs: step === 'wait' || step === 'hold' ? undefined : 60_000,
      arguments: step === 'wait' ? { seconds: '30' } : {},
      condition: index === 0 ? '' : condition,
      destructive: true,
      rerunClass: isProgram && once ? RerunClass.NEVER_TWICE : RerunClass.SAFE,
      handOff: isProgram && handOff,
    });
  });
  const tidy = rendered('tidy', tidyInRunner ? 'run.script' : bmcStep, { handler: true });
  return [...main, tidy];
}

/** The machine and its agent. */
class Machine {
  on: 'off' | 'runner' | 'disk' | 'handedOver' = 'off';
  /** The power-on whose runner is up, or coming up. */
  boot = '';
  /** How often each step of the template was begun, by its title. */
  readonly begun = new Map<string, number>();
  readonly ids = new Set<string>();

  /** Carries an order out, and returns the agent's report; undefined: none. */
  carryOut(host: Bench, what: Luck): agent.Report['result'] | undefined {
    const operation = host.operation();
    if (this.ids.has(operation.id)) throw new Error(`${operation.id} names two attempts`);
    this.ids.add(operation.id);
    const { kind } = operation;
    if (what === 'resets') this.#reset();
    if (what === 'away') return transient;
    if (kind.case === 'setPower') return this.#power(operation.id, kind.value, what);
    if (kind.case !== 'runStep') throw new Error(`nobody orders ${kind.case}`);
    const isInBand = kind.value.bmc === undefined;
    if (isInBand && (this.on !== 'runner' || this.boot !== kind.value.bootOperationId)) {
      return bootIsOver;
    }
    const { title = '' } = runOf(host).steps[runOf(host).currentStep] ?? {};
    this.begun.set(title, (this.begun.get(title) ?? 0) + 1);
    const ends = endOf(what, isInBand);
    const handedOver = kind.value.handOff === true && what !== 'fails';
    if (handedOver) this.on = 'handedOver';
    return ends;
  }

  #power(id: string, { on, bootFrom }: agent.SetPower, what: Luck) {
    if (what === 'fails' || what === 'late')
      return failed(what === 'late' ? 'deadline' : 'notApplied');
    if (on !== true) this.on = 'off';
    else if (this.on !== 'off') return bootIsOver;
    else {
      this.on = bootFrom === agent.BootTarget.DISK ? 'disk' : 'runner';
      this.boot = id;
    }
    return what === 'silent' ? undefined : what === 'interrupted' ? failed('interrupted') : done;
  }

  #reset(): void {
    if (this.on !== 'off') this.on = 'disk';
  }
}

function endOf(what: Luck, isProgram: boolean): agent.Report['result'] | undefined {
  switch (what) {
    case 'fails':
      return isProgram ? exited(1, 'no') : failed('notApplied');
    case 'late':
      return failed('deadline');
    case 'interrupted':
      return failed('interrupted');
    case 'silent':
      return undefined;
    default:
      return isProgram ? wrote('yes') : done;
  }
}

const transient: agent.Report['result'] = {
  case: 'transientError',
  value: create(agent.TransientErrorSchema, { cause: TransientCause.BUSY, message: 'busy' }),
};

const bootIsOver: agent.Report['result'] = {
  case: 'retryAfter',
  value: create(agent.RetryAfterSchema, {
    reason: agent.ConflictReason.INVALID_STATE,
    message: 'the boot is over',
    delay: durationFromMs(0),
  }),
};

function pass(host: Bench, ms: number): void {
  host.nowMs += ms;
  const { session } = host.snapshot;
  if (session === undefined) return;
  host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: host.nowMs } };
}

/** More rounds than any run needs: each bad result adds a boot and the steps after it. */
const roundsMax = 600;

interface WalkOutcome {
  readonly machine: Machine;
  /** How often a person let a step run again, by its title. */
  readonly resumed: ReadonlyMap<string, number>;
}

/** The machine carries out its agent's orders, and the agent reports it, or nothing. */
function carryOut(host: Bench, machine: Machine, luck: Luck): void {
  const { id } = host.operation();
  const said = machine.carryOut(host, luck);
  if (said === undefined) pass(host, 24 * 3_600_000 + agentWordMs);
  else host.report(said, id);
}

function walk(host: Bench, lucks: readonly Luck[]): WalkOutcome {
  const machine = new Machine();
  if (host.record.host?.status?.state === HostState.PROVISIONED) machine.on = 'disk';
  const resumed = new Map<string, number>();
  const left = [...lucks];
  const { number } = runOf(host);
  const isUnderWay = () => runOf(host).number === number && runOf(host).phase !== RunPhase.ENDED;
  for (let round = 0; round < roundsMax && isUnderWay(); round++) {
    const run = runOf(host);
    const step = run.steps[run.currentStep];
    pass(host, 1_000);
    if (hostWaitOf(run.waiting) === 'hold') {
      const again = left.length % 2 === 0;
      const title = step?.title ?? '';
      if (again) resumed.set(title, (resumed.get(title) ?? 0) + 1);
      host.request({ kind: again ? 'resume' : 'skip', reason: 'looked' });
    } else if (step?.name === 'runner.await') {
      const comes = machine.on === 'runner' && machine.boot === bootOfRunner(run);
      if (comes) host.runnerReady();
      else pass(host, 20 * 60_000);
    } else if (host.record.operation?.sentTo === undefined) pass(host, 60_000);
    else carryOut(host, machine, left.shift() ?? 'done');
    host.apply({ kind: 'tick' });
  }
  expect(isUnderWay(), 'the run ends').toBe(false);
  return { machine, resumed };
}

/** The run of the workflow, also when the restored power has followed it. */
function workflowOf(host: Bench) {
  const [ended] = host.record.finishedRuns;
  return runOf(host).workflowRun === '' && ended !== undefined ? ended : runOf(host);
}

test('every template ends, with ids of their own, and begins nothing twice by itself', () => {
  const outcomes = new Map<RunOutcome, number>();
  fc.assert(
    fc.property(template, fc.array(luck, { maxLength: 40 }), (listed, lucks) => {
      const host = bootable();
      const steps = renderedOf(listed);
      startOn(host, steps);
      const { machine, resumed } = walk(host, lucks);
      const run = workflowOf(host);
      outcomes.set(run.outcome, (outcomes.get(run.outcome) ?? 0) + 1);
      for (const { title, rerunClass, handOff, retries } of steps) {
        if (rerunClass !== RerunClass.NEVER_TWICE && !handOff) continue;
        // A template's retries apply after the end of an attempt is known.
        const allowed = 1 + (handOff ? 0 : retries) + (resumed.get(title) ?? 0);
        expect(machine.begun.get(title) ?? 0, title).toBeLessThanOrEqual(allowed);
      }
      const open = run.steps.filter(({ state }) => state === StepState.PENDING);
      expect(open).toEqual([]);
    }),
    { numRuns: 400, seed: 815 },
  );
  for (const outcome of [RunOutcome.SUCCEEDED, RunOutcome.FAILED, RunOutcome.TIMED_OUT]) {
    expect(outcomes.get(outcome) ?? 0, 'the property is about all of them').toBeGreaterThan(10);
  }
});

test('with good luck each step finds its runner up, and the end is as promised', () => {
  let inUse = 0;
  fc.assert(
    fc.property(template, fc.boolean(), (listed, provisioned) => {
      const host = bootable(provisioned ? HostState.PROVISIONED : HostState.MANAGEABLE);
      const steps = renderedOf({
        ...listed,
        steps: listed.steps.filter(({ step }) => step !== 'hold'),
      });
      startOn(host, steps);
      const before = runOf(host).steps.length;
      const { machine } = walk(host, []);
      const run = workflowOf(host);
      expect(run.outcome).toBe(RunOutcome.SUCCEEDED);
      expect(run.steps, 'the list never changes').toHaveLength(before);
      const boots = run.steps.filter(({ name }) => name === 'power.bootRunner');
      expect(boots.every(({ attempt }) => attempt <= 1)).toBe(true);
      const last = run.steps.findLast(({ attempt, title, name, handOff }) => {
        return attempt > 0 && title !== '' && (handOff || name.startsWith('power.'));
      });
      const theirs = last !== undefined && run.steps.indexOf(last) > lastBoot(run.steps);
      if (machine.on === 'runner') throw new Error('a runner is left');
      if (theirs || !boots.some(({ attempt }) => attempt > 0)) return;
      expect(machine.on).toBe(provisioned ? 'disk' : 'off');
      if (provisioned) inUse += 1;
    }),
    { numRuns: 300, seed: 816 },
  );
  expect(inUse).toBeGreaterThan(20);
});

function lastBoot(steps: readonly { readonly name: string; readonly attempt: number }[]): number {
  return steps.findLastIndex(({ name, attempt }) => name === 'power.bootRunner' && attempt > 0);
}
