/**
 * Boots into the runner as the rack's agent saw them, stored for people: the last one, and the last
 * one without a runner. Other machines on the network can forge the data: it decides nothing.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import {
  type BootStep,
  BootStepKind,
  type BootStepSchema,
  type BootTrace,
  BootTraceSchema,
  missingBootStep,
  type OperationId,
} from '@rackwright/messages';
import type { Pass, PassView } from '../pass/pass.ts';
import { truncate } from '../pass/step-failure.ts';
import { operationParts } from './operation.ts';

/** Facts are one bounded record. */
const stepsMax = 24;
const problemMax = 160;
const macMax = 17;
/** Lines of a screen, characters of a line, and characters of all together. */
const screenLinesMax = 40;
const screenColumnsMax = 132;
const screenMax = 2_048;
/** The last second that RFC 3339 can name. */
const secondsMax = 253_402_300_799n;

/** Records a boot of this host, within bounds. */
export function foldBootTrace(pass: Pass, trace: BootTrace): void {
  const parts = operationParts(pass.host.uid, trace.operationId);
  if (parts === undefined || parts.runNumber > pass.record.runCount) return;
  const boots = afterBoot(pass.snapshot.facts.boots, bounded(trace));
  pass.effects.push({ kind: 'facts', facts: { boots } });
}

/** The boot of an operation, as far as its agent has reported it. */
export function bootTraceOf(
  { snapshot }: Pick<PassView, 'snapshot'>,
  bootOperationId: OperationId,
) {
  return snapshot.facts.boots.find(({ operationId }) => operationId === bootOperationId);
}

/** The latest first: it, and the last other boot without a runner. */
function afterBoot(before: readonly BootTrace[], latest: BootTrace): BootTrace[] {
  const others = before.filter(({ operationId }) => operationId !== latest.operationId);
  const failed = others.find(({ missing }) => missing !== BootStepKind.UNSPECIFIED);
  return failed === undefined ? [latest] : [latest, failed];
}

function bounded(trace: BootTrace): BootTrace {
  const { operationId, mac, startTime, steps, givesAddresses, lastScreen } = trace;
  const kept = steps.filter(isKnown).slice(0, stepsMax);
  return create(BootTraceSchema, {
    ...{ operationId, mac: mac.slice(0, macMax), givesAddresses },
    ...timeOf('startTime', startTime),
    steps: kept.map(boundedStep),
    missing: missingBootStep({ steps: kept, givesAddresses }),
    lastScreen: screenOf(lastScreen),
  });
}

/**
 * The last lines that fit. A machine wrote them: characters that control a terminal are removed.
 */
function screenOf(lines: readonly string[]): string[] {
  let left = screenMax;
  const kept: string[] = [];
  for (const line of lines.slice(-screenLinesMax).toReversed()) {
    const text = plainText(line.slice(0, screenColumnsMax));
    left -= text.length + 1;
    if (left < 0) break;
    kept.unshift(text);
  }
  return kept;
}

/** Without control, format, private and unpaired code points, and separators of lines. */
function plainText(line: string): string {
  return line.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '');
}

const kinds: ReadonlySet<BootStepKind> = new Set(Object.values(BootStepKind));

/** Whether this version knows the step. */
function isKnown({ kind }: BootStep): boolean {
  return kinds.has(kind) && kind !== BootStepKind.UNSPECIFIED;
}

function boundedStep(step: BootStep): MessageInitShape<typeof BootStepSchema> {
  const { kind, asker, count, bytes, transport, problem, firstTime, lastTime, endTime } = step;
  return {
    ...{ kind, asker, count, bytes, transport, problem: truncate(problem, problemMax) },
    ...timeOf('firstTime', firstTime),
    ...timeOf('lastTime', lastTime),
    ...timeOf('endTime', endTime),
  };
}

/** A time that RFC 3339 cannot express is left out. */
export function timeOf<N extends string>(name: N, time: Timestamp | undefined) {
  const isTime =
    time !== undefined &&
    time.seconds >= 0n &&
    time.seconds <= secondsMax &&
    time.nanos >= 0 &&
    time.nanos < 1_000_000_000;
  return (isTime ? { [name]: time } : {}) as { readonly [name in N]?: Timestamp };
}
