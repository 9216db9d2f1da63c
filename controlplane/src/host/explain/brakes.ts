/** Explains which brakes a host or a rack waits for, and what releases it. Pure. */
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  HostState,
  hostWaitOf,
  isPoolClaim,
  type RackName,
  type Run,
  type store,
} from '@rackwright/messages';
import { idOf } from '../../records/index.ts';
import { reviewReason } from '../life/goal.ts';
import { hasNoAgent, isRestoredHold } from '../life/restored.ts';
import { freezeText } from '../pass/brake.ts';
import type { HostSnapshot } from '../pass/types.ts';
import { hostId } from './explanation-draft.ts';

interface BrakeText {
  readonly causes?: readonly { readonly text: string; readonly since?: Timestamp | undefined }[];
  readonly blocker: string;
  readonly braked: { readonly nextAttemptTime?: Timestamp };
  readonly unblock: readonly string[];
}

/** A run that waits for the end of a freeze. */
export function explainFreeze({ freeze }: HostSnapshot): BrakeText {
  const again = 'the work then goes on by itself';
  if (freeze === undefined) {
    return { blocker: 'a freeze', unblock: [`nothing: ${again}`], braked: {} };
  }
  const thaw = freeze.of.startsWith('racks/')
    ? `rackwright rack thaw ${idOf(freeze.of)} --reason WHY`
    : 'rackwright fleet thaw --reason WHY';
  return {
    blocker: 'the freeze',
    causes: [{ text: freezeText(freeze), since: freeze.at }],
    unblock: [`ask ${freeze.by}, then: ${thaw}`, again],
    braked: {},
  };
}

/** A run that waits for a slot of a limit. */
export function explainQueue(
  record: store.HostRecord,
  run: Run,
  { quotaViews }: HostSnapshot,
  blocker: string,
): BrakeText {
  const rack = idOf(rackOf(record));
  const queued = quotaViews.flatMap(({ name, own, nextSlotMs, quota }) =>
    own
      .filter((slot) => slot.kind === 'queued' && slot.run === run.number)
      .map(({ position = 1 }) => ({ name, position, nextSlotMs, hosts: quota?.hosts })),
  )[0];
  const nextMs = queued?.position === 1 ? queued.nextSlotMs : undefined;
  const since = run.waiting?.since;
  const text = run.waiting?.message ?? '';
  const queueText = queued === undefined ? '' : ` (place ${queued.position} in the queue)`;
  const raise =
    hostWaitOf(run.waiting) === 'capacity'
      ? `rackwright rack update ${rack} --runs N`
      : queued?.name === 'fleetWipes'
        ? 'rackwright fleet update --wipe-budget N/SECONDS'
        : `rackwright rack update ${rack} --wipe-budget N/SECONDS`;
  return {
    blocker,
    causes: [{ text: `${text}${queueText}`, since }],
    braked: nextMs === undefined ? {} : { nextAttemptTime: timestampFromMs(nextMs) },
    // A limit of 0 never gives a slot.
    unblock:
      queued?.hosts === 0
        ? [`allow some: ${raise}`]
        : ['nothing: it goes on by itself when it has a slot', `or allow more: ${raise}`],
  };
}

/** Who ends the hold of a restored store next. */
type HoldEnd = 'person' | 'agent' | 'newAgent' | 'nextPass';

const headlineUntil: Readonly<Record<HoldEnd, string>> = {
  person: 'held: the store was restored; nothing new starts until a person accepts that',
  agent: 'held: the loss is accepted; nothing new starts until the agent has heard of it',
  newAgent: 'held: the loss is accepted; nothing new starts until an agent has joined the rack',
  nextPass: 'held: the loss is accepted, and the rack has no agent; the hold ends by itself',
};

/** The rack has a text of `restored` until an agent has heard of the acceptance. */
function holdEndOf(snapshot: HostSnapshot): HoldEnd {
  const isUnheard = snapshot.restored !== undefined;
  if (isUnheard && !snapshot.restoredAccepted) return 'person';
  if (!hasNoAgent(snapshot)) return 'agent';
  return isUnheard ? 'newAgent' : 'nextPass';
}

/** A host that is held because its store has lost data. */
export function explainRestored(record: store.HostRecord, snapshot: HostSnapshot) {
  const hold = record.host?.status?.holds.find(isRestoredHold);
  if (hold === undefined) return undefined;
  const rack = rackOf(record);
  const blockers: Readonly<Record<HoldEnd, string>> = {
    person: 'the restored store',
    agent: `the agent of ${rack}`,
    newAgent: `an agent of ${rack}`,
    nextPass: 'nothing',
  };
  const end = holdEndOf(snapshot);
  return {
    headline: headlineUntil[end],
    causes: [{ text: snapshot.restored ?? hold.reason, since: hold.since }],
    blocker: blockers[end],
    since: hold.since,
    unblock: adviceToEnd(end, rack, snapshot),
  };
}

