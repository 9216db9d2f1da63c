/**
 * AccessService: operators' tokens, and who the caller is.
 *
 * Invariants:
 * 1. The secret of a token is returned once, when the token is created, and is kept nowhere else.
 * 2. Some unscoped caller that may create tokens always remains: even concurrent deletions do not
 *    remove the last one. Whether its holder still has the secret is not known.
 */
import { clone, create, fromBinary } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  AccessService,
  type ApiFailure,
  actorName,
  alreadyExists,
  type BoundService,
  bind,
  type CreateTokenRequest,
  type DeleteTokenRequest,
  type EndSessionsRequest,
  failedPrecondition,
  isPerson,
  type ListTokensRequest,
  notFound,
  Role,
  readActor,
  type Token,
  type TokenId,
  TokenSchema,
  unavailable,
  store as wire,
} from '@rackwright/messages';
import { randomId } from '@rackwright/platform';
import { type StoreRevision, storeKey } from '@rackwright/store';
import { pageSizeOf } from '../../call/paging.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { checkEtag, formatPageToken, formatPosition, parsePageToken } from '../../call/position.ts';
import { checkReason } from '../../call/texts.ts';
import { quote, Violations } from '../../call/violations.ts';
import {
  appliedId,
  hasApplied,
  orUnavailable,
  readRecord,
  untilWritten,
  withApplied,
  writeRecord,
} from '../../records/index.ts';
import { controlPlaneVersion } from '../../version.ts';
import {
  endSignInsOf,
  firstTokenId,
  isTokenEnded,
  isUnscoped,
  makeToken,
  methodsFor,
  revokedFirstKey,
  roleText,
  tokenKey,
} from '../index.ts';
import { checkToken, requireTokenName } from './token-spec.ts';

const schema = wire.TokenRecordSchema;
/** The form of actors from tokens and from the identity provider. */
const actorNameShape = /^[^\s\p{Cc}]{1,128}$/u;
/** The most tokens that are kept at once, including those that have ended. */
const tokensMax = 2_000;

interface StoredToken {
  readonly record: wire.TokenRecord;
  readonly revision: StoreRevision;
}

/** The service over these dependencies. */
export function createAccessService(deps: RpcDependencies): BoundService {
  return bind(AccessService, {
    createToken: (request) => createToken(deps, request),
    getToken: async ({ name }) => {
      const { record, revision } = await existing(deps, requireTokenName(name));
      return present(deps, record, revision);
    },
    listTokens: (request) => listTokens(deps, request),
    deleteToken: (request) => deleteToken(deps, request),
    endSessions: (request) => endSessions(deps, request),
    whoAmI: () => {
      const { actor, role, scope, token, issuer, expireMs } = deps.principal;
      return {
        actor,
        role,
        scope: { racks: [...scope.racks], pools: [...scope.pools] },
        token,
        issuer,
        methods: methodsFor(deps.principal),
        ...(expireMs === undefined ? {} : { expireTime: timestampFromMs(expireMs) }),
        serverVersion: controlPlaneVersion,
      };
    },
  });
}

/** The first token has a record only after its first use. */
async function existing(deps: RpcDependencies, tokenId: TokenId): Promise<StoredToken> {
  const kept = await readRecord(deps.store, schema, tokenKey(tokenId));
  if (kept === undefined && tokenId === firstTokenId) return { record: firstRecord(), revision: 0 };
  if (kept === undefined || kept.record.revokeTime !== undefined) {
    throw notFound(`tokens/${tokenId}`);
  }
  return kept;
}

function firstRecord(): wire.TokenRecord {
  return create(schema, { token: { name: `tokens/${firstTokenId}`, role: Role.ADMIN } });
}

function present(deps: RpcDependencies, record: wire.TokenRecord, revision: StoreRevision): Token {
  const token = clone(TokenSchema, record.token ?? create(TokenSchema));
  token.etag = formatPosition(deps.store, revision);
  token.warning = warningOf(deps, record);
  return token;
}

function warningOf({ clock }: RpcDependencies, record: wire.TokenRecord): string {
  if (record.token?.name === `tokens/${firstTokenId}`) {
    return 'never expires; make tokens for people and programs, keep its file away, then delete it';
  }
  return isTokenEnded(record, clock.nowMs()) ? 'has expired' : '';
}

