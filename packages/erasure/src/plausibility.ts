/**
 * Whether an agent's evidence of one device can be true: counts that follow from size, seed and
 * order, and times that a device of its kind can keep. Pure. Implausible evidence is not certified;
 * plausible evidence is not thereby proved.
 */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type * as agent from '@rackwright/messages/agent';
import { challengeCount, planChallenge, regionLabel, regionSeed } from './challenge.ts';
import { type DeviceFacts, deviceIdentity, type MediaType } from './facts.ts';
import { metadataSpans } from './metadata.ts';
import type { ErasureMethod } from './method.ts';
import { regionVerification } from './verification.ts';
import { orderedVerification, verificationOf } from './verification-wire.ts';
import { deviceFactsOf, methodOf, verdictOf } from './wire.ts';

/**
 * Bytes per second that no device of a kind reads or writes, generously. A hard disk moves below
 * 0.6 GB/s, with two actuators as well; a card below 1 GB/s; four lanes of PCIe 6.0 carry 30 GB/s,
 * sixteen carry 121; memory and virtual disks are bounded by a host's memory.
 */
export const speedMax: Readonly<Record<MediaType | 'unknown', number>> = {
  hdd: 2e9,
  ssd: 20e9,
  flashCard: 4e9,
  persistentMemory: 400e9,
  optical: 1e9,
  virtual: 400e9,
  unknown: 400e9,
};

/** The tolerance for clocks and rounding, in milliseconds. */
const slackMs = 1000;

/** The tolerance for clocks of two replicas, and for one that runs faster than another. */
const orderSlackMs = 60_000;
const clockRate = 0.01;

export type PlausibilityProblem =
  | {
      readonly kind: 'count';
      readonly count: CountName;
      readonly found: number;
      readonly wanted: number;
    }
  | { readonly kind: 'verification'; readonly found: string; readonly wanted: string }
  | {
      readonly kind: 'speed';
      readonly direction: 'read' | 'write';
      readonly found: number;
      readonly most: number;
    }
  | { readonly kind: 'order'; readonly order: OrderProblem }
  | { readonly kind: 'notPlanned'; readonly reason: string };
export type OrderProblem = 'endBeforeStart' | 'longerThanItself' | 'longerThanItsOrder';
export type CountName =
  | 'placesRead'
  | 'bytesRead'
  | 'bytesExamined'
  | 'challengeBlocks'
  | 'bytesWritten';

/** The control plane's order for the device. */
export type OrderedDevice = Pick<agent.DevicePlan, 'verification' | 'rereadDelay'> &
  Partial<Pick<agent.DevicePlan, 'erasedSeed'>>;

/**
 * All that cannot be true of an outcome that claims an erasure; empty for any other verdict. An
 * agent's times are only its claim; `orderAgeMs` is of our clock: nothing took longer.
 */
export function plausibilityProblems(
  outcome: agent.DeviceOutcome,
  ordered: OrderedDevice,
  orderAgeMs: number = Number.POSITIVE_INFINITY,
): PlausibilityProblem[] {
  const verdict = verdictOf(outcome);
  if (verdict.kind !== 'erased') return [];
  const method = methodOf(outcome.method);
  if (outcome.device === undefined || method === undefined) {
    return [{ kind: 'notPlanned', reason: 'it names no device or no method' }];
  }
  const facts = deviceFactsOf(outcome.device);
  return [
    ...countProblems(outcome, facts, method, ordered),
    ...timeProblems(outcome, facts, method, orderAgeMs),
  ];
}

const orderTexts: Readonly<Record<OrderProblem, string>> = {
  endBeforeStart: 'it ended before it started',
  longerThanItself: 'its parts took longer than the whole',
  longerThanItsOrder: 'it took longer than its order is old',
};

/** One sentence per problem. */
export function describeImplausible(problem: PlausibilityProblem): string {
  switch (problem.kind) {
    case 'count':
      return `${problem.count} is ${problem.found}; size, seed and order make it ${problem.wanted}`;
    case 'verification':
      return `it was read back ${problem.found}, and ${problem.wanted} was ordered`;
    case 'speed': {
      const verb = problem.direction === 'read' ? 'reads' : 'writes';
      return `no such device ${verb} ${problem.found} bytes per second, at most ${problem.most}`;
    }
    case 'order':
      return orderTexts[problem.order];
    case 'notPlanned':
      return `it cannot be checked: ${problem.reason}`;
  }
}

/** The counts of a reading by this plan. */
interface ImpliedCounts {
  readonly placesRead: number;
  readonly bytesRead: number;
  readonly bytesExamined: number;
  readonly challengeBlocks: number;
}

/**
 * The counts of an erasure that size, seed and verification imply; throws `RangeError` for unfit
 * sizes.
 */
export function impliedCounts(
  facts: DeviceFacts,
  method: ErasureMethod,
  operationSeed: Uint8Array,
  verification: ReturnType<typeof orderedVerification>,
): ImpliedCounts {
  const counts = { placesRead: 0, bytesRead: 0, bytesExamined: 0, challengeBlocks: 0 };
  for (const region of facts.regions) {
    const label = regionLabel(facts, region.name);
    const seed = regionSeed(operationSeed, deviceIdentity(facts), label);
    const spans =
      method === 'metadataOnly'
        ? metadataSpans(region, facts.partitions)
        : [{ offset: 0, length: region.sizeBytes }];
    const share = regionVerification(verification, region.sizeBytes, facts.sizeBytes);
    const bytes = spans.reduce((sum, { length }) => sum + length, 0);
    counts.bytesExamined += bytes;
    if (share.level === 'full') {
      counts.challengeBlocks += challengeCount(seed, spans);
      counts.placesRead += spans.reduce((sum, { length }) => sum + Math.ceil(length / 4096), 0);
      counts.bytesRead += bytes;
      continue;
    }
    const { challenges, reading } = planChallenge(seed, spans, share);
    const places = reading.level === 'sampled' ? reading.offsets.length : 0;
    counts.challengeBlocks += challenges.length;
    counts.placesRead += places;
    counts.bytesRead += places * 4096;
  }
  return counts;
}

