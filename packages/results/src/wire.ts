/**
 * The union ↔ `Report.result` on the wire.
 *
 * 1. A value that is missing, unknown or out of range is never success: it decodes to `unsupported`
 *    with the field named (R8). Unknown extra fields are ignored.
 * 2. Encoding and decoding a result gives the same result.
 */
import { create } from '@bufbuild/protobuf';
import type { Duration } from '@bufbuild/protobuf/wkt';
import { durationFromMs, durationMs } from '@bufbuild/protobuf/wkt';
import {
  failureNameOf,
  failureTypeOf,
  transientCauseOf,
  transientNameOf,
} from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import type { Complete, ConflictReason, FailedAttempt, Result } from './result.ts';

/** A report that must not be acted on (R8); `problem` names the field and what it lacks. */
export interface UnsupportedReport {
  readonly kind: 'unsupported';
  readonly problem: string;
}

type WireResult = agent.Report['result'];

const wireReasons: Readonly<Record<ConflictReason, agent.ConflictReason>> = {
  locked: agent.ConflictReason.LOCKED,
  invalidState: agent.ConflictReason.INVALID_STATE,
  duplicate: agent.ConflictReason.DUPLICATE,
  fault: agent.ConflictReason.FAULT,
  frozen: agent.ConflictReason.FROZEN,
  notReady: agent.ConflictReason.NOT_READY,
};

const reasonsByWire: ReadonlyMap<agent.ConflictReason, ConflictReason> = new Map(
  (Object.entries(wireReasons) as [ConflictReason, agent.ConflictReason][]).map(
    ([reason, wire]) => [wire, reason],
  ),
);

/** The wire form of `result`, to be put into a Report. */
export function resultToWire(result: Result): WireResult {
  switch (result.kind) {
    case 'complete':
      return { case: 'complete', value: create(agent.CompleteSchema, outcome(result)) };
    case 'continuing': {
      const { step, percent, text, hintMs, begun = false, queuePlace = 0, signs = [] } = result;
      const value = create(agent.ContinuingSchema, {
        step,
        text,
        begun,
        queuePlace,
        signs: [...signs],
        ...(percent === undefined ? {} : { percent }),
        ...(hintMs === undefined ? {} : { hint: durationFromMs(hintMs) }),
      });
      return { case: 'continuing', value };
    }
    case 'retryAfter': {
      const { message, delayMs } = result;
      const reason = wireReasons[result.reason];
      const fields = { reason, message, delay: durationFromMs(delayMs) };
      return { case: 'retryAfter', value: create(agent.RetryAfterSchema, fields) };
    }
    case 'hostUpdated': {
      const { observations } = result;
      return { case: 'hostUpdated', value: create(agent.HostUpdatedSchema, { observations }) };
    }
    case 'failed': {
      const { message, detail = '', lastProgress = '', disksUntouched = false } = result;
      const { details } = result;
      const value = create(agent.FailedSchema, {
        ...{ type: failureTypeOf(result.type), message, detail, lastProgress, disksUntouched },
        ...(details === undefined ? {} : { details }),
        ...outcome(result),
      });
      return { case: 'failed', value };
    }
    case 'transientError': {
      const { message, delayMs, disksUntouched = false } = result;
      const cause = transientCauseOf(result.cause);
      const delay = delayMs === undefined ? {} : { delay: durationFromMs(delayMs) };
      const fields = { cause, message, disksUntouched, ...delay };
      return { case: 'transientError', value: create(agent.TransientErrorSchema, fields) };
    }
  }
}

/** The result of `report`, or the reason why it is none. */
export function resultFromWire(report: agent.Report): Result | UnsupportedReport {
  const { result } = report;
  switch (result.case) {
    case 'complete':
      return decodeOutcome('complete', result.value, { kind: 'complete' });
    case 'continuing':
      return decodeContinuing(result.value);
    case 'retryAfter':
      return decodeRetryAfter(result.value);
    case 'hostUpdated': {
      const { observations } = result.value;
      if (observations === undefined) return missing('host_updated.observations');
      return { kind: 'hostUpdated', observations };
    }
    case 'failed':
      return decodeFailed(result.value);
    case 'transientError':
      return decodeTransient(result.value);
    case undefined:
      return missing('result');
  }
}

