/**
 * How certificate authorities follow one another, decided from records alone; pure.
 *
 * Invariants:
 * 1. Exactly one authority signs. Only one whose certificate every agent believes comes to that,
 *    unless a person gives up the agents that do not, by name.
 * 2. One that no longer signs is believed for as long as a certificate lives that it has signed.
 * 3. Every wait has words that say what ends it.
 */
import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type AuthorityWait,
  AuthorityWaitSchema,
  counted,
  type RackName,
  Authority_Stage as Stage,
  store as wire,
} from '@rackwright/messages';
import { idOf } from '../records/index.ts';

/** What certificates live, and how long each stage lasts at least; milliseconds. */
export interface TrustTiming {
  /** Life of an agent's certificate. */
  readonly agentCertificateMs: number;
  readonly caLifetimeMs: number;
  /** People need it to hand the new certificate to operators, whose files nobody can look into. */
  readonly nextStayMs: number;
  /** Every replica shows another certificate by then. */
  readonly retiredStayMs: number;
  /** So long before its end the signing authority is a fault, until another one signs. */
  readonly caWarningMs: number;
  /** How often the conditions are looked at when nothing changes. */
  readonly lookMs: number;
}

const dayMs = 86_400_000;

export const defaultTrustTiming: TrustTiming = Object.freeze({
  agentCertificateMs: 7 * dayMs,
  caLifetimeMs: 730 * dayMs,
  nextStayMs: dayMs,
  retiredStayMs: 10 * 60_000,
  caWarningMs: 90 * dayMs,
  lookMs: 30_000,
});

/** Authorities that may be believed at once; another rotation waits. */
export const authoritiesMax = 3;
/** The longest life of a certificate of which nobody wrote down when it ends. */
const unwrittenLifeMs = 30 * dayMs;

/** What a rack's record says of its agent's trust. */
export interface RackTrust {
  /** "racks/RACK" */
  readonly rack: RackName;
  readonly isJoined: boolean;
  /** SHA-256 of the authorities that the agent believes. */
  readonly believes: readonly string[];
  /** The authority that signed its last certificate; empty: nobody wrote it down. */
  readonly signedBy: string;
  readonly expiresMs: number | undefined;
  /** When its agent was last heard; undefined: never. */
  readonly seenMs: number | undefined;
  /** Join tokens that can still be used. */
  readonly tokens: readonly { readonly caSha256: string; readonly expiresMs: number }[];
}

/** Reads it out of the record. */
export function rackTrust(record: wire.RackRecord): RackTrust {
  const { status, name = '' } = record.rack ?? {};
  return {
    rack: name,
    isJoined: record.agentPublicKey.length > 0,
    believes: record.trustedCaSha256,
    signedBy: record.certificateCaSha256,
    expiresMs: status?.certificateExpireTime && timestampMs(status.certificateExpireTime),
    seenMs: status?.lastSeenTime && timestampMs(status.lastSeenTime),
    tokens: record.joinTokens
      .filter(({ usedBySha256, expireTime }) => usedBySha256.length === 0 && expireTime)
      .map(({ caSha256, expireTime }) => ({
        caSha256,
        expiresMs: expireTime === undefined ? 0 : timestampMs(expireTime),
      })),
  };
}

/** The authority at this stage; at most one is next or active, of the retired ones the first. */
export function authorityAt(
  { authorities }: wire.TrustRecord,
  stage: Stage,
): wire.AuthorityRecord | undefined {
  return authorities.find(({ authority }) => authority?.stage === stage);
}

/** What keeps the authority from its next stage; empty for the one that signs. */
export function waitsOf(
  record: wire.TrustRecord,
  one: wire.AuthorityRecord,
  racks: readonly RackTrust[],
  nowMs: number,
  timing: TrustTiming,
): AuthorityWait[] {
  const stage = one.authority?.stage;
  if (stage === Stage.NEXT) return waitsOfNext(record, one, racks, nowMs, timing);
  if (stage === Stage.RETIRED) return waitsOfRetired(record, one, racks, nowMs, timing);
  return [];
}

function waitsOfNext(
  record: wire.TrustRecord,
  { authority }: wire.AuthorityRecord,
  racks: readonly RackTrust[],
  nowMs: number,
  timing: TrustTiming,
): AuthorityWait[] {
  const waits: AuthorityWait[] = [];
  const stayMs = stageMs(authority) + timing.nextStayMs;
  if (nowMs < stayMs) {
    const message =
      'operators need it in their CA files first: give them the answer of ' +
      '`rackwright trust bundle`';
    waits.push(wait('', message, stayMs));
  }
  const active = authorityAt(record, Stage.ACTIVE)?.authority?.sha256 ?? '';
  for (const { rack, isJoined, believes, seenMs, tokens } of racks) {
    if (isJoined && !believes.includes(authority?.sha256 ?? '')) {
      const seen = seenMs === undefined ? 'never' : new Date(seenMs).toISOString();
      const message =
        `its agent, last heard ${seen}, does not believe it yet: start the agent, or revoke it ` +
        `(rackwright rack revoke ${idOf(rack)} --reason WHY), or give the rack up`;
      waits.push(wait(rack, message));
    }
    const token = tokens.find(
      ({ caSha256, expiresMs }) => caSha256 === active && expiresMs > nowMs,
    );
    if (token === undefined) continue;
    waits.push(
      wait(rack, 'a join token that names the old one can still be used', token.expiresMs),
    );
  }
  return waits;
}

