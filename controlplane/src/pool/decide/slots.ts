/**
 * Updates the slots of a pool. Pure; changes a draft.
 *
 * Invariants:
 * 1. A slot is released only because of the host's own record, or while nothing has been requested
 *    of the host yet. So a crash at any point leaves the same slots.
 * 2. A host that was written keeps its slot until it has been healthy for the required time, or has
 *    taken too long.
 * 3. A deployment is recorded once the host is healthy on the image, before its slot is released.
 *    The first record gives the time; a repeated one changes nothing. A late deployment is recorded
 *    as long as its host has not been written again.
 * 4. A slot for an obsolete image ends with its run: the new image does not wait for it.
 */
import { create } from '@bufbuild/protobuf';
import { durationFromMs, durationMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  FailureType,
  HostState,
  type RolloutSlot,
  RolloutSlotSchema,
  RolloutSlotState,
  type Run,
  RunKind,
  RunOutcome,
  RunPhase,
  type store as wire,
  writeImageStep,
} from '@rackwright/messages';
import { engineSteps } from '../../host/index.ts';
import { msOf } from '../../records/index.ts';
import type { PoolDraft, SlotNews } from '../facts/draft-types.ts';
import type { PoolWait, Survey } from '../facts/pool-status.ts';
import {
  isHandledByPerson,
  isHealthyOn,
  isServing,
  runUnderWay,
  type SeenHost,
} from '../facts/seen.ts';
import { isPinned, targetOf, wantedBy } from '../facts/target.ts';
import { ledgerEntryOf } from '../facts/written-run.ts';
import { digestInImage } from '../policy/image-name.ts';
import { fail, forgive } from './failures.ts';
import {
  type GateFacts,
  type GateJudgement,
  type GateWant,
  judgeGate,
  keepGateCall,
  needsGate,
} from './gate.ts';
import type { GateCapacity } from './gate-capacity.ts';
import { inShort, truncate } from './slot-text.ts';
import { stopOf } from './stops.ts';

const healthTimeoutDefaultMs = 15 * 60_000;
const gateDeadlineDefaultMs = 24 * 3_600_000;

const { GATE, STARTING, RUNNING, PROVING } = RolloutSlotState;

/** Folds in the news of each slot that has a run or is about to have one. */
export function foldSlots(draft: PoolDraft, news: ReadonlyMap<bigint, SlotNews>): void {
  const { status } = draft;
  status.slots = status.slots.filter((slot) => {
    const host = draft.hosts.get(slot.hostUid);
    // Its record was deleted, and its run with it.
    if (host === undefined) return false;
    if (slot.state === GATE) return true;
    const slotNews = news.get(slot.number);
    const isKept =
      slot.state === PROVING || slotNews === undefined || foldNews(draft, slot, host, slotNews);
    return isKept && (slot.state !== PROVING || prove(draft, slot, host));
  });
}

/** False: the slot is released. */
function foldNews(draft: PoolDraft, slot: RolloutSlot, host: SeenHost, news: SlotNews): boolean {
  if (news.kind === 'recalled') return false;
  if (news.kind !== 'run') {
    fail(draft, slot, { message: news.message, counted: news.kind === 'lost' });
    return false;
  }
  const { run } = news;
  slot.state = RUNNING;
  slot.run = run.number;
  slot.message = truncate(inShort(run.waiting?.message ?? '', slot));
  // It was called off before it began anything: the agent that has to confirm this may be away for
  // long.
  const isOff = run.abort?.by === draft.record.pool?.name;
  if (run.phase !== RunPhase.ENDED) return !(isOff && host.isStillIn && host.brake !== undefined);
  if (run.outcome === RunOutcome.SUCCEEDED) {
    slot.state = PROVING;
    slot.message = '';
    slot.runEndTime = run.endTime ?? timestampFromMs(draft.nowMs);
    return true;
  }
  const message = run.error?.message ?? endText(run);
  // Until its power is restored the host counts as out of service, so it keeps its slot.
  if (host.isComingBack) {
    slot.message = truncate(inShort(`its power is given back: ${message}`, slot));
    return true;
  }
  // It goes again when it may: nothing has failed.
  if (!hasLeft(run) && isCalledOff(run, draft.record.pool?.name ?? '')) return false;
  fail(draft, slot, { message, counted: hasLeft(run) });
  return false;
}

/** Whether a run has ended because the pool called it off, or its window had closed. */
function isCalledOff({ outcome, abort, error }: Run, pool: string): boolean {
  if (outcome !== RunOutcome.CANCELLED) return false;
  return abort === undefined ? error?.type === FailureType.TOO_LATE : abort.by === pool;
}

