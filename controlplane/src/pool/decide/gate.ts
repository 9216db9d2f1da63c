/**
 * The gate before a host in service is taken out: a person, a webhook, or both. Pure; changes a
 * draft.
 *
 * Invariants:
 * 1. A question is in the record, with its replica, before it is sent. So replicas never send it at
 *    the same time, and the question of a stopped replica is sent again under the same key.
 * 2. Only 2xx with {"proceed": true} lets a host through, and only while the pool may begin: after
 *    a positive answer at another time the receiver is asked again.
 * 3. Where both are configured, the webhook is asked after the person's approval: its answer is the
 *    last one.
 */
import { createHash } from 'node:crypto';
import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type HostUid,
  type RolloutSlot,
  RolloutSlotState,
  RunKind,
  store as wire,
} from '@rackwright/messages';
import { parsedJson } from '@rackwright/platform';
import { backoffDelayMs } from '@rackwright/results';
import type { CallResult, WebhookOrder } from '../../host/index.ts';
import { msOf } from '../../records/index.ts';
import { type Policy, reachProblem } from '../../steps/index.ts';
import type { PoolDraft } from '../facts/draft-types.ts';
import type { SeenHost } from '../facts/seen.ts';

/** The loop's inputs for the gate's webhook. */
export interface GateFacts {
  /** This replica. */
  readonly replica: string;
  /** The fleet's policy for webhooks. */
  readonly policy: Policy;
  /** The results of calls, by their keys. */
  readonly answers: ReadonlyMap<string, CallResult>;
}

/** For a pool without a webhook. */
export const noGate: GateFacts = { replica: '', policy: undefined, answers: new Map() };

/** First pause before a question is repeated, and the longest. */
const pauseFirstMs = 10_000;
const pauseMsMax = 5 * 60_000;
/** After this time another replica repeats the question of a stopped replica. */
const takeOverMs = 120_000;
/** Longest time for one call. */
const callTimeoutMs = 60_000;
/** A URL that the fleet does not permit is checked again after this. */
const refusedPauseMs = 30_000;
const outputCharsMax = 100;

/** Records the results of calls, and drops those of slots that no longer wait. */
export function foldGateCalls({ record, status, nowMs }: PoolDraft, facts: GateFacts): void {
  const waiting = new Set(
    status.slots.filter(({ state }) => state === RolloutSlotState.GATE).map(({ number }) => number),
  );
  record.gateCalls = record.gateCalls.filter(({ slotNumber }) => waiting.has(slotNumber));
  for (const call of record.gateCalls) {
    const answer = facts.answers.get(keyOf(record, call));
    if (answer !== undefined && call.callTime !== undefined) fold(call, answer, record, nowMs);
  }
}

function fold(
  call: wire.PoolGateCall,
  answer: CallResult,
  record: wire.PoolRecord,
  nowMs: number,
): void {
  delete call.callTime;
  call.caller = '';
  call.proceeds = answer.kind === 'complete' && proceeds(answer.output?.tail);
  call.said = reasonBy(answer, call.proceeds);
  call.attempts += 1;
  const key = keyOf(record, call);
  const { attempts: attempt } = call;
  const backOff = { attempt, firstMs: pauseFirstMs, delayMsMax: pauseMsMax, key };
  call.notBefore = timestampFromMs(nowMs + backoffDelayMs(backOff));
  // After an unknown result the question stays the same.
  if (answer.kind !== 'transientError') call.number += 1;
}

function proceeds(tail: Uint8Array | undefined): boolean {
  const vote = parsedJson(new TextDecoder().decode(tail));
  return typeof vote === 'object' && vote !== null && 'proceed' in vote && vote.proceed === true;
}

function reasonBy(answer: CallResult, isLetThrough: boolean): string {
  if (isLetThrough) return 'it lets it through';
  if (answer.kind !== 'complete') return cut(answer.message);
  const { code = 0, lastOutput = '' } = answer.output?.exit ?? {};
  const text = lastOutput.split('\n').at(-1) ?? '';
  return cut(`not yet: it answered ${code}${text === '' ? '' : `, ${text}`}`);
}

function cut(text: string): string {
  return text.length <= outputCharsMax ? text : `${text.slice(0, outputCharsMax - 1)}…`;
}

/** Whether a slot at the gate waits for a person, and not for the webhook. */
export function wantsApproval({ pool }: wire.PoolRecord, { approvedBy }: RolloutSlot): boolean {
  return pool?.spec?.rollout?.gate?.approval === true && approvedBy === '';
}

/** Whether this host needs an approval before it is taken out. */
export function needsGate({ pool }: wire.PoolRecord, isServing: boolean): boolean {
  const gate = pool?.spec?.rollout?.gate;
  return isServing && (gate?.approval === true || (gate?.webhookUrl ?? '') !== '');
}

/** What a slot at the gate waits for. */
export interface GateWant {
  readonly kind:
    | 'approval'
    /** An answer of the webhook. */
    | 'webhook'
    /** The fleet's policy, which does not permit the webhook. */
    | 'policy';
  /** For people. */
  readonly text: string;
}

