/** Changes of a pool: each call changes its record once, and reconciles it. */
import { clone, create } from '@bufbuild/protobuf';
import { type FieldMask, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  AbortSchema,
  type ApprovePoolRequest,
  alreadyExists,
  type CreatePoolRequest,
  type DeletePoolRequest,
  failedPrecondition,
  invalidArgument,
  notFound,
  type PlanRolloutRequest,
  type Pool,
  type PoolId,
  PoolSchema,
  PoolSpecSchema,
  type RequestId,
  RolloutPolicySchema,
  type UpdatePoolRequest,
  store as wire,
} from '@rackwright/messages';
import { randomId } from '@rackwright/platform';
import { applyMask, maskPaths } from '../../call/field-mask.ts';
import { idProblem, nameProblem, requireName } from '../../call/names.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { checkEtag } from '../../call/position.ts';
import { checkLabels, checkReason, checkRequestId } from '../../call/texts.ts';
import { quote, Violations } from '../../call/violations.ts';
import { readFleet } from '../../host/index.ts';
import {
  appliedId,
  hasApplied,
  orUnavailable,
  readRecord,
  untilWritten,
  withApplied,
  writeRecord,
} from '../../records/index.ts';
import { approve, poolKey } from '../index.ts';
import { checkGate, checkPoolSpec } from './pool-spec.ts';
import { deletedPoolOfRequest, existingPool, type KeptPool, presentPool } from './pool-view.ts';

const schema = wire.PoolRecordSchema;
/** The most pools. */
const poolsMax = 200;
const createMethod = 'createPool';

const updatablePaths = [
  'labels',
  'spec',
  'spec.hosts',
  'spec.hosts.names',
  'spec.hosts.rack',
  'spec.hosts.labels',
  'spec.size',
  'spec.image',
  'spec.rollout',
  'spec.rollout.waves',
  'spec.rollout.max_unavailable',
  'spec.rollout.max_unavailable_per_rack',
  'spec.rollout.paused',
  'spec.rollout.failure_threshold',
  'spec.rollout.soak',
  'spec.rollout.windows',
  'spec.rollout.rollback',
  'spec.rollout.gate',
  'spec.rollout.gate.approval',
  'spec.rollout.gate.webhook_url',
  'spec.rollout.gate.deadline',
  'spec.rollout.health_timeout',
  'spec.pins',
  'spec.poll_interval',
  'spec.history_limit',
  'spec.deploy',
  'spec.deploy.first_boot',
  'spec.deploy.first_boot.format',
  'spec.deploy.first_boot.user_data',
  'spec.deploy.first_boot.meta_data',
  'spec.deploy.first_boot.network_config',
  'spec.deploy.proof',
  'spec.deploy.proof_timeout',
  'spec.deploy.grow',
  'spec.deploy.netboot',
  'spec.deploy.keep_disks',
] as const;

/** Handles one CreatePool. */
export async function createPool(deps: RpcDependencies, request: CreatePoolRequest): Promise<Pool> {
  const { requestId, validateOnly } = request;
  const violations = new Violations();
  violations.addIf('pool_id', idProblem(request.poolId));
  checkRequestId(requestId, violations);
  const pool = newPool(deps, `pools/${request.poolId}`, request.pool);
  checkPool(pool, violations);
  violations.throwIfAny();
  const poolId = requireName('pools', pool.name, 'pool_id');
  const key = poolKey(poolId);
  const id = appliedId(createMethod, requestId);
  const before = await readRecord(deps.store, schema, key);
  if (before !== undefined) return samePool(deps, before, id);
  const gone = id === undefined ? undefined : await deletedPoolOfRequest(deps, poolId, id);
  if (gone !== undefined) return presentPool(deps, gone);
  checkGate('pool.spec', pool, undefined, await policyOf(deps), violations);
  violations.throwIfAny();
  const { entries } = await orUnavailable(deps.store.list('pools'));
  if (entries.length >= poolsMax) {
    const message = `There are ${entries.length} pools; at most ${poolsMax} are kept.`;
    throw failedPrecondition('TOO_MANY_POOLS', message);
  }
  const record = create(schema, { pool, createdBy: deps.actor, requestIds: withApplied([], id) });
  if (validateOnly === true) return presentPool(deps, { record, revision: 0 });
  const written = await writeRecord(deps, schema, key, record, 'absent');
  if (written.kind === 'conflict') return samePool(deps, await existingPool(deps, poolId), id);
  deps.log.info({ pool: pool.name, actor: deps.actor }, 'pool created');
  return reconciledPool(deps, poolId);
}

