/**
 * Reads back a held device: right after its erasure, again after a delay, and again in a later
 * boot. Writes nothing.
 *
 * Invariant: a reading counts only for a device that is confirmed after the last read. Proof that
 * something is left counts also when the device was lost.
 */
import { combineVerdicts, regionSeed, type Verdict } from '@rackwright/erasure';
import { borrowTransfers, type ReadMemory } from './transfers.ts';
import { planDevice, type RegionChallenge, readVerdict } from './verify.ts';
import {
  countError,
  noteFailure,
  progressReporter,
  timed,
  transferGateOf,
  type Work,
} from './work.ts';

/** Reads all planned places and judges them. */
export async function readBack(work: Work): Promise<Verdict> {
  return await readConfirmed(work, [work.challenges], 'reading back');
}

/**
 * Reads the same places again, and new ones where not all was read. `when` is the text about the
 * time in the findings.
 */
export async function readAgain(work: Work, when: string): Promise<Verdict> {
  const { target, method, context } = work;
  const seed = regionSeed(context.order.challengeSeed, target.identity, 'again');
  const plans = [work.challenges, newBlocks(planDevice(target, method, seed))];
  const verdict = await readConfirmed(work, plans, 'reading again');
  return verdict.kind === 'notErased'
    ? { ...verdict, reason: `${when}: ${verdict.reason}` }
    : verdict;
}

/** A device that is read whole has no other places. They hold no marks. */
export function newBlocks(challenges: readonly RegionChallenge[]): readonly RegionChallenge[] {
  if (!challenges.every(({ plan }) => plan.reading.level === 'sampled')) return [];
  return challenges.map((challenge) => ({ ...challenge, marks: [] }));
}

/** Reads the places that several plans name, of the same device. Adds to the readings in `work`. */
export async function readConfirmed(
  work: Work,
  plans: readonly (readonly RegionChallenge[])[],
  action: string,
): Promise<Verdict> {
  const memory = borrowTransfers();
  let verdict: Verdict | undefined;
  const read = async (): Promise<void> => {
    work.readings += 1;
    verdict = await readPlans(work, plans, action, memory.transfers);
  };
  try {
    await work.held.confirm();
    await timed(work, read, (ms) => {
      work.verifyMs += ms;
    });
    await work.held.confirm();
  } catch (error) {
    const reason = noteFailure(work, error);
    if (verdict?.kind !== 'notErased') verdict = { kind: 'unverified', reason };
  } finally {
    memory.giveBack();
  }
  return verdict ?? { kind: 'unverified', reason: 'nothing was read' };
}

async function readPlans(
  work: Work,
  plans: readonly (readonly RegionChallenge[])[],
  action: string,
  memory: ReadMemory,
): Promise<Verdict> {
  const { held, target, method } = work;
  const verdicts: Verdict[] = [];
  const report = progressReporter(work, action);
  for (const challenges of plans) {
    if (challenges.length === 0) continue;
    const verdict = await readVerdict(held, target.device, challenges, {
      ...{ method, challengeProved: work.challenged, memory },
      transferGate: transferGateOf(work),
      // Includes the bytes of an incomplete reading: they show how fast the device is.
      onBytesRead: (bytes) => {
        work.bytesOfReadings += bytes;
        report(bytes);
      },
      onDeviceError: (error) => {
        countError(work, 'read');
        work.loss ??= error.loss;
      },
    });
    verdicts.push(verdict);
    if (verdict.kind !== 'erased') break;
  }
  return ofOneDevice(verdicts);
}

/** Several readings of one device: the worst one, or all places of the same bytes. */
function ofOneDevice(verdicts: readonly Verdict[]): Verdict {
  const all = combineVerdicts(verdicts);
  const [first] = verdicts;
  if (all.kind !== 'erased' || first?.kind !== 'erased') return all;
  return { ...all, level: first.level, bytesExamined: first.bytesExamined };
}