async function createToken(deps: RpcDependencies, request: CreateTokenRequest) {
  const { validateOnly = false, requestId } = request;
  const wanted = request.token ?? create(TokenSchema);
  const tokenId = await checkToken(deps, request, wanted);
  const name = `tokens/${tokenId}`;
  const before = await readRecord(deps.store, schema, tokenKey(tokenId));
  const applied = appliedId('createToken', requestId);
  if (before !== undefined && before.record.revokeTime === undefined) {
    throw alreadyExists(
      hasApplied(before.record, applied)
        ? `${name} was made by this very request; its secret was told once. Delete it and make ` +
            'another if the answer was lost.'
        : `${name} exists already.`,
    );
  }
  await refuseAboveLimit(deps);
  const made = makeToken(tokenId, deps.random);
  const record = create(schema, {
    token: {
      name,
      uid: randomId(deps.random),
      createTime: timestampFromMs(deps.clock.nowMs()),
      ...(wanted.expireTime === undefined ? {} : { expireTime: wanted.expireTime }),
      role: wanted.role,
      scope: { racks: wanted.scope?.racks ?? [], pools: wanted.scope?.pools ?? [] },
      createdBy: deps.actor,
      purpose: wanted.purpose,
    },
    secretSha256: made.secretSha256,
    requestIds: withApplied([], applied),
  });
  if (validateOnly) return { token: present(deps, record, 0), secret: '' };
  const expected = before?.revision ?? 'absent';
  const written = await writeRecord(deps, schema, tokenKey(tokenId), record, expected);
  if (written.kind === 'conflict') throw alreadyExists(`${name} was made meanwhile.`);
  auditCreation(deps, record);
  return { token: present(deps, record, written.revision), secret: made.text };
}

function auditCreation(deps: RpcDependencies, { token }: wire.TokenRecord): void {
  const name = token?.name ?? '';
  const role = roleText(token?.role ?? Role.UNSPECIFIED);
  deps.log.info({ token: name, role, actor: deps.actor }, 'token created');
}

function scopeOf(token: Token | undefined) {
  return { racks: token?.scope?.racks ?? [], pools: token?.scope?.pools ?? [] };
}

async function refuseAboveLimit({ store }: RpcDependencies): Promise<void> {
  const { entries } = await orUnavailable(store.list('tokens'));
  if (entries.length < tokensMax) return;
  const message =
    `There are ${entries.length} tokens; at most ${tokensMax} are kept, those that ended ` +
    'in the last 30 days included. Wait, or use fewer.';
  throw failedPrecondition('TOO_MANY_TOKENS', message);
}

/** The position of a token in pages; the first token may have no record. */
function resourceName({ token }: wire.TokenRecord): string {
  return storeKey(...(token?.name ?? 'tokens/0').split('/'));
}

/** Sorted by name; revoked tokens are not listed. */
async function listTokens(deps: RpcDependencies, request: ListTokensRequest) {
  const size = pageSizeOf(request.pageSize);
  const after = parsePageToken(deps.store, 'tokens', request.pageToken);
  const rest = (await allTokens(deps))
    .filter(({ record }) => record.revokeTime === undefined)
    .filter(({ record }) => resourceName(record) > after);
  const page = rest.slice(0, size);
  const last = page.at(-1)?.record;
  return {
    tokens: page.map(({ record, revision }) => present(deps, record, revision)),
    nextPageToken:
      last === undefined || page.length === rest.length
        ? ''
        : formatPageToken(deps.store, 'tokens', resourceName(last)),
  };
}

async function allTokens({ store }: RpcDependencies): Promise<StoredToken[]> {
  const { entries } = await orUnavailable(store.list('tokens'));
  const kept = entries.map(({ value, revision }) => ({
    record: fromBinary(schema, value),
    revision,
  }));
  const hasFirst = entries.some(({ key }) => key === tokenKey(firstTokenId));
  return [...(hasFirst ? [] : [{ record: firstRecord(), revision: 0 }]), ...kept].toSorted(
    (a, b) => ((a.record.token?.name ?? '') < (b.record.token?.name ?? '') ? -1 : 1),
  );
}

async function deleteToken(
  deps: RpcDependencies,
  { name, etag, reason }: DeleteTokenRequest,
): Promise<Token> {
  const violations = new Violations();
  checkReason('reason', reason, violations);
  violations.throwIfAny();
  const tokenId = requireTokenName(name);
  return untilWritten(name, async () => {
    const { record, revision } = await existing(deps, tokenId);
    checkEtag(deps.store, etag, revision, name);
    if (isFullAdmin(record)) await announceDeletion(deps, name, record);
    const next = clone(schema, record);
    next.revokeTime = timestampFromMs(deps.clock.nowMs());
    next.revokedBy = deps.actor;
    if (tokenId === firstTokenId) await revokeFirst(deps, next);
    const expected = revision === 0 ? 'absent' : revision;
    const written = await writeRecord(deps, schema, tokenKey(tokenId), next, expected);
    if (written.kind === 'conflict') return undefined;
    deps.log.info({ token: name, actor: deps.actor, reason }, 'token revoked');
    return present(deps, next, written.revision);
  });
}