/**
 * The counts of a whole step. An erasure or check that reads again after a delay, and a reading in
 * a later boot, read other places as well, drawn from a seed of their own; where all is read there
 * are none.
 */
export function impliedReading(
  facts: DeviceFacts,
  method: ErasureMethod,
  operationSeed: Uint8Array,
  ordered: OrderedDevice,
): ImpliedCounts {
  const verification = orderedVerification(ordered);
  const { erasedSeed = operationSeed } = ordered;
  const inLaterBoot = isReading(ordered);
  const firstSeed = inLaterBoot ? erasedSeed : operationSeed;
  const first = impliedCounts(facts, method, firstSeed, verification);
  const delay = ordered.rereadDelay;
  const isDelayed = delay !== undefined && (delay.seconds > 0n || delay.nanos > 0);
  if (!(inLaterBoot || isDelayed) || verification.level === 'full') return first;
  const seed = inLaterBoot
    ? operationSeed
    : regionSeed(operationSeed, deviceIdentity(facts), 'again');
  const again = impliedCounts(facts, method, seed, verification);
  const placesRead = first.placesRead + again.placesRead;
  return { ...first, placesRead, bytesRead: first.bytesRead + again.bytesRead };
}

/** Whether the order is to read in a later boot, and to write nothing. */
function isReading({ erasedSeed }: OrderedDevice): boolean {
  return erasedSeed !== undefined && erasedSeed.length > 0;
}

function countProblems(
  outcome: agent.DeviceOutcome,
  facts: DeviceFacts,
  method: ErasureMethod,
  ordered: OrderedDevice,
): PlausibilityProblem[] {
  const wanted = orderedVerification(ordered);
  const done = verificationOf(outcome.verification);
  if (JSON.stringify(done) !== JSON.stringify(wanted)) {
    return [{ kind: 'verification', found: JSON.stringify(done), wanted: JSON.stringify(wanted) }];
  }
  let implied: ImpliedCounts;
  try {
    implied = impliedReading(facts, method, outcome.challengeSeed, ordered);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return [{ kind: 'notPlanned', reason: error.message }];
  }
  const found: ImpliedCounts = {
    placesRead: Number(outcome.placesRead),
    bytesRead: Number(outcome.bytesRead),
    bytesExamined: Number(outcome.bytesExamined),
    challengeBlocks: Number(outcome.challengeBlocksWritten),
  };
  const names: readonly (keyof ImpliedCounts)[] = [
    'placesRead',
    'bytesRead',
    'bytesExamined',
    'challengeBlocks',
  ];
  const problems = names
    .filter((name) => found[name] !== implied[name])
    .map((name): PlausibilityProblem => {
      return { kind: 'count', count: name, found: found[name], wanted: implied[name] };
    });
  const bytesWritten = Number(outcome.bytesWritten);
  const wantsWrites = method === 'overwrite' || method === 'metadataOnly';
  const isCheck = bytesWritten === 0;
  if (isReading(ordered) && !isCheck) {
    problems.push({ kind: 'count', count: 'bytesWritten', found: bytesWritten, wanted: 0 });
  } else if (wantsWrites && !isCheck && bytesWritten < implied.bytesExamined) {
    const counts = { found: bytesWritten, wanted: implied.bytesExamined };
    problems.push({ kind: 'count', count: 'bytesWritten', ...counts });
  }
  return problems;
}

function timeProblems(
  outcome: agent.DeviceOutcome,
  facts: DeviceFacts,
  method: ErasureMethod,
  orderAgeMs: number,
): PlausibilityProblem[] {
  const { startTime, endTime } = outcome;
  if (startTime === undefined || endTime === undefined) {
    return [{ kind: 'notPlanned', reason: 'it names no start or no end' }];
  }
  const wholeMs = timestampMs(endTime) - timestampMs(startTime);
  if (wholeMs < 0) return [{ kind: 'order', order: 'endBeforeStart' }];
  const [methodMs, verifyMs] = [Number(outcome.methodMs), Number(outcome.verifyMs)];
  const problems: PlausibilityProblem[] = [];
  if (methodMs + verifyMs > wholeMs + slackMs) {
    problems.push({ kind: 'order', order: 'longerThanItself' });
  }
  const oldestMs = orderAgeMs * (1 + clockRate) + orderSlackMs;
  if (methodMs + verifyMs > oldestMs) {
    problems.push({ kind: 'order', order: 'longerThanItsOrder' });
  }
  const most = speedMax[facts.mediaType ?? (facts.rotational ? 'hdd' : 'unknown')];
  const check = (direction: 'read' | 'write', bytes: number, milliseconds: number) => {
    const found = Math.round((bytes * 1000) / (Math.min(milliseconds, oldestMs) + slackMs));
    if (found > most) problems.push({ kind: 'speed', direction, found, most });
  };
  // A runner that does not report the duration of its parts has had the whole time for each.
  const allRead = Math.max(Number(outcome.bytesRead), Number(outcome.bytesOfReadings));
  check('read', allRead, verifyMs === 0 ? wholeMs : verifyMs);
  if (method === 'overwrite' || method === 'metadataOnly') {
    check('write', Number(outcome.bytesWritten), methodMs === 0 ? wholeMs : methodMs);
  }
  return problems;
}
