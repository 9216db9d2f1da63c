/**
 * The metrics of the control plane. Parts that do the work get a function to count it; values that
 * can be read are read at the scrape.
 *
 * C1 No label is a host, a MAC, an address or a person. Racks are labels, up to a bound.
 * C2 Counts of hosts come from the fleet view: a scrape reads no host.
 */
import type { DescEnum } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  enumWord,
  failureNameOf,
  failureNames,
  HostStateSchema,
  RackFaultTypeSchema,
  type Run,
  RunKindSchema,
  RunOutcomeSchema,
  type RunStep,
  StepState,
} from '@rackwright/messages';
import {
  callBounds,
  countSpans,
  type Durations,
  otherValue,
  Registry,
  workBounds,
} from '@rackwright/metrics';
import type { RecordSpan, SpanExporter } from '@rackwright/trace';
import type { AcknowledgementMeter } from '../agents/index.ts';
import { attemptResults, type EventMeter, sinkTargets } from '../events/index.ts';
import { type CallMeter, callCodes } from './counted-calls.ts';
import { type StoreMeter, storeCalls, storeResults } from './measured-store.ts';
import { type HostOfRun, spansOf } from './run-spans.ts';

/** The names of an enum's values, as labels: "available". */
function wordsOf(schema: DescEnum): readonly string[] {
  return schema.values.flatMap(({ number }) => enumWord(schema, number) ?? []);
}

/** The name of one value; "other" for an unknown one. */
export function wordOf(schema: DescEnum, number: number): string {
  return enumWord(schema, number) ?? otherValue;
}

export const stateWords = wordsOf(HostStateSchema);
export const rackFaultWords = wordsOf(RackFaultTypeSchema);
export const runKindWords = wordsOf(RunKindSchema);
const outcomeWords = wordsOf(RunOutcomeSchema);
/** Names of steps are few, but those of later versions are unknown here. */
const stepsMax = { valuesMax: 96 };
/** Calls are counted only for methods of our descriptors: there are fewer. */
const methodsMax = { valuesMax: 192 };
const answers = ['applied', 'duplicate', 'stale', 'refused'] as const;

/** The registry, and the functions that count the work. */
export interface Figures {
  readonly registry: Registry;
  /** This replica has stored the record of a finished run. */
  readonly onRunEnded: (run: Run, host: HostOfRun) => void;
  readonly onAcknowledged: AcknowledgementMeter;
  readonly onStoreCall: StoreMeter;
  /** A call of an operator has ended. */
  readonly onCall: CallMeter;
  /** An attempt to deliver an event has ended. */
  readonly onEvent: EventMeter;
  /** Unset: spans are not exported. */
  readonly recordSpan?: RecordSpan;
  readonly stop: () => void;
}

/** For one process. `spans`: the exporter for finished runs and calls. */
export function createFigures(spans?: SpanExporter): Figures {
  const registry = new Registry();
  if (spans !== undefined) countSpans(registry, () => spans.counts);
  const count = countRuns(registry);
  const acknowledged = registry.durations(
    'rackwright_acknowledgement_seconds',
    'From the arrival of a final report to its answer, by what was answered.',
    { answer: answers },
    callBounds,
  );
  const store = registry.durations(
    'rackwright_store_call_seconds',
    'Calls of the state store.',
    { call: storeCalls, result: storeResults },
    callBounds,
  );
  const observers = byWord(storeCalls, (call) =>
    byWord(storeResults, (result) => store.observerOf({ call, result })),
  );
  const calls = registry.counter(
    'rackwright_api_calls_total',
    'Calls of the API that have ended, by method and gRPC code; streams when they are over.',
    { method: methodsMax, code: callCodes },
  );
  const events = registry.counter(
    'rackwright_event_attempts_total',
    'Attempts to deliver events, by what came of them; dead: the event was given up after it.',
    { target: sinkTargets, result: attemptResults },
  );
  return {
    registry,
    onEvent: (target, result) => events.add({ target, result }),
    onRunEnded: (run, host) => {
      count(run);
      if (spans === undefined) return;
      for (const span of spansOf(host, run)) spans.record(span);
    },
    onAcknowledged: (answer, seconds) => acknowledged.observe({ answer }, seconds),
    onCall: (method, code) => calls.add({ method, code }),
    onStoreCall: (call, result, seconds) => observers[call][result](seconds),
    ...(spans === undefined ? {} : { recordSpan: spans.record.bind(spans) }),
    stop: () => spans?.stop(),
  };
}

function byWord<W extends string, T>(words: readonly W[], of: (word: W) => T) {
  return Object.fromEntries(words.map((word) => [word, of(word)])) as Readonly<Record<W, T>>;
}

function countRuns(registry: Registry): (run: Run) => void {
  const runs = registry.counter(
    'rackwright_runs_total',
    'Runs that have ended, by what they were for and how they ended.',
    { kind: runKindWords, outcome: outcomeWords },
  );
  const failures = registry.counter(
    'rackwright_run_failures_total',
    'Runs that have ended badly, by what they were for and why.',
    { kind: runKindWords, failure: ['other', ...failureNames] },
  );
  const durations = registry.durations(
    'rackwright_run_duration_seconds',
    'Runs from their start to their end.',
    { kind: runKindWords, outcome: outcomeWords },
    workBounds,
  );
  const steps = registry.durations(
    'rackwright_step_duration_seconds',
    'Steps of runs that have ended, from their start to their end.',
    { step: stepsMax, outcome: ['succeeded', 'failed'] },
    workBounds,
  );
  return (run) => {
    const kind = wordOf(RunKindSchema, run.kind);
    const outcome = wordOf(RunOutcomeSchema, run.outcome);
    runs.add({ kind, outcome });
    if (run.error !== undefined) {
      failures.add({ kind, failure: failureNameOf(run.error.type) ?? otherValue });
    }
    const seconds = secondsOf(run);
    if (seconds !== undefined) durations.observe({ kind, outcome }, seconds);
    for (const step of run.steps) countStep(steps, step);
  };
}

type StepDurations = Durations<{
  readonly step: { readonly valuesMax: number };
  readonly outcome: readonly ['succeeded', 'failed'];
}>;

/** A step that was skipped, or not reached, took no time. */
function countStep(steps: StepDurations, step: RunStep): void {
  const seconds = secondsOf(step);
  if (seconds === undefined) return;
  if (step.state === StepState.SUCCEEDED) {
    steps.observe({ step: step.name, outcome: 'succeeded' }, seconds);
  } else if (step.state === StepState.FAILED) {
    steps.observe({ step: step.name, outcome: 'failed' }, seconds);
  }
}

function secondsOf({ startTime, endTime }: Pick<Run, 'startTime' | 'endTime'>): number | undefined {
  if (startTime === undefined || endTime === undefined) return undefined;
  return (timestampMs(endTime) - timestampMs(startTime)) / 1_000;
}
