/** AuthorityService: the trusted certificate authorities, and their rotation. */
import { clone, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type AdvanceAuthorityRequest,
  type AuthoritiesSchema,
  AuthoritySchema,
  AuthorityService,
  type BoundService,
  bind,
  failedPrecondition,
  notFound,
  type RackName,
  type RequestId,
  type RotateAuthorityRequest,
  Authority_Stage as Stage,
  type store as wire,
} from '@rackwright/messages';
import type { RpcDependencies } from '../../call/ports.ts';
import { formatPosition } from '../../call/position.ts';
import { checkReason, checkRequestId } from '../../call/texts.ts';
import { Violations } from '../../call/violations.ts';
import { appliedId, hasApplied, withApplied } from '../../records/index.ts';
import {
  advanceAuthority,
  authoritiesMax,
  authorityAt,
  makeAuthority,
  type RackTrust,
  type TrustNow,
  trustFaults,
  waitsOf,
} from '../index.ts';

/** The most waits of one authority that are listed; their number is always given. */
const waitsShownMax = 200;
/** The fewest digits of a fingerprint that name an authority. */
const prefixCharsMin = 8;
const racksNamedMax = 5;

type AuthoritiesInit = MessageInitShape<typeof AuthoritiesSchema>;

/** The service over these dependencies. */
export function createAuthorityService(deps: RpcDependencies): BoundService {
  return bind(AuthorityService, {
    getAuthorities: () => present(deps, deps.identity.authorities.now),
    rotateAuthority: async (call) => present(deps, await rotate(deps, call)),
    advanceAuthority: async (call) => present(deps, await advance(deps, call)),
  });
}

async function present(deps: RpcDependencies, now: TrustNow): Promise<AuthoritiesInit> {
  const { authorities } = deps.identity;
  const racks = await authorities.readRacks();
  const nowMs = deps.clock.nowMs();
  const { record, revision, certificates } = now;
  return {
    etag: formatPosition(deps.store, revision),
    authorities: record.authorities.flatMap((one) => {
      if (one.authority === undefined) return [];
      const waits = waitsOf(record, one, racks, nowMs, authorities.timing);
      const shown = clone(AuthoritySchema, one.authority);
      shown.waits = waits.slice(0, waitsShownMax);
      shown.waitingCount = waits.length;
      return [shown];
    }),
    bundlePem: certificates.join(''),
    faults: trustFaults(record, racks, nowMs, authorities.timing),
  };
}

async function rotate(
  deps: RpcDependencies,
  { reason, requestId }: RotateAuthorityRequest,
): Promise<TrustNow> {
  checkCall(reason, requestId);
  const { authorities, secrets } = deps.identity;
  const { caLifetimeMs } = authorities.timing;
  const id = appliedId('rotate', requestId);
  const now = await authorities.change(async (record) => {
    if (hasApplied(record, id)) return undefined;
    const refused = whyNoRotation(record);
    if (refused !== undefined) throw failedPrecondition('ROTATION_UNDER_WAY', refused);
    const making = { ...deps, sealer: secrets, caLifetimeMs };
    record.authorities.push(await makeAuthority(making, Stage.NEXT, deps.actor, reason));
    return noted(record, id);
  });
  deps.log.info({ actor: deps.actor, reason }, 'a new certificate authority was made');
  return now;
}

function whyNoRotation(record: wire.TrustRecord): string | undefined {
  const next = authorityAt(record, Stage.NEXT)?.authority;
  if (next !== undefined) {
    return (
      `The authority ${short(next.sha256)} is to sign next and still waits: ` +
      '`rackwright trust show` says for what.'
    );
  }
  if (record.authorities.length < authoritiesMax) return undefined;
  return (
    `${record.authorities.length} authorities are trusted, which is as many as may be: ` +
    '`rackwright trust show` says what the retired ones wait for.'
  );
}

async function advance(
  deps: RpcDependencies,
  { authority: named, giveUp, reason, requestId }: AdvanceAuthorityRequest,
): Promise<TrustNow> {
  checkCall(reason, requestId, named);
  const { authorities } = deps.identity;
  const id = appliedId('advance', requestId);
  const racks = await authorities.readRacks();
  const now = await authorities.change(async (record) => {
    if (hasApplied(record, id)) return undefined;
    const one = findAuthority(record, named);
    const nowMs = deps.clock.nowMs();
    checkGivenUp(record, one, racks, giveUp, nowMs, deps);
    const next = advanceAuthority(record, one.authority?.sha256 ?? '', giveUp, nowMs);
    next.requestIds = withApplied(next.requestIds, id);
    return next;
  });
  deps.log.warn({ actor: deps.actor, reason, giveUp: giveUp.join(' ') }, 'a rotation was forced');
  return now;
}

function findAuthority(record: wire.TrustRecord, named: string): wire.AuthorityRecord {
  const one = record.authorities.find(({ authority }) => authority?.sha256.startsWith(named));
  if (one === undefined) throw notFound(`authority ${short(named)}`);
  if (one.authority?.stage !== Stage.ACTIVE) return one;
  throw failedPrecondition(
    'AUTHORITY_SIGNS',
    `The authority ${short(one.authority.sha256)} signs already; it is followed by another one ` +
      'only: rackwright trust rotate --reason WHY',
  );
}

/** The request has to name every rack that would be lost, and no other. */
function checkGivenUp(
  record: wire.TrustRecord,
  one: wire.AuthorityRecord,
  racks: readonly RackTrust[],
  giveUp: readonly string[],
  nowMs: number,
  { identity }: RpcDependencies,
): void {
  const waits = waitsOf(record, one, racks, nowMs, identity.authorities.timing);
  const waiting = new Set(waits.flatMap(({ rack }) => (rack === '' ? [] : [rack])));
  const missing = [...waiting].filter((rack) => !giveUp.includes(rack));
  const extra = giveUp.filter((rack) => !waiting.has(rack));
  if (missing.length === 0 && extra.length === 0) return;
  const problems = [
    ...(missing.length === 0 ? [] : [`it still waits for ${listed(missing)}`]),
    ...(extra.length === 0 ? [] : [`it does not wait for ${listed(extra)}`]),
  ];
  throw failedPrecondition(
    'GIVE_UP_DIFFERS',
    'Racks are given up by name, and exactly those that the authority waits for; ' +
      `${problems.join('; ')}.`,
  );
}

function listed(racks: readonly RackName[]): string {
  const more = racks.length > racksNamedMax ? ` and ${racks.length - racksNamedMax} more` : '';
  return racks.slice(0, racksNamedMax).join(', ') + more;
}

function checkCall(reason: string, requestId: RequestId, authority?: string): void {
  const violations = new Violations();
  if (reason === '') violations.add('reason', 'is missing; one line that says why');
  checkReason('reason', reason, violations);
  checkRequestId(requestId, violations);
  if (authority !== undefined && !/^[0-9a-f]{8,64}$/.test(authority)) {
    const wanted = `${prefixCharsMin} to 64 lower-case hex digits of the authority's SHA-256`;
    violations.add('authority', `must have ${wanted}`);
  }
  violations.throwIfAny();
}

function noted(record: wire.TrustRecord, id: string | undefined): wire.TrustRecord {
  record.generation += 1n;
  record.requestIds = withApplied(record.requestIds, id);
  return record;
}

function short(sha256: string): string {
  return sha256.length <= 16 ? sha256 : `${sha256.slice(0, 16)}…`;
}
