/**
 * Judges one call of a parser, in the process in which it runs.
 *
 * J1 A busy machine makes no failure: a slow call is one that needs its processor time again and
 *    again.
 * J2 What a call leaves behind is not judged here: see growth.ts.
 */
import { readFileSync } from 'node:fs';
import { sizeOf } from './size.ts';
import { type Bounds, boundsOf, type Failure, type Target } from './target.ts';

/** A call is repeated so often before it counts as slow. */
const slowRounds = 3;

/** What all objects inherit. */
const prototypes: readonly object[] = [Object.prototype, Array.prototype];
const inherited = prototypes.map((each) => new Set(Reflect.ownKeys(each)));

export type Judge = (input: Uint8Array) => Promise<Failure | undefined>;

export function makeJudge(target: Target): Judge {
  const bounds = boundsOf(target);
  const peak = new PeakWatch();
  return async (input) => {
    const startedMs = performance.now();
    const end = await endOf(target, input);
    const tookMs = performance.now() - startedMs;
    const roseBytes = peak.after(tookMs);
    return (
      end.failure ??
      judgeResult(end.value, input, bounds) ??
      judgePrototypes() ??
      judgePeak(roseBytes, input, bounds) ??
      (tookMs > bounds.callCpuMs ? await judgeTime(target, input, bounds) : undefined)
    );
  };
}

/**
 * Kibibytes, of the kernel (proc(5), VmHWM). `ru_maxrss` will not do: a process inherits it from
 * the one that starts it, and a large parent hides each peak.
 */
function peakKibibytes(): number {
  return Number(/^VmHWM:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1]);
}

/** To ask for the peak takes longer than most calls, and a short call cannot raise it by much. */
class PeakWatch {
  #kibibytes = peakKibibytes();
  #calls = 0;

  /** By how many bytes the call before has raised the peak, roughly. */
  after(tookMs: number): number {
    this.#calls += 1;
    if (tookMs < 5 && this.#calls % 64 !== 0) return 0;
    const now = peakKibibytes();
    const rose = now - this.#kibibytes;
    this.#kibibytes = now;
    return tookMs < 5 ? 0 : rose * 1024;
  }
}

interface CallEnd {
  readonly value?: unknown;
  readonly failure?: Failure;
}

async function endOf(target: Target, input: Uint8Array): Promise<CallEnd> {
  try {
    const given = target.parse(input);
    return { value: given instanceof Promise ? await given : given };
  } catch (error) {
    if (target.refusals.some((each) => error instanceof each)) return {};
    return { failure: thrownFailure(error) };
  }
}

/** Its class, and the first line of our own code in its stack, tell errors apart. */
export function thrownFailure(error: unknown): Failure {
  if (!(error instanceof Error)) {
    return { kind: 'thrown', signature: typeof error, text: `throws ${String(error)}` };
  }
  const place = /\b((?:packages|agent|controlplane|test)\/[\w./-]+:\d+):\d+/.exec(
    error.stack ?? '',
  );
  const signature = `${error.name} at ${place?.[1] ?? 'a library'}`;
  const stack = (error.stack ?? '').split('\n').slice(0, 6).join('\n').slice(0, 1_000);
  return { kind: 'thrown', signature, text: stack };
}

function judgeResult(value: unknown, input: Uint8Array, bounds: Bounds): Failure | undefined {
  const limit = bounds.resultBytesMax + bounds.resultBytesPerByte * input.length;
  const size = sizeOf(value, limit);
  if (size <= limit) return undefined;
  const text = `gives more than ${limit} bytes for ${input.length}`;
  return { kind: 'large', signature: 'result', text };
}

/** Puts it right again, so that the next input is judged by itself. */
function judgePrototypes(): Failure | undefined {
  for (const [at, each] of prototypes.entries()) {
    const known = inherited[at];
    const added = Reflect.ownKeys(each).filter((key) => known?.has(key) !== true);
    if (added.length === 0) continue;
    for (const key of added) Reflect.deleteProperty(each, key);
    const { name } = each.constructor;
    const text = `what each ${name} inherits has changed: ${added.map(String).join(', ')}`;
    return { kind: 'prototype', signature: name, text };
  }
  return undefined;
}

/** Only suspected: the peak also rises where the collector is late. */
function judgePeak(peakBytes: number, input: Uint8Array, bounds: Bounds): Failure | undefined {
  if (peakBytes <= bounds.peakBytesMax) return undefined;
  const mebibytes = Math.round(peakBytes / 2 ** 20);
  const text = `raises the peak of the memory by ${mebibytes} MiB for ${input.length} bytes`;
  return { kind: 'memory', signature: 'peak', text };
}

/** J1: the least of several rounds decides. */
async function judgeTime(
  target: Target,
  input: Uint8Array,
  bounds: Bounds,
): Promise<Failure | undefined> {
  let leastMs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < slowRounds && leastMs > bounds.callCpuMs; round += 1) {
    const before = process.cpuUsage();
    await endOf(target, input);
    const used = process.cpuUsage(before);
    leastMs = Math.min(leastMs, (used.user + used.system) / 1_000);
  }
  if (leastMs <= bounds.callCpuMs) return undefined;
  const text = `takes ${Math.round(leastMs)} ms of a processor for ${input.length} bytes`;
  return { kind: 'slow', signature: 'call', text };
}
