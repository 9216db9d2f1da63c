/**
 * The judge's rule P10, of hosts whose reimage has failed before anything was written: by the
 * machine's own log, unless nobody can know what an attempt has done.
 */
import {
  FaultSeverity,
  faultOfType,
  type HostStatus,
  type Run,
  RunKind,
  RunOutcome,
  RunPhase,
  type store,
} from '@rackwright/messages';
import { type BegunDeployments, wasInterrupted } from './begun.ts';

interface Parts {
  readonly begun: BegunDeployments;
  readonly found: (rule: string, text: string) => void;
  readonly count: (what: string) => void;
}

/** What a host was before its reimage. */
interface Before {
  readonly image: string;
  readonly isIll: boolean;
}

export class UntouchedRule {
  readonly #parts: Parts;
  /** By host's uid, as its last reimage began. */
  readonly #reimaged = new Map<string, Before>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** An older state of the store stands there now. */
  reload(): void {
    this.#reimaged.clear();
  }

  /** A host's record was written. */
  changed(before: store.HostRecord, record: store.HostRecord): void {
    const { uid = '', status } = record.host ?? {};
    const had = before.host?.status;
    const now = status?.run;
    if (now?.kind === RunKind.REIMAGE && now.number !== had?.run?.number) {
      this.#reimaged.set(uid, { image: had?.image ?? '', isIll: isHeldForIll(had) });
    }
    const run = failedReimage(had?.run, record);
    if (run === undefined) return;
    const was = this.#reimaged.get(uid);
    if (was === undefined || wasInterrupted(run)) return;
    if (this.#parts.begun.mayHaveBegun(uid, run.number, digestOf(before.image))) return;
    this.#judge(was, record, run);
  }

  #judge({ image, isIll }: Before, record: store.HostRecord, run: Run): void {
    const { found, count } = this.#parts;
    count('reimage failed, disk untouched');
    const { name, status } = record.host ?? {};
    const said = `${name}: run ${run.number} has written nothing`;
    if (status?.image !== image) {
      found('P10', `${said}, and its image was "${image}", not "${status?.image}"`);
    }
    if (!isIll && isHeldForIll(status)) found('P10', `${said}, and the host is held for ill`);
    const wasOff = run.steps.some((step) => step.name === 'power.off' && step.attempt > 0);
    const next = status?.run?.steps.map((step) => step.name) ?? [];
    const steps = [...next, ...(record.pendingPower?.steps ?? [])];
    if (wasOff && steps.at(-1) !== 'power.on') {
      found('P10', `${said}, and it is not switched on again: ${steps.join(', ')}`);
    }
  }
}

/** Whether a failed reimage counts as an illness of the host. */
function isHeldForIll(status: HostStatus | undefined): boolean {
  const { faults = [] } = status ?? {};
  const fault = faultOfType(faults, 'reimageFailed');
  return fault !== undefined && fault.severity !== FaultSeverity.WARNING;
}

/** Of a reference by digest; empty: it has none. */
export function digestOf(image: string): string {
  return image.split('@')[1] ?? '';
}

/** The end of the image's run that was under way, if it failed. */
function failedReimage(old: Run | undefined, record: store.HostRecord): Run | undefined {
  if (old?.kind !== RunKind.REIMAGE || old.phase === RunPhase.ENDED) return undefined;
  const runs = [record.host?.status?.run, ...record.finishedRuns];
  const run = runs.find((each) => each?.number === old.number);
  return run?.phase === RunPhase.ENDED && run.outcome !== RunOutcome.SUCCEEDED ? run : undefined;
}