function endText({ outcome }: Run): string {
  if (outcome === RunOutcome.TIMED_OUT) return 'its run timed out';
  return outcome === RunOutcome.CANCELLED ? 'its run was cancelled' : 'its run failed';
}

/** Whether the host had left its image: it was being written, or was to boot another. */
function hasLeft({ steps }: Run): boolean {
  return steps.some(({ name, attempt, disksUntouched }) => {
    if (attempt === 0) return false;
    return name === engineSteps.bootImage || (name === writeImageStep && !disksUntouched);
  });
}

/** Whether a healthy host has to stay healthy for longer. */
function soaks(draft: PoolDraft, slot: RolloutSlot, host: SeenHost): boolean {
  const { nowMs, record } = draft;
  const since = msOf(slot.healthySince);
  // A clock that was set back does not shorten the remaining time.
  const sinceMs = since === undefined || since > nowMs ? nowMs : since;
  slot.healthySince = timestampFromMs(sinceMs);
  slot.message = 'healthy; it has to stay so for a while';
  if (nowMs < (soakEndMs(record, slot) ?? nowMs)) return true;
  forgive(draft, host.uid);
  return false;
}

/** Invariants 2, 3 and 4; false: the slot is released. */
function prove(draft: PoolDraft, slot: RolloutSlot, host: SeenHost): boolean {
  const { record, nowMs } = draft;
  const digest = digestInImage(slot.image);
  const wanted = wantedBy(record, slot.host);
  const isOver = wanted !== undefined && wanted.digest !== digest;
  if (isHealthyOn(host, digest)) {
    const deployedMs = msOf(slot.deployedTime) ?? nowMs;
    slot.deployedTime = timestampFromMs(deployedMs);
    draft.deployments.push(ledgerEntryOf(record, slot, deployedMs));
    return record.deletion === undefined && !isOver && soaks(draft, slot, host);
  }
  endHealth(slot, nowMs);
  const ill = host.illness?.text ?? `its disk holds ${host.image || 'nothing that is known'}`;
  slot.message = truncate(inShort(ill, slot));
  if (record.deletion !== undefined) return false;
  if (!isOver && nowMs < healthDeadlineMs(record, slot)) return true;
  const how = slot.deployedTime === undefined ? 'not healthy in time' : 'too long ill since';
  fail(draft, slot, {
    message: `written, and ${how}: ${slot.message}`,
    counted: !isOver && !isHandledByPerson(host),
  });
  return false;
}

/** It is no longer healthy; its healthy time does not count against the deadline. */
function endHealth(slot: RolloutSlot, nowMs: number): void {
  const since = msOf(slot.healthySince);
  delete slot.healthySince;
  if (since === undefined) return;
  const beforeMs = slot.healthyFor === undefined ? 0 : durationMs(slot.healthyFor);
  slot.healthyFor = durationFromMs(beforeMs + Math.max(0, nowMs - since));
}

/**
 * When a written host has taken too long. Before it was healthy, this is a fixed deadline. After
 * that, the sum of its unhealthy times counts. So one bad pass ends no soak, and none goes on
 * forever.
 */
export function healthDeadlineMs({ pool }: wire.PoolRecord, slot: RolloutSlot): number {
  const timeout = pool?.spec?.rollout?.healthTimeout;
  const timeoutMs = timeout === undefined ? healthTimeoutDefaultMs : durationMs(timeout);
  const healthyMs = slot.healthyFor === undefined ? 0 : durationMs(slot.healthyFor);
  return (msOf(slot.deployedTime ?? slot.runEndTime) ?? 0) + timeoutMs + healthyMs;
}

/** When a slot may be released by time alone. */
export function soakEndMs({ pool }: wire.PoolRecord, slot: RolloutSlot): number | undefined {
  const soak = pool?.spec?.rollout?.soak;
  const since = msOf(slot.healthySince);
  return since === undefined || soak === undefined ? since : since + durationMs(soak);
}

export interface Passing {
  readonly surveyed: Pick<Survey, 'stop' | 'manualStop' | 'opening'>;
  readonly room: GateCapacity;
}

/** The gate: a slot there has nothing to lose, and is released when its image is obsolete. */
export function passGates(draft: PoolDraft, { surveyed, room }: Passing, facts: GateFacts): void {
  const { record, status, hosts } = draft;
  const members = new Set(record.members.map(({ hostUid }) => hostUid));
  status.slots = status.slots.filter((slot) => {
    if (slot.state !== GATE) return true;
    const host = hosts.get(slot.hostUid);
    const isWanted = wantedBy(record, slot.host)?.image === slot.image;
    // Another image needs another approval, and a host that leaves needs none.
    if (host === undefined || !members.has(slot.hostUid) || !isWanted) return false;
    // A host's own reason may last; but a run ends by itself, and needs no new approval.
    if (host.keptBy !== undefined && runUnderWay(host) === undefined) return false;
    const stays = isServing(host) ? room.waitOf(host) : undefined;
    // A slot could heal a broken host: a host that has to stay gives its slot up.
    if (stays !== undefined && room.isWanted) return false;
    return passGate(draft, { slot, host, stays, surveyed }, facts, room);
  });
}