/** What holds a slot at the gate, and the question to its webhook as it is from now on. */
export interface GateJudgement {
  /** Undefined: the gate lets the host go. */
  readonly want: GateWant | undefined;
  /** Undefined: no webhook is asked. */
  readonly call?: wire.PoolGateCall;
}

/** Judges a slot at the gate. `mayBegin`: nothing else holds the host. */
export function judgeGate(
  { record, nowMs }: PoolDraft,
  slot: RolloutSlot,
  mayBegin: boolean,
  { policy, replica }: GateFacts,
): GateJudgement {
  if (wantsApproval(record, slot)) {
    return { want: { kind: 'approval', text: 'waits for an approval' } };
  }
  const url = record.pool?.spec?.rollout?.gate?.webhookUrl ?? '';
  if (url === '') return { want: undefined };
  const call = callOf(record, slot, url);
  if (call.proceeds && mayBegin) return { want: undefined, call };
  if (call.proceeds) Object.assign(call, { proceeds: false, said: '' });
  const receiver = originOf(url);
  const problem = reachProblem(policy, { step: 'webhook', arguments: { url } });
  if (problem !== undefined) {
    const text = cut(`waits for ${receiver}: ${problem}`);
    return { want: { kind: 'policy', text }, call };
  }
  const isDue = call.callTime === undefined && (msOf(call.notBefore) ?? 0) <= nowMs;
  const isLeft = call.callTime !== undefined && takeOverAtMs(call) <= nowMs;
  if (mayBegin && (isDue || isLeft)) {
    Object.assign(call, { callTime: timestampFromMs(nowMs), caller: replica });
  }
  const response = call.said || 'it has not answered yet';
  return { want: { kind: 'webhook', text: `waits for ${receiver}: ${response}` }, call };
}

/** A copy of the question for a slot; another URL makes a new question. */
function callOf(record: wire.PoolRecord, slot: RolloutSlot, url: string): wire.PoolGateCall {
  const found = record.gateCalls.find(({ slotNumber }) => slotNumber === slot.number);
  const urlDigest = digestOfUrl(url);
  if (found?.urlDigest === urlDigest) return clone(wire.PoolGateCallSchema, found);
  const number = (found?.number ?? 0) + 1;
  return create(wire.PoolGateCallSchema, { slotNumber: slot.number, urlDigest, number });
}

/** Keeps the question of a slot, in place of its earlier one. */
export function keepGateCall(record: wire.PoolRecord, call: wire.PoolGateCall): void {
  const at = record.gateCalls.findIndex(({ slotNumber }) => slotNumber === call.slotNumber);
  if (at < 0) record.gateCalls.push(call);
  else record.gateCalls[at] = call;
}

/** A URL may be long, and a record must have room for one question of each slot. */
function digestOfUrl(url: string): string {
  return createHash('sha256').update(url).digest('hex');
}

function takeOverAtMs({ callTime }: wire.PoolGateCall): number {
  return (msOf(callTime) ?? 0) + takeOverMs;
}

/** When time alone may change something at the gate. */
export function gateTimes(record: wire.PoolRecord, nowMs: number): readonly number[] {
  return record.gateCalls.flatMap((call) => {
    if (call.proceeds) return [];
    if (call.callTime !== undefined) return [takeOverAtMs(call)];
    // Due and not sent: something else holds it, such as the fleet's policy.
    const dueMs = msOf(call.notBefore) ?? 0;
    return [dueMs > nowMs ? dueMs : nowMs + refusedPauseMs];
  });
}

/** A question that this replica has to send, or is sending. */
export interface GateOrder extends WebhookOrder {
  readonly slot: bigint;
}

/** The questions in the record that belong to this replica. */
export function gateOrders(
  record: wire.PoolRecord,
  hosts: ReadonlyMap<HostUid, SeenHost>,
  { replica }: GateFacts,
): GateOrder[] {
  const slots = record.pool?.status?.slots ?? [];
  const url = record.pool?.spec?.rollout?.gate?.webhookUrl ?? '';
  const urlDigest = digestOfUrl(url);
  return record.gateCalls.flatMap((call) => {
    const slot = slots.find(({ number }) => number === call.slotNumber);
    const isOf = call.urlDigest === urlDigest;
    const isOurs = isOf && call.callTime !== undefined && call.caller === replica;
    if (!isOurs || slot === undefined) return [];
    const body = JSON.stringify({
      ...{ pool: record.pool?.name, host: slot.host, rack: slot.rack },
      run: slot.kind === RunKind.REIMAGE ? 'reimage' : 'provision',
      ...{ from: hosts.get(slot.hostUid)?.image ?? '', to: slot.image, version: slot.version },
      order: Number(slot.number),
    });
    return {
      ...{ id: keyOf(record, call), slot: slot.number, rack: slot.rack },
      arguments: { url, method: 'POST', body },
      deadlineMs: (msOf(call.callTime) ?? 0) + callTimeoutMs,
    };
  });
}

/** The key by which the receiver recognizes a repeated question. */
function keyOf({ pool }: wire.PoolRecord, { slotNumber, number }: wire.PoolGateCall): string {
  return `${pool?.uid ?? ''}/${slotNumber}/${number}`;
}

/** Without path and query, which may be secret. */
export function originOf(url: string): string {
  return URL.parse(url)?.origin ?? 'the webhook';
}