function adviceToEnd(end: HoldEnd, rack: RackName, snapshot: HostSnapshot): string[] {
  switch (end) {
    case 'person':
    case 'agent':
      return adviceToAccept(rack, snapshot);
    case 'newAgent':
      return [`join an agent: rackwright rack join-token ${idOf(rack)}`];
    case 'nextPass':
      return ['nothing: the hold ends by itself'];
  }
}

/** Why a person has to look at a host of a restored store first. */
export function unknownUse({ lookFirstSince: since }: store.HostRecord) {
  const text = 'what it was used for in the lost history is not known here';
  return { causes: [{ text, since }], blocker: 'a person', since };
}

export function adviceToReview(record: store.HostRecord): string[] {
  return [
    'find out whether somebody has been given this host since the backup',
    `if nobody has: rackwright host retry ${hostId(record)}`,
  ];
}

/** After the acceptance: a host that is left unchanged, because it may have been taken into use. */
export function explainReviewFirst(record: store.HostRecord) {
  const { host, lookFirstSince } = record;
  const { state, claim, backoff, inRescue = false } = host?.status ?? {};
  const isOfPool = claim !== undefined && isPoolClaim(claim);
  const isUsed = inRescue || (claim !== undefined && !isOfPool);
  if (lookFirstSince === undefined || isUsed) return undefined;
  const isLeft = isOfPool || state === HostState.PROVISIONED;
  const isStopped = backoff?.lookFirst === true;
  if (!isStopped && (backoff !== undefined || !isLeft)) return undefined;
  const id = hostId(record);
  return {
    headline: `not booted nor erased by itself: ${reviewReason}`,
    ...unknownUse(record),
    unblock: [
      ...adviceToReview(record),
      isOfPool
        ? `or keep it from ${claim.by}: take it out of what that selects, and it gives it up`
        : `or keep it: rackwright host claim ${id} --reason WHY`,
    ],
  };
}

/** Work in progress goes on; the next work waits until a person accepts the store. */
export function explainRunOfRestored(record: store.HostRecord, snapshot: HostSnapshot) {
  const draft = explainRestored(record, snapshot);
  if (draft === undefined) return undefined;
  const { causes, blocker, unblock } = draft;
  return { causes, blocker, unblock };
}

/** What a person does to accept a restored store. */
export function adviceToAccept(
  rack: RackName,
  { restored, restoredAccepted, session }: HostSnapshot,
): string[] {
  if (restored === undefined || restoredAccepted) {
    const start = `start the agent of ${rack} again: rackwright-agent run --config FILE`;
    return session === undefined ? [start] : ['nothing: the agent hears of it by itself'];
  }
  return [
    `see what its agent has done since: rackwright rack get ${idOf(rack)}`,
    'hold each host that may be in use: rackwright host hold HOST --scope work --reason WHY',
    `then: rackwright rack accept-restored-store ${idOf(rack)} --reason WHY`,
  ];
}

/** The brakes in the rack's own record. */
export function rackBrakes({ rack, acceptedStore }: store.RackRecord): {
  readonly causes: { readonly text: string; readonly since?: Timestamp }[];
  readonly unblock: string[];
} {
  const name = rack?.name ?? '';
  const { freeze, restoredStore } = rack?.status ?? {};
  const causes: { text: string; since?: Timestamp }[] = [];
  const unblock: string[] = [];
  if (freeze !== undefined) {
    const since = freeze.at === undefined ? {} : { since: freeze.at };
    causes.push({ text: freezeText({ ...freeze, of: name }), ...since });
    unblock.push(`rackwright rack thaw ${idOf(name)} --reason WHY`);
  }
  if (restoredStore !== undefined) {
    const since = restoredStore.since === undefined ? {} : { since: restoredStore.since };
    const text =
      `its agent has seen revision ${restoredStore.seenRevision} of store ` +
      `${restoredStore.seenIncarnation}, the store was at ${restoredStore.revision} of ` +
      `${restoredStore.incarnation}: nothing is ordered of it`;
    causes.push({ text, ...since });
    unblock.push(`rackwright rack accept-restored-store ${idOf(name)} --reason WHY`);
  } else if (acceptedStore !== undefined) {
    causes.push({ text: 'its agent has not heard yet that the restored store was accepted' });
  }
  return { causes, unblock };
}

function rackOf(record: store.HostRecord): RackName {
  return record.host?.spec?.rack ?? '';
}