function waitsOfRetired(
  record: wire.TrustRecord,
  { authority }: wire.AuthorityRecord,
  racks: readonly RackTrust[],
  nowMs: number,
  timing: TrustTiming,
): AuthorityWait[] {
  const waits: AuthorityWait[] = [];
  const since = stageMs(authority);
  if (nowMs < since + timing.retiredStayMs) {
    const message = 'replicas of the control plane may still show a certificate that it signed';
    waits.push(wait('', message, since + timing.retiredStayMs));
  }
  const isOldest = record.authorities[0]?.authority?.sha256 === authority?.sha256;
  for (const { rack, isJoined, signedBy, expiresMs } of racks) {
    if (!isJoined) continue;
    // Of a certificate that nobody wrote down, only the oldest authority can be the signer.
    const isSigner = signedBy === '' ? isOldest : signedBy === authority?.sha256;
    const untilMs = expiresMs ?? since + unwrittenLifeMs;
    if (!isSigner || untilMs <= nowMs) continue;
    waits.push(wait(rack, 'its agent has a certificate that it signed', untilMs));
  }
  return waits;
}

function wait(rack: RackName, message: string, untilMs?: number): AuthorityWait {
  const until = untilMs === undefined ? {} : { until: timestampFromMs(untilMs) };
  return create(AuthorityWaitSchema, { rack, message, ...until });
}

function stageMs(authority: wire.AuthorityRecord['authority']): number {
  return authority?.stageTime === undefined ? 0 : timestampMs(authority.stageTime);
}

/** The record after what now moves by itself; undefined when all of it waits (invariants 1, 2). */
export function moveOn(
  record: wire.TrustRecord,
  racks: readonly RackTrust[],
  nowMs: number,
  timing: TrustTiming,
): wire.TrustRecord | undefined {
  const free = record.authorities.find((one) => {
    const stage = one.authority?.stage;
    const moves = stage === Stage.NEXT || stage === Stage.RETIRED;
    return moves && waitsOf(record, one, racks, nowMs, timing).length === 0;
  });
  const sha256 = free?.authority?.sha256;
  return sha256 === undefined ? undefined : advanced(record, sha256, [], nowMs);
}

/** The record with this authority at its next stage: it signs, or it is gone. */
export function advanced(
  record: wire.TrustRecord,
  sha256: string,
  givenUp: readonly string[],
  nowMs: number,
): wire.TrustRecord {
  const next = clone(wire.TrustRecordSchema, record);
  next.generation += 1n;
  const one = next.authorities.find(({ authority }) => authority?.sha256 === sha256)?.authority;
  if (one?.stage === Stage.RETIRED) {
    next.authorities = next.authorities.filter(({ authority }) => authority !== one);
  }
  if (one?.stage !== Stage.NEXT) return next;
  const before = authorityAt(next, Stage.ACTIVE)?.authority;
  const stageTime = timestampFromMs(nowMs);
  if (before !== undefined) Object.assign(before, { stage: Stage.RETIRED, stageTime });
  Object.assign(one, { stage: Stage.ACTIVE, stageTime, givenUp: [...givenUp] });
  return next;
}

/** What is wrong with the authorities or soon will be, each with what to do. */
export function trustFaults(
  record: wire.TrustRecord,
  racks: readonly RackTrust[],
  nowMs: number,
  timing: TrustTiming,
): string[] {
  const faults: string[] = [];
  const active = authorityAt(record, Stage.ACTIVE);
  const next = authorityAt(record, Stage.NEXT);
  const end = active?.authority?.expireTime;
  const endMs = end === undefined ? 0 : timestampMs(end);
  // A fifth of a short life is as good a warning as the usual days of a long one.
  const warningMs = Math.min(timing.caWarningMs, timing.caLifetimeMs / 5);
  if (nowMs >= endMs - warningMs) {
    const when = new Date(endMs).toISOString();
    const days = Math.max(0, Math.floor((endMs - nowMs) / dayMs));
    const left = days === 0 ? 'less than a day' : counted(days, 'day');
    const act =
      next === undefined
        ? 'Make the next one: rackwright trust rotate --reason WHY'
        : 'The next one waits; see rackwright trust show';
    faults.push(
      nowMs >= endMs
        ? `The authority that signs ended at ${when}: no agent can connect. ${act}`
        : `The authority that signs ends at ${when}, in ${left}. ${act}`,
    );
  }
  if (next !== undefined) {
    const waiting = waitsOfNext(record, next, racks, nowMs, timing).filter(({ rack, until }) => {
      return rack !== '' && until === undefined;
    });
    const lateMs = stageMs(next.authority) + 7 * timing.nextStayMs;
    if (waiting.length > 0 && nowMs >= lateMs) {
      faults.push(
        `The next authority has waited since ${new Date(stageMs(next.authority)).toISOString()} ` +
          `for ${counted(waiting.length, 'agent')}, named by \`rackwright trust show\`.`,
      );
    }
  }
  return faults;
}
