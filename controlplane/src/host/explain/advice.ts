/** The lines of advice about the present problem of a host. */
import { type FailureName, RunKind, type store } from '@rackwright/messages';
import { activeRun } from '../pass/pass.ts';
import { namesOf } from './advice-names.ts';
import {
  type Advice,
  diskKnownElsewhere,
  failureAdvice,
  letErase,
  seeHistory,
  unreachable,
} from './failure-advice.ts';
import type { Line } from './lines.ts';

/** The problem: a failure, or a BMC that does not respond. */
export type AdviceKey = FailureName | 'unreachable' | 'diskKnownElsewhere';

/** Lines about the present problem; never empty unless all of them would be refused. */
export function adviceFor(key: AdviceKey | undefined, record: store.HostRecord): string[] {
  return linesFor(key, record).map(({ text }) => text);
}

/** The same during a run: without commands that start another run. */
export function adviceDuringRun(key: AdviceKey | undefined, record: store.HostRecord): string[] {
  const lines = linesFor(key, record).filter(({ kind }) => kind !== 'start');
  return lines.map(({ text }) => text);
}

function linesFor(key: AdviceKey | undefined, record: store.HostRecord): readonly Line[] {
  const named = namesOf(record);
  const own = adviceOf(key)(named);
  // A failed clean may have begun under another policy; the present one refuses the next clean.
  const isRefused = named.repeatCommand.isClean && named.isCleanRefused;
  const lines = isRefused && key !== 'notCertified' ? [...letErase(named), ...own] : own;
  const { status } = record.host ?? {};
  const run = status === undefined ? undefined : activeRun(status);
  // A host that is being removed accepts no change; between two attempts it does.
  if (run?.kind !== RunKind.DELETE) return lines;
  return lines.filter(({ kind }) => kind !== 'change');
}

function adviceOf(key: AdviceKey | undefined): Advice {
  if (key === undefined) return seeHistory;
  if (key === 'diskKnownElsewhere') return diskKnownElsewhere;
  return key === 'unreachable' ? unreachable : failureAdvice[key];
}
