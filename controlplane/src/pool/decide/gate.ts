/**
 * The gate before a host in service is taken out: a person, a webhook, or both. Pure; works on a
 * draft.
 *
 * Invariants:
 * 1. A question stands in the record before it is put, with who puts it; so replicas never put it
 *    at once, and one that was put by a replica that is gone is put again under the same key.
 * 2. A receiver lets a host through by 2xx and {"proceed": true} alone, and only while the pool may
 *    begin: a yes that comes when it may not is asked for anew.
 * 3. It is asked once a person has approved, where both are wanted: its answer is the last word.
 */
import { createHash } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type RolloutSlot, RolloutSlotState, RunKind, store as wire } from '@rackwright/messages';
import { backoffDelayMs } from '@rackwright/results';
import type { CallResult, WebhookOrder } from '../../host/index.ts';
import { msOf } from '../../records/index.ts';
import { type Policy, reachProblem } from '../../steps/index.ts';
import type { PoolDraft } from '../facts/draft-types.ts';
import type { SeenHost } from '../facts/seen.ts';

/** What the gate's webhook is asked with, as far as the loop knows it. */
export interface GateFacts {
  /** This replica. */
  readonly replica: string;
  /** What webhooks the fleet allows. */
  readonly policy: Policy;
  /** What came of calls, by their keys. */
  readonly answers: ReadonlyMap<string, CallResult>;
}

/** Where no webhook is asked. */
export const noGate: GateFacts = { replica: '', policy: undefined, answers: new Map() };

/** First pause before a question is put again, and the longest. */
const pauseFirstMs = 10_000;
const pauseLongestMs = 5 * 60_000;
/** A question of a replica that is gone is put by another one after this. */
const takeOverMs = 120_000;
/** Longest time for one call. */
const callTimeoutMs = 60_000;
/** What the fleet does not allow is looked at again after this. */
const refusedPauseMs = 30_000;
const saidCharsMax = 100;

/** Takes in what came of calls, and forgets those of slots that wait no more. */
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
  call.said = saidBy(answer, call.proceeds);
  call.attempts += 1;
  const key = keyOf(record, call);
  const { attempts: attempt } = call;
  const backOff = { attempt, firstMs: pauseFirstMs, longestMs: pauseLongestMs, key };
  call.notBefore = timestampFromMs(nowMs + backoffDelayMs(backOff));
  // One that nobody can tell of is the same question still.
  if (answer.kind !== 'transientError') call.number += 1;
}

function proceeds(tail: Uint8Array | undefined): boolean {
  try {
    const said: unknown = JSON.parse(new TextDecoder().decode(tail));
    return typeof said === 'object' && said !== null && 'proceed' in said && said.proceed === true;
  } catch {
    return false;
  }
}

function saidBy(answer: CallResult, isLetThrough: boolean): string {
  if (isLetThrough) return 'it lets it through';
  if (answer.kind !== 'complete') return cut(answer.message);
  const { code = 0, lastOutput = '' } = answer.output?.exit ?? {};
  const words = lastOutput.split('\n').at(-1) ?? '';
  return cut(`not yet: it answered ${code}${words === '' ? '' : `, ${words}`}`);
}

function cut(text: string): string {
  return text.length <= saidCharsMax ? text : `${text.slice(0, saidCharsMax - 1)}…`;
}

/** Whether a slot at the gate waits for a person, and not for the webhook. */
export function wantsApproval({ pool }: wire.PoolRecord, { approvedBy }: RolloutSlot): boolean {
  return pool?.spec?.rollout?.gate?.approval === true && approvedBy === '';
}

/** Whether somebody has to be asked before this host is taken. */
export function needsGate({ pool }: wire.PoolRecord, isServing: boolean): boolean {
  const gate = pool?.spec?.rollout?.gate;
  return isServing && (gate?.approval === true || (gate?.webhookUrl ?? '') !== '');
}

/**
 * What a slot at the gate waits for; undefined: the host may go. `mayBegin`: nothing else keeps it.
 * Puts the question to the webhook when its time has come.
 */
export function whatGateWants(
  draft: PoolDraft,
  slot: RolloutSlot,
  mayBegin: boolean,
  facts: GateFacts,
): string | undefined {
  const { record, nowMs } = draft;
  if (wantsApproval(record, slot)) return 'waits for an approval';
  const url = record.pool?.spec?.rollout?.gate?.webhookUrl ?? '';
  if (url === '') return undefined;
  const call = callFor(record, slot, url);
  if (call.proceeds && mayBegin) return undefined;
  if (call.proceeds) {
    call.proceeds = false;
    call.said = '';
  }
  const receiver = originOf(url);
  const problem = reachProblem(facts.policy, { step: 'webhook', arguments: { url } });
  if (problem !== undefined) return cut(`waits for ${receiver}: ${problem}`);
  const isDue = call.callTime === undefined && (msOf(call.notBefore) ?? 0) <= nowMs;
  const isLeft = call.callTime !== undefined && takeOverAtMs(call) <= nowMs;
  if (mayBegin && (isDue || isLeft)) {
    call.callTime = timestampFromMs(nowMs);
    call.caller = facts.replica;
  }
  return `waits for ${receiver}: ${call.said || 'it has not answered yet'}`;
}

/** The question for a slot; another URL is another question. */
function callFor(record: wire.PoolRecord, slot: RolloutSlot, url: string): wire.PoolGateCall {
  const found = record.gateCalls.find(({ slotNumber }) => slotNumber === slot.number);
  const urlDigest = digestOfUrl(url);
  if (found?.urlDigest === urlDigest) return found;
  record.gateCalls = record.gateCalls.filter((each) => each !== found);
  const number = (found?.number ?? 0) + 1;
  const made = create(wire.PoolGateCallSchema, { slotNumber: slot.number, urlDigest, number });
  record.gateCalls.push(made);
  return made;
}

/** A URL may be long, and as many questions as slots have to fit in the record. */
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
    // Due, and not put: something else keeps it, the fleet perhaps.
    const dueMs = msOf(call.notBefore) ?? 0;
    return [dueMs > nowMs ? dueMs : nowMs + refusedPauseMs];
  });
}

/** A question that this replica has to put, or is putting. */
export interface GateOrder extends WebhookOrder {
  readonly slot: bigint;
}

/** The questions that stand in the record as this replica's. */
export function gateOrders(
  record: wire.PoolRecord,
  hosts: ReadonlyMap<string, SeenHost>,
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

/** By which the receiver knows a question that is put once more. */
function keyOf({ pool }: wire.PoolRecord, { slotNumber, number }: wire.PoolGateCall): string {
  return `${pool?.uid ?? ''}/${slotNumber}/${number}`;
}

/** Without path and query, which may be secrets. */
export function originOf(url: string): string {
  return URL.parse(url)?.origin ?? 'the webhook';
}
