/** The result of a burn-in, as it is kept and reported. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type BurnInKind, type BurnInPartSchema, counted } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { boundText, type FailedAttempt } from '@rackwright/results';
import type { StepContext, StepResult } from '../steps/step.ts';
import type { TemperatureMonitor } from './heat.ts';

/** Disks in the report; those with findings before the others. */
export const partsMax = 32;
const problemBytesMax = 512;
const findingBytesMax = 256;

export type BurnInPartInit = MessageInitShape<typeof BurnInPartSchema>;

/** Something that a burn-in has found wrong. */
export interface Finding {
  /** For people. */
  readonly text: string;
}

export interface BurnInFindings {
  readonly kind: BurnInKind;
  readonly startMs: number;
  readonly parts: readonly BurnInPartInit[];
  readonly heat: TemperatureMonitor;
  /** Each of them alone fails the burn-in; the worst first. */
  readonly problems: readonly string[];
  /** Why it failed, where that is no defect. */
  readonly type?: FailedAttempt['type'];
}

/**
 * The end of the step: complete only without a problem. A cancelled step keeps a result only where
 * it has found something.
 */
export function endOf({ clock, signal }: StepContext, ended: BurnInFindings): StepResult {
  const { kind, startMs, parts, heat, problems } = ended;
  const tooHot = heat.isTooHot ? [`the machine was too hot: ${heat.overText}`] : [];
  const found = [...problems, ...tooHot];
  const passed = found.length === 0;
  if (passed && signal.aborted) {
    return failedResult('cancelled', 'cancelled; no error was found until then');
  }
  const message = found.join('; ');
  const burnIn = {
    kind,
    passed,
    startTime: timestampFromMs(startMs),
    endTime: timestampFromMs(clock.nowMs()),
    parts: [...parts].sort(worstFirst).slice(0, partsMax).map(bounded),
    ...(heat.max === undefined ? {} : { celsiusMax: heat.max }),
    problem: boundText(message, problemBytesMax),
  };
  const observations = create(agent.ObservationsSchema, { burnIn });
  if (passed) return { result: { kind: 'complete', observations } };
  const type = ended.type ?? 'hardwareDefect';
  return { result: { kind: 'failed', type, message, observations } };
}

export function failedResult(type: FailedAttempt['type'], message: string): StepResult {
  return { result: { kind: 'failed', type, message } };
}

function worstFirst(a: BurnInPartInit, b: BurnInPartInit): number {
  return Number(hasFinding(b)) - Number(hasFinding(a));
}

/** The wire has only the text of a finding. */
function hasFinding({ finding = '' }: BurnInPartInit): boolean {
  return finding !== '';
}

function bounded(part: BurnInPartInit): BurnInPartInit {
  return { ...part, finding: boundText(part.finding ?? '', findingBytesMax) };
}

/** Bytes in a second. */
export function perSecond(bytes: number, ms: number): bigint {
  return BigInt(Math.round((bytes * 1_000) / Math.max(1, ms)));
}

/** "1234 MB/s" */
export function speedText(bytes: number, ms: number): string {
  return `${Math.round(bytes / 1_000 / Math.max(1, ms))} MB/s`;
}

/** "no errors, at most 61 °C" */
export function stateText(errors: number, heat: TemperatureMonitor): string {
  return `${counted(errors, 'error')}${heat.text}`;
}