/** The pool that an earlier try of the same request made; any other one is a conflict. */
function samePool(deps: RpcDependencies, kept: KeptPool, id: string | undefined): Promise<Pool> {
  if (hasApplied(kept.record, id)) return presentPool(deps, kept);
  throw inTheWay(kept);
}

function inTheWay({ record: { pool, deletion } }: KeptPool): Error {
  const going = deletion === undefined ? '' : ', and is being deleted';
  return alreadyExists(`${pool?.name ?? ''} exists already${going}.`);
}

/** Handles one UpdatePool. */
export async function updatePool(deps: RpcDependencies, request: UpdatePoolRequest): Promise<Pool> {
  const { pool: wanted, updateMask, validateOnly, requestId } = request;
  if (wanted === undefined) {
    throw invalidArgument([{ field: 'pool', description: 'is missing; give its name and fields' }]);
  }
  const poolId = requireName('pools', wanted.name, 'pool.name');
  const requestKey = { method: 'updatePool', requestId, etag: wanted.etag };
  const edit = await editorOf(deps, wanted, updateMask);
  return change(deps, poolId, requestKey, { validateOnly: validateOnly === true }, edit);
}

/** The function that changes a record as requested. It throws the violations. */
async function editorOf(deps: RpcDependencies, wanted: Pool, updateMask: FieldMask | undefined) {
  const policy = await policyOf(deps);
  return (record: wire.PoolRecord): void => {
    const violations = new Violations();
    const paths = maskPaths(PoolSchema, updateMask, wanted, updatablePaths, violations);
    const { pool } = record;
    if (pool === undefined) return;
    const before = pool.spec === undefined ? undefined : clone(PoolSpecSchema, pool.spec);
    applyMask(PoolSchema, pool, wanted, paths);
    pool.spec ??= create(PoolSpecSchema);
    checkPool(pool, violations);
    checkGate('pool.spec', pool, before, policy, violations);
    violations.throwIfAny();
  };
}

function newPool({ random, clock }: RpcDependencies, name: string, spec: Pool | undefined) {
  return create(PoolSchema, {
    name,
    uid: randomId(random),
    createTime: timestampFromMs(clock.nowMs()),
    labels: { ...spec?.labels },
    spec: clone(PoolSpecSchema, spec?.spec ?? create(PoolSpecSchema)),
  });
}

/** The resulting pool, checked as for a write; nothing is written. */
export async function draftPool(
  deps: RpcDependencies,
  { name, pool: wanted = create(PoolSchema), updateMask }: PlanRolloutRequest,
): Promise<{ readonly record: wire.PoolRecord; readonly before: wire.PoolRecord | undefined }> {
  if (name !== '') {
    const { record: before } = await existingPool(deps, requireName('pools', name));
    const record = clone(schema, before);
    (await editorOf(deps, wanted, updateMask))(record);
    return { record, before };
  }
  const poolId = requireName('pools', wanted.name, 'pool.name');
  const kept = await readRecord(deps.store, schema, poolKey(poolId));
  if (kept !== undefined) throw inTheWay(kept);
  const violations = new Violations();
  const pool = newPool(deps, wanted.name, wanted);
  checkPool(pool, violations);
  checkGate('pool.spec', pool, undefined, await policyOf(deps), violations);
  violations.throwIfAny();
  return { record: create(schema, { pool }), before: undefined };
}

/** The fleet's present policy for webhooks. */
async function policyOf({ store }: RpcDependencies) {
  return (await readFleet(store))?.fleet?.spec?.templates;
}

/** Handles one PausePool or ResumePool. */
export function setPaused(
  deps: RpcDependencies,
  { name, requestId }: { readonly name: string; readonly requestId: RequestId },
  { paused }: { readonly paused: boolean },
): Promise<Pool> {
  const method = paused ? 'pausePool' : 'resumePool';
  const poolId = requireName('pools', name);
  return change(
    deps,
    poolId,
    { method, requestId, etag: '' },
    { validateOnly: false },
    ({ pool }) => {
      if (pool?.spec === undefined) return;
      pool.spec.rollout ??= create(RolloutPolicySchema);
      pool.spec.rollout.paused = paused;
    },
  );
}

