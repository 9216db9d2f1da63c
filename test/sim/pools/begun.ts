/** The deployments that have begun to write, as machines say, and those that may have. */
import {
  type HostUid,
  type Run,
  type RunNumber,
  RunOutcome,
  RunPhase,
  StepState,
  type store,
} from '@rackwright/messages';
import { imageStepName } from '../runner-steps.ts';

export class BegunDeployments {
  /** "HOST-UID/RUN DIGEST" as machines have said it. */
  readonly #begun = new Set<string>();
  /** "HOST-UID/RUN" of runs of which nobody can know whether they have begun. */
  readonly #unclear = new Set<string>();

  /** A machine says "HOST-UID/RUN DIGEST". */
  note(what: string): void {
    this.#begun.add(what);
  }

  /** Takes in a written record. The write in which a run ends may begin the next one. */
  changed({ host, finishedRuns }: store.HostRecord, run: Run): void {
    for (const each of [run, ...finishedRuns].filter(mayHaveBegun)) {
      this.#unclear.add(`${host?.uid}/${each.number}`);
    }
  }

  /** The agent of this host has died. Its next start does not know what it has sent a runner. */
  agentDied({ host }: store.HostRecord): void {
    const run = host?.status?.run;
    if (isWriting(run)) this.#unclear.add(`${host?.uid}/${run?.number}`);
  }

  /** Whether a machine has said it. */
  hasBegun(hostUid: HostUid, run: RunNumber, digest: string): boolean {
    return this.#begun.has(`${hostUid}/${run} ${digest}`);
  }

  /** Whether anything of it may stand on the disk. */
  mayHaveBegun(hostUid: HostUid, run: RunNumber, digest: string): boolean {
    return this.hasBegun(hostUid, run, digest) || this.#unclear.has(`${hostUid}/${run}`);
  }
}

/** Whether an attempt to write an image is under way. */
function isWriting(run: Run | undefined): boolean {
  if (run === undefined || run.phase === RunPhase.ENDED) return false;
  return run.steps.some(({ name, attempt, state }) => {
    return name === imageStepName && attempt > 0 && state === StepState.RUNNING;
  });
}

/** Whether an attempt to write has ended of which nobody can say what it has done. */
export function wasInterrupted({ outcome, steps }: Run): boolean {
  const writing = steps.find(({ name }) => name === imageStepName);
  if (writing === undefined || writing.attempt === 0) return false;
  return writing.interruptions > 0 || outcome !== RunOutcome.FAILED;
}

/** Whether a run has ended whose answer about its image may have been lost on the way. */
function mayHaveBegun(run: Run): boolean {
  if (run.phase !== RunPhase.ENDED) return false;
  const isBooted = run.steps.some(({ name, attempt }) => {
    return name === 'power.bootImage' && attempt > 0;
  });
  return isBooted || wasInterrupted(run);
}
