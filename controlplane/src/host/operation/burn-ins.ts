/**
 * Burn-ins as runners report them, stored for people: the last of each kind. A failure is also that
 * of its step; nothing else depends on them.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type agent,
  type BurnIn,
  BurnInKind,
  type BurnInPart,
  type BurnInPartSchema,
  BurnInSchema,
  burnInCpuStep,
  burnInDiskStep,
  burnInMemoryStep,
  burnInNetworkStep,
  type RunStep,
} from '@rackwright/messages';
import type { Pass } from '../pass/pass.ts';
import { truncate } from '../pass/step-failure.ts';
import { timeOf } from './boot-traces.ts';

/** Facts are one bounded record. */
const partsMax = 32;
const nameMax = 128;
const findingMax = 256;
const problemMax = 512;
/** The range of a sensor. */
const celsiusLimit = 1_000;

const kinds: ReadonlyMap<string, BurnInKind> = new Map([
  [burnInCpuStep, BurnInKind.CPU],
  [burnInMemoryStep, BurnInKind.MEMORY],
  [burnInDiskStep, BurnInKind.DISK],
  [burnInNetworkStep, BurnInKind.NETWORK],
]);

/** Records the final report of a burn-in, within bounds. */
export function noteBurnIn(pass: Pass, { name }: RunStep, { result }: agent.Report): void {
  const kind = kinds.get(name);
  if (kind === undefined || (result.case !== 'complete' && result.case !== 'failed')) return;
  const reported = result.value.observations?.burnIn;
  if (reported === undefined) return;
  // A failed step has not passed, whatever else the report says.
  const latest = bounded(reported, kind, result.case === 'complete' && reported.passed);
  const others = pass.snapshot.facts.burnIns.filter((each) => each.kind !== kind);
  const burnIns = [...others, latest].sort((a, b) => a.kind - b.kind);
  pass.effects.push({ kind: 'facts', facts: { burnIns } });
}

function bounded(burnIn: BurnIn, kind: BurnInKind, passed: boolean): BurnIn {
  const { startTime, endTime, parts, celsiusMax, problem } = burnIn;
  const hasHeat = celsiusMax !== undefined && Math.abs(celsiusMax) < celsiusLimit;
  return create(BurnInSchema, {
    ...{ kind, passed, problem: truncate(problem, problemMax) },
    parts: parts.slice(0, partsMax).map(boundedPart),
    ...timeOf('startTime', startTime),
    ...timeOf('endTime', endTime),
    ...(hasHeat ? { celsiusMax } : {}),
  });
}

function boundedPart(part: BurnInPart): MessageInitShape<typeof BurnInPartSchema> {
  const { bytes, passes, errors, correctedErrors, writtenPerSecond, readPerSecond } = part;
  return {
    ...{ bytes, passes, errors, correctedErrors, writtenPerSecond, readPerSecond },
    linkMbps: part.linkMbps,
    ...{ name: truncate(part.name, nameMax), finding: truncate(part.finding, findingMax) },
  };
}
