/**
 * The succession of certificate authorities, decided from records alone; pure.
 *
 * Invariants:
 * 1. Exactly one authority signs. It signs only once every agent trusts its certificate, or a
 *    person gives up the other agents by name.
 * 2. A retired authority stays trusted as long as any certificate lives that it has signed.
 * 3. Every wait has a text that says what ends it.
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

/** Lifetimes of certificates, and the least length of each stage; milliseconds. */
export interface TrustTiming {
  /** Life of an agent's certificate. */
  readonly agentCertificateMs: number;
  readonly caLifetimeMs: number;
  /** People need it to hand the new certificate to operators, whose files cannot be checked. */
  readonly nextStayMs: number;
  /** By then every replica shows another certificate. */
  readonly retiredStayMs: number;
  /** This long before its expiry the signing authority is a fault, until another one signs. */
  readonly caWarningMs: number;
  /** How often the conditions are checked without a change. */
  readonly checkMs: number;
}

const dayMs = 86_400_000;

export const defaultTrustTiming: TrustTiming = Object.freeze({
  agentCertificateMs: 7 * dayMs,
  caLifetimeMs: 730 * dayMs,
  nextStayMs: dayMs,
  retiredStayMs: 10 * 60_000,
  caWarningMs: 90 * dayMs,
  checkMs: 30_000,
});

/** The most authorities that are trusted at once; another rotation waits. */
export const authoritiesMax = 3;
/** The longest life of a certificate without a recorded expiry. */
const unwrittenLifeMs = 30 * dayMs;

/** The trust of a rack's agent, from the rack's record. */
export interface RackTrust {
  /** "racks/RACK" */
  readonly rack: RackName;
  readonly isJoined: boolean;
  /** SHA-256 of the authorities that the agent trusts. */
  readonly trusts: readonly string[];
  /** The authority that signed its last certificate; empty: not recorded. */
  readonly signedBy: string;
  readonly expiresMs: number | undefined;
  /** When its agent was last heard; undefined: never. */
  readonly seenMs: number | undefined;
  /** Join tokens that can still be used. */
  readonly tokens: readonly { readonly caSha256: string; readonly expiresMs: number }[];
}

/** Extracts it from the record. */
export function rackTrust(record: wire.RackRecord): RackTrust {
  const { status, name = '' } = record.rack ?? {};
  return {
    rack: name,
    isJoined: record.agentPublicKey.length > 0,
    trusts: record.trustedCaSha256,
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

/**
 * The authority at this stage; at most one is next or active, and of retired ones the first is
 * returned.
 */
export function authorityAt(
  { authorities }: wire.TrustRecord,
  stage: Stage,
): wire.AuthorityRecord | undefined {
  return authorities.find(({ authority }) => authority?.stage === stage);
}

/** Why the authority does not advance to its next stage; empty for the signing one. */
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
  for (const { rack, isJoined, trusts, seenMs, tokens } of racks) {
    if (isJoined && !trusts.includes(authority?.sha256 ?? '')) {
      const seen = seenMs === undefined ? 'never' : new Date(seenMs).toISOString();
      const message =
        `its agent, last heard ${seen}, does not trust it yet: start the agent, or revoke it ` +
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
    // For a certificate without a recorded issuer, only the oldest authority can be the signer.
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

/** The record after every automatic advance; undefined when all stages wait (invariants 1, 2). */
export function advanceReady(
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
  return sha256 === undefined ? undefined : advanceAuthority(record, sha256, [], nowMs);
}

/** The record with this authority at its next stage: it signs, or it is removed. */
export function advanceAuthority(
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

/** Present and coming problems of the authorities, each with a remedy. */
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
  // For a short life, a fifth of it serves as well as the usual days of a long one.
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
