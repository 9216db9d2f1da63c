/** Says what a pool, or a host of one, waits for: from the same survey that decides. Pure. */
import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  CauseSchema,
  type Explanation,
  ExplanationSchema,
  RolloutSlotState,
  type store as wire,
} from '@rackwright/api';
import { originOf, wantsApproval } from './gate.ts';
import { waitsForOthers } from './room.ts';
import type { SeenHost } from './seen.ts';
import { Outage, queueOf, type Standing, type Survey, survey } from './survey.ts';

/** Lines of one kind that are told; the rest are counted. */
const linesMax = 5;

/** What the pool waits for, since when, and what would make it move. */
export function explainPool(
  record: wire.PoolRecord,
  hosts: readonly SeenHost[],
  contested: ReadonlyMap<string, string>,
  nowMs: number,
): Explanation {
  const surveyed = survey(record, new Map(hosts.map((host) => [host.uid, host])), nowMs);
  const { pool } = record;
  const name = pool?.name ?? '';
  const conditions = pool?.status?.conditions ?? [];
  const upToDate = conditions.find(({ type }) => type === 'UpToDate');
  const told = create(ExplanationSchema, {
    subject: name,
    headline: upToDate?.message ?? 'it has not been looked at yet',
    causes: causesOf(surveyed, contested),
  });
  if (upToDate?.status !== true) {
    told.blocker = blockerOf(record, surveyed);
    if (upToDate?.since !== undefined) told.since = upToDate.since;
    told.unblock = adviceOf(record, surveyed, contested);
  }
  const { untilMs, isOpen } = surveyed.opening;
  const times = surveyed.standings.flatMap((each) => each.untilMs ?? []);
  if (!isOpen && untilMs !== undefined) times.push(untilMs);
  if (times.length > 0) told.nextAttemptTime = timestampFromMs(Math.min(...times));
  return told;
}

function causesOf(surveyed: Survey, contested: ReadonlyMap<string, string>) {
  const { standings, slots, held } = surveyed;
  const outage = new Outage(surveyed);
  const [next] = queueOf(surveyed);
  const lines = [
    ...(held === undefined ? [] : [{ text: held.text }]),
    ...slots.map(({ host, image, message, takeTime }) => ({
      text: `${host} is out for ${image}${message === '' ? '' : `: ${message}`}`,
      since: takeTime,
    })),
    ...standings
      .filter(({ stand }) => stand === 'kept' || stand === 'failed')
      .map(({ name, why }) => ({ text: `${name}: ${why}` })),
    ...[...contested].map(([host, why]) => ({ text: `${host} is ${why}` })),
    ...(next === undefined
      ? []
      : [{ text: `${next.name} ${outage.whyWaits(next) ?? 'goes next'}` }]),
  ];
  const shown = lines.slice(0, linesMax).map((line) => causeOf(line));
  const more = lines.length - shown.length;
  return more > 0 ? [...shown, causeOf({ text: `and ${more} more` })] : shown;
}

function causeOf({ text, since }: { text: string; since?: wire.PoolFailure['time'] }) {
  return create(CauseSchema, since === undefined ? { text } : { text, since });
}

function blockerOf(record: wire.PoolRecord, surveyed: Survey): string {
  const { held, slots, opening, standings } = surveyed;
  if (held !== undefined) return held.text;
  const atGate = slots.filter(({ state }) => state === RolloutSlotState.GATE);
  if (atGate.some((slot) => wantsApproval(record, slot))) return 'an approval';
  const named = atGate.find((slot) => waitsForOthers(slot));
  if (named !== undefined) return named.message.replace('waits for ', '');
  if (atGate.length > 0) return `the webhook at ${originOf(gateUrlOf(record))}`;
  if (slots.length > 0) return `${slots.length} of its hosts that are out`;
  if (standings.length === 0) return 'hosts that it may hold';
  return opening.isOpen ? surveyed.waveWaitsFor || 'its hosts' : 'its window';
}

