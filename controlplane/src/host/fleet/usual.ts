/**
 * The usual durations of runs and their steps: the median of the last successful ones, on the host
 * itself or, without any, on the hosts of its rack. The source is the stored finished runs; the
 * cache here can be read again.
 */
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type HostId,
  type HostUid,
  type Run,
  RunKind,
  RunOutcome,
  type RunStep,
  StepState,
  store as wire,
} from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { type StateStore, storeKey } from '@rackwright/store';
import { orUnavailable, type RecordReader, readableOnce } from '../../records/index.ts';
import { runKindName } from '../pass/pass.ts';
import { engineSteps, isBootStep, isOfTemplate } from '../pass/step-names.ts';
import type { HostIndex } from './host-index.ts';

/** The most successes for one median. */
const samplesMax = 10;
/** The most hosts of the rack that are read. */
const peersMax = 32;
/** How long a cached value is used. */
const freshMs = 60_000;
/** The most hosts in the cache. */
const hostsMax = 1_000;

/** Milliseconds; undefined: no such run or step has succeeded yet. */
export interface UsualTimes {
  runMs(run: RunLike): number | undefined;
  stepMs(run: RunLike, step: StepLike): number | undefined;
}

/** The fields that decide which runs are comparable. */
export type RunLike = Pick<Run, 'kind' | 'manual' | 'workflowRun'> & {
  readonly steps: readonly (Pick<RunStep, 'name' | 'arguments'> & {
    readonly state?: StepState;
  })[];
};

type StepLike = Pick<RunStep, 'name' | 'title'>;

/** Without any data. */
export const noUsualTimes: UsualTimes = { runMs: () => undefined, stepMs: () => undefined };

/** Durations by key, newest first. */
type Samples = ReadonlyMap<string, readonly number[]>;

interface RunReader extends RecordReader {
  readonly store: StateStore;
}

/** Reads and caches the durations. */
export class UsualDurations {
  readonly #reader: RunReader;
  readonly #clock: Clock;
  readonly #index: HostIndex;
  readonly #known = new Map<HostUid, { readonly atMs: number; readonly samples: Samples }>();

  constructor(deps: RunReader & { readonly clock: Clock }, index: HostIndex) {
    this.#reader = deps;
    this.#clock = deps.clock;
    this.#index = index;
  }

  /** The durations of one host. Throws `unavailable`. */
  async of(hostId: HostId): Promise<UsualTimes> {
    const own = await this.#samplesOf(hostId);
    const peers = this.#index
      .hostIdsOfRack(this.#index.rackOf(hostId) ?? '')
      .filter((each) => each !== hostId)
      .slice(0, peersMax);
    const others = await Promise.all(peers.map((each) => this.#samplesOf(each)));
    const usual = (key: string) =>
      median(own.get(key) ?? others.flatMap((samples) => samples.get(key) ?? []));
    return {
      runMs: (run) => usual(keyOfRun(run)),
      stepMs: (run, step) => usual(keyOfStep(run, step)),
    };
  }

  async #samplesOf(hostId: HostId): Promise<Samples> {
    const uid = this.#index.uidOf(hostId);
    if (uid === undefined || uid === '') return new Map();
    const nowMs = this.#clock.nowMs();
    const known = this.#known.get(uid);
    if (known !== undefined && Math.abs(nowMs - known.atMs) < freshMs) return known.samples;
    const { entries } = await orUnavailable(this.#reader.store.list(storeKey('runs', uid)));
    const runs = entries.flatMap(
      (entry) => readableOnce(this.#reader, wire.FinishedRunRecordSchema, entry)?.run ?? [],
    );
    const samples = samplesOf(runs);
    this.#known.delete(uid);
    this.#known.set(uid, { atMs: nowMs, samples });
    const [oldest] = this.#known.keys();
    if (this.#known.size > hostsMax && oldest !== undefined) this.#known.delete(oldest);
    return samples;
  }
}

/** Durations of the successful runs and steps, the newest of each first; exported for tests. */
export function samplesOf(runs: readonly Run[]): Samples {
  const samples = new Map<string, number[]>();
  const add = (key: string, start: Timestamp | undefined, end: Timestamp | undefined) => {
    if (start === undefined || end === undefined) return;
    const kept = samples.get(key) ?? [];
    if (kept.length < samplesMax) kept.push(Math.max(0, timestampMs(end) - timestampMs(start)));
    samples.set(key, kept);
  };
  for (const run of runs.toSorted((a, b) => Number(b.number - a.number))) {
    if (run.outcome === RunOutcome.SUCCEEDED) add(keyOfRun(run), run.startTime, run.endTime);
    for (const step of run.steps) {
      if (step.state !== StepState.SUCCEEDED) continue;
      add(keyOfStep(run, step), step.startTime, step.endTime);
    }
  }
  return samples;
}

/**
 * Runs of one kind take similar times; for lists that people write, those with the same steps do. A
 * clean that uses the boot of its inspection saves one boot.
 */
function keyOfRun(run: RunLike): string {
  const list = run.manual ? run.steps.map(stepText).join(' ') : '';
  const boot = run.steps.find(({ name }) => isBootStep(name));
  const isBooted = run.kind === RunKind.CLEAN && boot?.state === StepState.SKIPPED;
  return `${runKindName(run.kind)}/${templateOf(run)}/${list}${isBooted ? '/booted' : ''}`;
}

/** A step of a template is identified by its own title, any other by its name. */
function keyOfStep(run: RunLike, step: StepLike): string {
  const { name, title } = step;
  return isOfTemplate(step) ? `${templateOf(run)}/${title}/${name}` : `/${name}`;
}

/** The duration of a pause is in its arguments. */
function stepText({ name, arguments: given }: RunLike['steps'][number]): string {
  return name === engineSteps.wait ? `wait=${given['seconds']}` : name;
}

/** Of "hosts/h1/workflows/t/runs/3" the "t"; empty for every other run. */
function templateOf({ workflowRun }: RunLike): string {
  return workflowRun.split('/')[3] ?? '';
}

function median(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low, high] = [sorted[middle - 1], sorted[middle]];
  if (high === undefined) return undefined;
  return sorted.length % 2 === 1 || low === undefined ? high : Math.round((low + high) / 2);
}
