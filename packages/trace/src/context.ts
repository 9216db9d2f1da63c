/** W3C Trace Context, level 1: the `traceparent` of our caller, and of our own calls. Pure. */
import { createHash } from 'node:crypto';

export interface TraceContext {
  /** 32 lower-case hexadecimal digits, not all 0. */
  readonly traceId: string;
  /** The id of the span under way: 16 such digits, not all 0. */
  readonly spanId: string;
  /** Whether spans of this trace are recorded. */
  readonly sampled: boolean;
}

/** §3.2: version, trace id, parent id, flags; later versions may have more behind. */
const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const textUnitsMax = 256;

/** Undefined for an invalid one: its receiver begins a trace of its own (§3.2.2). */
export function parseTraceparent(text: string | undefined): TraceContext | undefined {
  if (text === undefined || text.length > textUnitsMax) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = form.exec(text) ?? [];
  if (version === undefined || version === 'ff') return undefined;
  if (version === '00' && more !== undefined) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** The header for a call by the span of this context. */
export function traceparentOf({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}

/** The same name gives the same id, in each program. */
function derived(name: string, digits: 16 | 32): string {
  return createHash('sha256').update(name).digest('hex').slice(0, digits);
}

/** The spans of one run, by "HOST-UID/RUN". */
export interface RunTrace {
  readonly traceId: string;
  readonly sampled: boolean;
  /** The span of the call that requested the run; undefined: there was none. */
  readonly callSpanId: string | undefined;
  readonly spanId: string;
  /** The span of the step at this place in the run's list. */
  step(index: number): string;
}

/**
 * `traceparent`: that of the call that requested it; empty: none. Each id is a hash, made on
 * demand: a line of a log needs one of them.
 */
export function runTrace(hostUid: string, run: bigint | string, traceparent: string): RunTrace {
  const name = `${hostUid}/${run}`;
  const call = parseTraceparent(traceparent);
  return {
    get traceId() {
      return call?.traceId ?? derived(`trace ${name}`, 32);
    },
    sampled: call?.sampled ?? true,
    callSpanId: call?.spanId,
    get spanId() {
      return derived(`run ${name}`, 16);
    },
    step: (index) => derived(`step ${name}/${index}`, 16),
  };
}

/** The span of one operation, and the step that it is an attempt of. */
export interface OperationTrace extends TraceContext {
  readonly parentSpanId: string;
}

/**
 * By "HOST-UID/RUN/STEP/ATTEMPT". `traceparent`: that of the call that requested the run; empty:
 * none. Undefined for an id of another form.
 */
export function operationTrace(id: string, traceparent: string): OperationTrace | undefined {
  const [hostUid, run, step, attempt, ...more] = id.split('/');
  if (hostUid === undefined || run === undefined || more.length > 0) return undefined;
  if (!/^\d{1,9}$/.test(step ?? '') || attempt === undefined) return undefined;
  const ofRun = runTrace(hostUid, run, traceparent);
  return {
    get traceId() {
      return ofRun.traceId;
    },
    get spanId() {
      return derived(`operation ${id}`, 16);
    },
    sampled: ofRun.sampled,
    get parentSpanId() {
      return ofRun.step(Number(step));
    },
  };
}