function decodeContinuing(wire: agent.Continuing): Result | UnsupportedReport {
  const { step, percent, text, begun, queuePlace, signs } = wire;
  const hintMs = delayOf(wire.hint);
  if (percent !== undefined && percent > 100) return unknown('continuing.percent', `${percent}`);
  if (hintMs !== undefined && hintMs < 0) return unknown('continuing.hint', `${hintMs} ms`);
  return {
    kind: 'continuing',
    step,
    text,
    ...(percent === undefined ? {} : { percent }),
    ...(hintMs === undefined ? {} : { hintMs }),
    ...(begun ? { begun } : {}),
    ...(queuePlace === 0 ? {} : { queuePlace }),
    ...(signs.length === 0 ? {} : { signs }),
  };
}

function decodeRetryAfter(wire: agent.RetryAfter): Result | UnsupportedReport {
  const reason = reasonsByWire.get(wire.reason);
  const delayMs = delayOf(wire.delay);
  if (reason === undefined) return unknown('retry_after.reason', `${wire.reason}`);
  if (delayMs === undefined) return missing('retry_after.delay');
  if (delayMs < 0) return unknown('retry_after.delay', `${delayMs} ms`);
  return { kind: 'retryAfter', reason, message: wire.message, delayMs };
}

function decodeTransient(wire: agent.TransientError): Result | UnsupportedReport {
  const { message, disksUntouched } = wire;
  const cause = transientNameOf(wire.cause);
  const delayMs = delayOf(wire.delay);
  if (cause === undefined) return unknown('transient_error.cause', `${wire.cause}`);
  if (delayMs !== undefined && delayMs < 0)
    return unknown('transient_error.delay', `${delayMs} ms`);
  return {
    kind: 'transientError',
    cause,
    message,
    ...(delayMs === undefined ? {} : { delayMs }),
    ...(disksUntouched && { disksUntouched }),
  };
}

function decodeFailed(wire: agent.Failed): Result | UnsupportedReport {
  const { message, detail, details, lastProgress, disksUntouched } = wire;
  const type = failureNameOf(wire.type);
  if (type === undefined) return unknown('failed.type', `${wire.type}`);
  return decodeOutcome('failed', wire, {
    kind: 'failed',
    type,
    message,
    ...(detail === '' ? {} : { detail }),
    ...(details === undefined ? {} : { details }),
    ...(lastProgress === '' ? {} : { lastProgress }),
    ...(disksUntouched && { disksUntouched }),
  });
}

/** Adds observations and evidence; evidence without one of its parts proves nothing. */
function decodeOutcome<R extends Complete | FailedAttempt>(
  name: string,
  wire: Pick<agent.Complete, 'observations' | 'evidence' | 'output'>,
  result: R,
): R | UnsupportedReport {
  const { evidence } = wire;
  for (const part of ['payload', 'signature', 'publicKey'] as const) {
    if (evidence?.[part].length === 0) return missing(`${name}.evidence.${part}`);
  }
  return { ...result, ...outcome(wire) };
}

function outcome(from: {
  readonly observations?: agent.Observations | undefined;
  readonly evidence?: agent.Evidence | undefined;
  readonly output?: agent.StepOutput | undefined;
}): Pick<Complete, 'observations' | 'evidence' | 'output'> {
  const { observations, evidence, output } = from;
  return {
    ...(observations === undefined ? {} : { observations }),
    ...(evidence === undefined ? {} : { evidence }),
    ...(output === undefined ? {} : { output }),
  };
}

function delayOf(duration: Duration | undefined): number | undefined {
  return duration === undefined ? undefined : durationMs(duration);
}

function missing(field: string): UnsupportedReport {
  return { kind: 'unsupported', problem: `${field} is missing` };
}

function unknown(field: string, value: string): UnsupportedReport {
  return { kind: 'unsupported', problem: `${field}: "${value}" is not a value known here` };
}