async function endSessions(deps: RpcDependencies, { actor, reason }: EndSessionsRequest) {
  const violations = new Violations();
  const wantedActor = readActor(actor);
  if (!isPerson(wantedActor) || !actorNameShape.test(actorName(wantedActor))) {
    const right = 'it must name somebody as `audit list` does, as "oidc:ann" or "token:ci"';
    violations.add('actor', actor === '' ? `is missing; ${right}` : `is ${quote(actor)}; ${right}`);
  }
  checkReason('reason', reason, violations);
  violations.throwIfAny();
  const ended = await endSignInsOf(deps.store, wantedActor);
  deps.log.info({ of: actor, ended, actor: deps.actor, reason }, 'sign-ins of browsers ended');
  return { ended };
}

/** Recorded under the hash of the token's text, and kept as long as the store exists. */
async function revokeFirst(deps: RpcDependencies, record: wire.TokenRecord): Promise<void> {
  const { adminTokenSha256 } = deps.identity;
  record.secretSha256 = Buffer.from(adminTokenSha256, 'hex');
  // On a conflict, another writer has recorded the same revocation.
  await writeRecord(deps, schema, revokedFirstKey(adminTokenSha256), record, 'absent');
}

/**
 * Keeps invariant 2 under concurrent deletions. Each deletion first announces itself in one record
 * that all of them change, and counts the announcements of the others.
 */
async function announceDeletion(
  deps: RpcDependencies,
  name: string,
  { secretSha256 }: wire.TokenRecord,
): Promise<void> {
  const deletionsSchema = wire.TokenDeletionsRecordSchema;
  for (let round = 0; round < announceRoundsMax; round += 1) {
    const nowMs = deps.clock.nowMs();
    const kept = await readRecord(deps.store, deletionsSchema, deletionsKey);
    const tokens = await allTokens(deps);
    const others = (kept?.record.deletions ?? []).filter(
      (each) => each.token !== name && endsMs(each) > nowMs && !isDone(each, tokens),
    );
    refuseLast(deps, name, others, tokens);
    if (others.length >= announcedMax) throw busy(Math.min(...others.map(endsMs)) - nowMs);
    const time = timestampFromMs(nowMs);
    const own = create(wire.TokenDeletionRecordSchema, { token: name, secretSha256, time });
    const record = create(deletionsSchema, { deletions: [...others, own] });
    const expected = kept?.revision ?? 'absent';
    const written = await writeRecord(deps, deletionsSchema, deletionsKey, record, expected);
    if (written.kind === 'ok') return;
  }
  throw busy(1_000);
}

const deletionsKey = storeKey('access', 'deletions');
/** For this time an announced deletion that has not finished counts as done. */
const announcedMs = 600_000;
const announcedMax = 256;
/** The most retries after conflicts; each conflict means that another announcement succeeded. */
const announceRoundsMax = 64;

function endsMs({ time }: wire.TokenDeletionRecord): number {
  return time === undefined ? 0 : timestampMs(time) + announcedMs;
}

function busy(retryAfterMs: number): ApiFailure {
  const message = 'Too many tokens of administrators are being deleted at once; try again.';
  return unavailable('DELETIONS_BUSY', message, retryAfterMs);
}

function isFullAdmin({ token }: wire.TokenRecord): boolean {
  return token?.role === Role.ADMIN && isUnscoped(scopeOf(token));
}

/** Compared by secret: the first token may have had no record when its deletion began. */
function isOf({ token, secretSha256 }: wire.TokenRecord, deletion: wire.TokenDeletionRecord) {
  const isSame = Buffer.from(deletion.secretSha256).equals(secretSha256);
  return deletion.token === token?.name && (isSame || deletion.secretSha256.length === 0);
}

/** Whether the deletion has finished: the token's own record shows it. */
function isDone(deletion: wire.TokenDeletionRecord, tokens: readonly StoredToken[]): boolean {
  return tokens.some(({ record }) => record.revokeTime !== undefined && isOf(record, deletion));
}

function refuseLast(
  deps: RpcDependencies,
  name: string,
  deletions: readonly wire.TokenDeletionRecord[],
  tokens: readonly StoredToken[],
): void {
  if (deps.otherAdmins === true) return;
  const nowMs = deps.clock.nowMs();
  const others = tokens.filter(
    ({ record }) =>
      record.token?.name !== name && !isTokenEnded(record, nowMs) && isFullAdmin(record),
  );
  const going = others.map(({ record }) => deletions.find((deletion) => isOf(record, deletion)));
  if (going.includes(undefined)) return;
  const [first] = going;
  const why =
    first === undefined
      ? `${name} is the last token with which tokens can be made.`
      : `${name} would be the last token with which tokens can be made: the deletion of ` +
        `${first.token} has begun. If that does not come to its end, it counts until ` +
        `${new Date(endsMs(first)).toISOString()}.`;
  throw failedPrecondition(
    'LAST_ADMIN',
    `${why} Make another first: rackwright token create NAME --role admin --expires 90d.`,
  );
}