/** What a person can do, by what keeps it. */
function adviceOf(
  record: wire.PoolRecord,
  { held, slots, standings, opening, target }: Survey,
  contested: ReadonlyMap<string, string>,
): string[] {
  const { pool, resolveFailure } = record;
  const id = (pool?.name ?? '').replace('pools/', '');
  const failed = standings.find(({ stand }) => stand === 'failed');
  const kept = standings.find(({ stand }) => stand === 'kept');
  const gate = slots.find(({ state }) => state === RolloutSlotState.GATE);
  const advice: string[] = [];
  if (held?.reason === 'paused') advice.push(`let it go on: rackwright pool resume ${id}`);
  if (held?.reason === 'halted' || failed !== undefined) {
    advice.push(`give it another image: rackwright pool update ${id} --image IMAGE`);
  }
  if (held?.reason === 'stopped') {
    advice.push(`let hosts be out: rackwright pool update ${id} --max-unavailable 1`);
  }
  if (resolveFailure !== undefined || target === undefined) {
    advice.push(
      `see to the registry, or name a digest: rackwright pool update ${id} --image IMAGE`,
    );
  }
  if (gate !== undefined && wantsApproval(record, gate)) {
    const digest = gate.image.slice(gate.image.indexOf('@') + 1);
    advice.push(`approve them: rackwright pool approve ${id} ${digest}`);
  } else if (gate !== undefined && !waitsForOthers(gate)) {
    const receiver = originOf(gateUrlOf(record));
    const instead = `ask nobody: rackwright pool update ${id} --gate none`;
    advice.push(`see what ${receiver} wants, or ${instead}`);
  }
  const named = failed ?? kept ?? slots.find((slot) => slot !== gate);
  if (named !== undefined) advice.push(`see the host: rackwright host explain ${hostIdOf(named)}`);
  if (!opening.isOpen) advice.push('wait for its window, or change its windows');
  if (contested.size > 0) advice.push(`see who has its hosts: rackwright pool hosts ${id}`);
  if (standings.length === 0 && contested.size === 0) {
    advice.push('let its selector mean hosts that are available, or provisioned and unclaimed');
  }
  return advice;
}

function gateUrlOf({ pool }: wire.PoolRecord): string {
  return pool?.spec?.rollout?.gate?.webhookUrl ?? '';
}

function hostIdOf(named: { readonly name: string } | { readonly host: string }): string {
  return ('name' in named ? named.name : named.host).replace('hosts/', '');
}

/** A host's own explanation, with what its pool has to do with it. */
export function withPool(
  explanation: Explanation,
  record: wire.PoolRecord,
  hosts: readonly SeenHost[],
  nowMs: number,
): Explanation {
  const surveyed = survey(record, new Map(hosts.map((host) => [host.uid, host])), nowMs);
  const standing = surveyed.standings.find(({ name }) => name === explanation.subject);
  if (standing === undefined || standing.stand === 'current') return explanation;
  const told = clone(ExplanationSchema, explanation);
  const pool = record.pool?.name ?? '';
  const text = textOf(standing, new Outage(surveyed));
  told.causes.push(causeOf({ text: `${pool}: ${text}`, since: standing.slot?.takeTime }));
  // What else keeps the host goes on keeping it.
  if (told.blocker !== '') return told;
  told.blocker = `its turn in ${pool}`;
  told.unblock.push(`see what it waits for: rackwright pool explain ${pool.replace('pools/', '')}`);
  return told;
}

function textOf(standing: Standing, outage: Outage): string {
  const { stand, why, wanted, slot } = standing;
  if (slot !== undefined) return `it has a slot for ${slot.image}${why === '' ? '' : `: ${why}`}`;
  if (stand !== 'waiting') return why;
  const waits = outage.whyWaits(standing) ?? 'it goes next';
  return `it ${wanted === undefined ? '' : `shall run ${wanted.image}, and `}${waits}`;
}
