/** Explains a host in deletion, and a host that a forced removal fences off. Pure. */
import { DeletionMode, HoldScope, type HostSpec, type Run, type store } from '@rackwright/messages';
import { holdOnDeletion, runBeforeRemoval, whyNotRemoved } from '../deletion/deletion.ts';
import { isFenceHold } from '../deletion/fence-hold.ts';
import { reviewReason } from '../life/goal.ts';
import { unknownValueOf } from '../life/newer.ts';
import { displayOf } from '../pass/display.ts';
import type { HostSnapshot } from '../pass/types.ts';
import { adviceToReview, unknownUse } from './brakes.ts';
import { type ExplanationDraft, hostId } from './explanation-draft.ts';

/** A hold keeps a pending deletion from going on; undefined without one. */
export function explainKeptDeletion(record: store.HostRecord): ExplanationDraft | undefined {
  const { status, spec } = record.host ?? {};
  if (status?.deletion === undefined || spec === undefined) return undefined;
  const going = { status, record, spec };
  const hold = needsWork(record, spec) ? holdOnDeletion(going) : undefined;
  if (hold === undefined) return undefined;
  const fenced = explainFence(record);
  const headline = `${displayOf(status)}: held by ${hold.by}: it is neither released nor erased`;
  if (fenced !== undefined && isFenceHold(hold)) return { ...fenced, headline };
  return {
    headline,
    causes: [{ text: hold.reason, since: hold.since }],
    blocker: 'the hold',
    since: hold.since,
    nextAttemptTime: hold.until,
    unblock: [
      `once its reason is gone: rackwright host release-hold ${hostId(record)}`,
      `or take the deletion back: rackwright host cancel-delete ${hostId(record)}`,
    ],
  };
}

/** A deletion of a restored store, whose host may have been taken into use since the backup. */
export function explainReviewedDeletion(record: store.HostRecord): ExplanationDraft | undefined {
  const { host, lookFirstSince } = record;
  const status = host?.status;
  const isForced = status?.deletion?.mode === DeletionMode.FORCE;
  if (status?.deletion === undefined || isForced || lookFirstSince === undefined) return undefined;
  return {
    headline: `${displayOf(status)}: neither switched off nor erased: ${reviewReason}`,
    ...unknownUse(record),
    unblock: [
      ...adviceToReview(record),
      `or take the deletion back: rackwright host cancel-delete ${hostId(record)}`,
    ],
  };
}

/** A pending deletion whose host is on and cannot be switched off; undefined otherwise. */
export function explainNotSwitched(
  record: store.HostRecord,
  snapshot: HostSnapshot,
): ExplanationDraft | undefined {
  const { status, spec } = record.host ?? {};
  if (status?.deletion === undefined || spec === undefined) return undefined;
  const why = whyNotRemoved({ status, spec, record, snapshot });
  if (why === undefined) return undefined;
  return withForce(record, {
    headline: `${displayOf(status)}: the host is on, and cannot be switched off: ${why.text}`,
    blocker: why.text,
    unblock: [
      'mend that; it is then switched off and removed by itself',
      `or switch it off by hand, and it goes once its BMC says so, or leave it on: ` +
        `rackwright host update ${hostId(record)} --delete-keeps-power`,
    ],
  });
}

/** Whether a pending deletion has still to release or erase the host. */
export function needsWork(record: store.HostRecord, spec: HostSpec | undefined): boolean {
  const status = record.host?.status;
  if (status?.deletion === undefined || spec === undefined) return true;
  return runBeforeRemoval({ status, record, spec }) !== undefined;
}

/** Adds the alternative that needs neither agent nor BMC. */
export function withForce(record: store.HostRecord, draft: ExplanationDraft): ExplanationDraft {
  const { deletion } = record.host?.status ?? {};
  if (deletion === undefined || deletion.mode === DeletionMode.FORCE) return draft;
  const force = `rackwright host delete ${hostId(record)} --force --reason WHY`;
  const line = `or remove it without agent and BMC, which leaves a note of what may be: ${force}`;
  return { ...draft, unblock: [...(draft.unblock ?? []), line] };
}

/** Why a fence is still there; undefined when the host has none. */
export function explainFence(record: store.HostRecord): ExplanationDraft | undefined {
  const { holds = [] } = record.host?.status ?? {};
  const hold = holds.find((each) => each.scope === HoldScope.WORK && isFenceHold(each));
  if (hold === undefined) return undefined;
  const [uid] = record.fences;
  return {
    headline: 'fenced off: nothing new starts until an agent has forgotten an earlier host',
    causes: [{ text: hold.reason, since: hold.since }],
    blocker: 'the agent of the host that was removed by force',
    since: hold.since,
    unblock: [
      `see which agent: rackwright abandoned get ${uid}; start it, and it forgets by itself`,
      'or, if that machine can reach nothing any more: ' +
        `rackwright host release-hold ${hostId(record)} --hold fencePending ` +
        '--physically-disconnected --reason WHY',
    ],
  };
}

/** Why a forced removal waits, and for how long. */
export function explainForced(record: store.HostRecord, run: Run): Partial<ExplanationDraft> {
  if (record.host?.status?.deletion?.mode !== DeletionMode.FORCE) return {};
  const { forcedUntil } = record;
  if (forcedUntil === undefined || run.endTime !== undefined) return {};
  return { deadline: forcedUntil, unblock: ['nothing: it goes on by itself after that'] };
}

/** A record of a newer version is not changed. */
export function explainNewer(record: store.HostRecord): ExplanationDraft | undefined {
  const status = record.host?.status;
  const newer = status === undefined ? undefined : unknownValueOf(status);
  if (newer === undefined) return undefined;
  return {
    headline: `left alone: its ${newer} is not known to this version of the control plane`,
    blocker: 'a newer version of the control plane',
    unblock: [
      'upgrade the control plane',
      `or remove the host: rackwright host delete ${hostId(record)} --force --reason WHY`,
    ],
  };
}