/** A slot at the gate, and what keeps its host in service. */
interface AtGate {
  readonly slot: RolloutSlot;
  readonly host: SeenHost;
  readonly stays: PoolWait | undefined;
  readonly surveyed: Passing['surveyed'];
}

/** Lets it through, or says what it waits for; false: its slot is released. */
function passGate(draft: PoolDraft, atGate: AtGate, facts: GateFacts, room: GateCapacity): boolean {
  const { slot, host, stays, surveyed } = atGate;
  const { record } = draft;
  const why = host.keptBy ?? stopOf(surveyed, { isPinned: isPinned(record, slot.host) });
  const holder = stays ?? why;
  const isFree = holder === undefined && surveyed.opening.isOpen;
  const { want, call }: GateJudgement = needsGate(record, isServing(host))
    ? judgeGate(draft, slot, isFree, facts)
    : { want: undefined };
  if (call !== undefined) keepGateCall(record, call);
  const passage = passageOf(draft, atGate, { want, holder, isFree });
  switch (passage.kind) {
    case 'go':
      room.take(host);
      slot.state = STARTING;
      slot.runsBefore = host.runCount;
      slot.message = '';
      slot.waitsForOthers = false;
      return true;
    case 'wait':
      slot.message = truncate(passage.message);
      slot.waitsForOthers = stays !== undefined;
      return true;
    case 'release':
      fail(draft, slot, { message: passage.message, counted: false });
      return false;
  }
}

/** What happens to a slot at the gate now. */
type Passage =
  | { readonly kind: 'go' }
  | { readonly kind: 'wait'; readonly message: string }
  /** It has waited too long. */
  | { readonly kind: 'release'; readonly message: string };

/** What holds the host at the gate, the gate itself and anything else. */
interface Holding {
  readonly want: GateWant | undefined;
  readonly holder: { readonly text: string } | undefined;
  /** Nothing else holds it, and its window is open. */
  readonly isFree: boolean;
}

function passageOf(
  draft: PoolDraft,
  { slot, stays }: AtGate,
  { want, holder, isFree }: Holding,
): Passage {
  if (want?.kind === 'approval') {
    return waitOrRelease(draft, slot, want.text, 'nobody approved it in time');
  }
  if (want !== undefined) {
    const { text } = stays ?? want;
    return waitOrRelease(draft, slot, text, `not let through in time: it ${truncate(text)}`);
  }
  if (isFree) return { kind: 'go' };
  // Windows may be further apart than deadlines are long; an approval does not last forever.
  if (holder === undefined) return { kind: 'wait', message: 'let through, and waits for a window' };
  const message = stays?.text ?? `let through, and waits: ${holder.text}`;
  const late = `let through, and could not go in time: ${holder.text}`;
  return waitOrRelease(draft, slot, message, late);
}

/** A slot waits at the gate only until its deadline. */
function waitOrRelease(
  { nowMs }: PoolDraft,
  { gateDeadline }: RolloutSlot,
  message: string,
  late: string,
): Passage {
  const isLate = (msOf(gateDeadline) ?? nowMs) <= nowMs;
  return isLate ? { kind: 'release', message: late } : { kind: 'wait', message };
}

/** A slot for a host, taken now. */
export function newSlot(draft: PoolDraft, host: SeenHost, image: string): void {
  const { record, status, nowMs } = draft;
  record.slotCount += 1n;
  const gate = record.pool?.spec?.rollout?.gate;
  const target = targetOf(record);
  const { version = '', reference = '' } = target?.image === image ? target : {};
  const waits = needsGate(record, isServing(host));
  const deadlineMs =
    gate?.deadline === undefined ? gateDeadlineDefaultMs : durationMs(gate.deadline);
  status.slots.push(
    create(RolloutSlotSchema, {
      ...{ host: host.name, hostUid: host.uid, rack: host.rack, image, version, reference },
      number: record.slotCount,
      kind: host.state === HostState.PROVISIONED ? RunKind.REIMAGE : RunKind.PROVISION,
      state: waits ? GATE : STARTING,
      takeTime: timestampFromMs(nowMs),
      runsBefore: host.runCount,
      ...(waits
        ? { gateDeadline: timestampFromMs(nowMs + deadlineMs), message: 'waits at the gate' }
        : {}),
    }),
  );
}