/** Handles one ApprovePool: approves all named hosts, or none. */
export async function approvePool(
  deps: RpcDependencies,
  { name, hosts, digest, requestId }: ApprovePoolRequest,
): Promise<Pool> {
  const poolId = requireName('pools', name);
  const violations = new Violations();
  for (const [index, host] of hosts.entries()) {
    violations.addIf(`hosts[${index}]`, nameProblem('hosts', host));
  }
  if (!/^sha256:[0-9a-f]{64}$/.test(digest)) {
    violations.add('digest', `is ${quote(digest)}; give the whole "sha256:…" that is approved`);
  }
  violations.throwIfAny();
  const requestKey = { method: 'approvePool', requestId, etag: '' };
  return change(deps, poolId, requestKey, { validateOnly: false }, (record) => {
    const refused = approve(record, { hosts, digest, by: deps.actor });
    if (refused === undefined) return;
    throw failedPrecondition('NOTHING_TO_APPROVE', `${name}: ${refused}.`, { resource: name });
  });
}

/** Handles one DeletePool: records the intent, which the loop carries out. */
export async function deletePool(
  deps: RpcDependencies,
  { name, etag, reason, requestId }: DeletePoolRequest,
): Promise<Pool> {
  const violations = new Violations();
  checkReason('reason', reason, violations);
  violations.throwIfAny();
  const poolId = requireName('pools', name);
  const requestKey = { method: 'deletePool', requestId, etag };
  return change(deps, poolId, requestKey, { validateOnly: false }, (record) => {
    const at = timestampFromMs(deps.clock.nowMs());
    record.deletion ??= create(AbortSchema, { by: deps.actor, reason, at });
  });
}

interface ChangeRequest {
  readonly method: string;
  readonly requestId: RequestId;
  readonly etag: string;
}

/** Changes a copy of the record until the write succeeds, once for each request. */
async function change(
  deps: RpcDependencies,
  poolId: PoolId,
  { method, requestId, etag }: ChangeRequest,
  { validateOnly }: { readonly validateOnly: boolean },
  edit: (record: wire.PoolRecord) => void,
): Promise<Pool> {
  const violations = new Violations();
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  const id = appliedId(method, requestId);
  const name = `pools/${poolId}`;
  return untilWritten(name, async () => {
    const kept = await readRecord(deps.store, schema, poolKey(poolId));
    if (kept === undefined) {
      const gone = id === undefined ? undefined : await deletedPoolOfRequest(deps, poolId, id);
      if (gone === undefined) throw notFound(name);
      return presentPool(deps, gone);
    }
    if (hasApplied(kept.record, id)) return presentPool(deps, kept);
    checkEtag(deps.store, etag, kept.revision, name);
    const next = clone(schema, kept.record);
    edit(next);
    next.requestIds = withApplied(next.requestIds, id, isCreation);
    if (next.pool !== undefined) next.pool.updateTime = timestampFromMs(deps.clock.nowMs());
    if (validateOnly) return presentPool(deps, { record: next, revision: kept.revision });
    const written = await writeRecord(deps, schema, poolKey(poolId), next, kept.revision);
    if (written.kind === 'conflict') return undefined;
    deps.log.info({ pool: name, actor: deps.actor, change: method }, 'pool changed');
    return reconciledPool(deps, poolId, { record: next, revision: written.revision });
  });
}

/** The pool after a reconcile; the last version of one that was deleted by it. */
async function reconciledPool(
  deps: RpcDependencies,
  poolId: PoolId,
  last?: KeptPool,
): Promise<Pool> {
  const after = (await deps.pools.reconcile(poolId)) ?? last;
  if (after === undefined) throw notFound(`pools/${poolId}`);
  return presentPool(deps, after);
}

function checkPool({ labels, spec }: Pool, violations: Violations): void {
  checkLabels('pool.labels', labels, violations);
  checkPoolSpec('pool.spec', spec ?? create(PoolSpecSchema), violations);
}

/** The id of the creation is kept in addition to the newest ones. */
function isCreation(id: string): boolean {
  return id.startsWith(`${createMethod}:`);
}
