/** FleetService: settings for every rack. Its record exists from the first write on. */
import { clone, create, equals } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type BoundService,
  bind,
  type ErasureReport,
  type Fleet,
  FleetSchema,
  FleetService,
  FleetSpecSchema,
  FleetStatusSchema,
  FreezeSchema,
  failedPrecondition,
  invalidArgument,
  type RequestId,
  type UpdateFleetRequest,
  store as wire,
} from '@rackwright/messages';
import { internalEntryProblem } from '@rackwright/platform';
import type { StoreRevision } from '@rackwright/store';
import { applyMask, maskPaths } from '../call/field-mask.ts';
import type { RpcDependencies } from '../call/ports.ts';
import { checkEtag, formatPosition } from '../call/position.ts';
import { checkReason, checkRequestId } from '../call/texts.ts';
import { Violations } from '../call/violations.ts';
import { fleetKey } from '../host/index.ts';
import { checkOverrides, checkVerification } from '../host/spec/host-spec.ts';
import {
  appliedId,
  hasApplied,
  readRecord,
  untilWritten,
  withApplied,
  writeRecord,
} from '../records/index.ts';
import { ownStepProblems, policyProblems } from '../steps/index.ts';
import { checkBudget } from './rack-spec.ts';
import { checkRegistries } from './registries-spec.ts';

const fleetName = 'fleet';
const updatablePaths = [
  'spec',
  'spec.priority_overrides',
  'spec.pools',
  'spec.wipe_budget',
  'spec.wipe_budget.hosts',
  'spec.wipe_budget.seconds',
  'spec.templates',
  'spec.templates.image_repositories',
  'spec.templates.plain_http_registries',
  'spec.templates.webhook_urls',
  'spec.templates.registry_credentials',
  'spec.templates.credentials',
  'spec.templates.registry_token_services',
  'spec.registries',
  'spec.internal_addresses',
  'spec.own_clean_steps',
  'spec.verification',
  'spec.erasure_report',
  'spec.erasure_report.organisation',
  'spec.erasure_report.customer',
  'spec.erasure_report.technician',
];
/** Pools with priorities of their own. */
const poolsMax = 100;
const poolCharsMax = 63;

interface FleetCall {
  readonly reason: string;
  readonly requestId: RequestId;
}

/** The service over these dependencies. */
export function createFleetService(deps: RpcDependencies): BoundService {
  return bind(FleetService, {
    getFleet: async () => {
      const { record, revision } = await kept(deps);
      return present(deps, record, revision);
    },
    updateFleet: (request) => updateFleet(deps, request),
    freezeFleet: (call) =>
      brake(deps, call, 'freeze', (fleet) => {
        if (call.reason === '') throw reasonMissing();
        fleet.status ??= create(FleetStatusSchema);
        fleet.status.freeze ??= create(FreezeSchema, {
          by: deps.actor,
          reason: call.reason,
          at: timestampFromMs(deps.clock.nowMs()),
        });
      }),
    thawFleet: (call) =>
      brake(deps, call, 'thaw', ({ status }) => {
        if (status?.freeze === undefined) {
          throw failedPrecondition('NOT_FROZEN', `The fleet is not frozen; ${waitsForOther}`);
        }
        delete status.freeze;
      }),
  });
}

/** The alternative to a thaw. */
const waitsForOther =
  'what a host waits for is told by `rackwright host explain HOST`, and a frozen rack is thawed ' +
  'by `rackwright rack thaw RACK --reason WHY`.';

/** A freeze needs a reason, which is shown wherever it blocks work. */
export function reasonMissing(): Error {
  return invalidArgument([{ field: 'reason', description: 'is missing; say why it is frozen' }]);
}

async function kept(
  deps: RpcDependencies,
): Promise<{ record: wire.FleetRecord; revision: StoreRevision }> {
  const found = await readRecord(deps.store, wire.FleetRecordSchema, fleetKey);
  return found ?? { record: create(wire.FleetRecordSchema), revision: 0 };
}

function present(deps: RpcDependencies, record: wire.FleetRecord, revision: StoreRevision): Fleet {
  const fleet = record.fleet === undefined ? create(FleetSchema) : clone(FleetSchema, record.fleet);
  fleet.name = fleetName;
  fleet.etag = formatPosition(deps.store, revision);
  fleet.spec ??= create(FleetSpecSchema);
  fleet.status ??= create(FleetStatusSchema);
  return fleet;
}

async function updateFleet(deps: RpcDependencies, request: UpdateFleetRequest): Promise<Fleet> {
  const { fleet: wanted, updateMask, validateOnly } = request;
  if (wanted === undefined) {
    throw invalidArgument([{ field: 'fleet', description: 'is missing; give its fields' }]);
  }
  return change(deps, 'update', (record, revision) => {
    checkEtag(deps.store, wanted.etag, revision, fleetName);
    const violations = new Violations();
    const paths = maskPaths(FleetSchema, updateMask, wanted, updatablePaths, violations);
    const fleet = record.fleet ?? create(FleetSchema, { name: fleetName });
    record.fleet = fleet;
    applyMask(FleetSchema, fleet, wanted, paths);
    checkFleet(fleet, violations);
    violations.throwIfAny();
    return validateOnly === true ? 'only look' : 'write';
  });
}

function checkFleet({ spec }: Fleet, violations: Violations): void {
  if (spec === undefined) return;
  checkOverrides('fleet.spec.priority_overrides', spec.priorityOverrides, violations);
  if (spec.wipeBudget !== undefined) {
    checkBudget('fleet.spec.wipe_budget', spec.wipeBudget, violations);
  }
  for (const { field, description } of spec.templates ? policyProblems(spec.templates) : []) {
    violations.add(`fleet.spec.templates.${field}`, description);
  }
  for (const { field, description } of ownStepProblems(spec.ownCleanSteps, spec.templates)) {
    violations.add(`fleet.spec.own_clean_steps${field}`, description);
  }
  checkRegistries('fleet.spec.registries', spec.registries, violations);
  checkInternal('fleet.spec.internal_addresses', spec.internalAddresses, violations);
  checkVerification('fleet.spec.verification', spec.verification, violations);
  checkReport('fleet.spec.erasure_report', spec.erasureReport, violations);
  if (spec.pools.length > poolsMax) {
    violations.add('fleet.spec.pools', `has ${spec.pools.length}; at most ${poolsMax} are kept`);
  }
  const seen = new Set<string>();
  spec.pools.slice(0, poolsMax).forEach(({ pool, priorityOverrides }, index) => {
    const path = `fleet.spec.pools[${index}]`;
    if (pool === '' || pool.length > poolCharsMax) {
      violations.add(`${path}.pool`, `must have 1 to ${poolCharsMax} characters`);
    }
    if (seen.has(pool)) violations.add(`${path}.pool`, 'names a pool that is named before');
    seen.add(pool);
    checkOverrides(`${path}.priority_overrides`, priorityOverrides, violations);
  });
}

const internalAddressesMax = 32;

function checkInternal(path: string, entries: readonly string[], violations: Violations): void {
  if (entries.length > internalAddressesMax) {
    violations.add(path, `has ${entries.length}; at most ${internalAddressesMax} are kept`);
    return;
  }
  entries.forEach((entry, index) => {
    violations.addIf(`${path}[${index}]`, internalEntryProblem(entry));
  });
}

/** The longest name in a certificate, in characters. */
const reportCharsMax = 256;

function checkReport(
  path: string,
  report: ErasureReport | undefined,
  violations: Violations,
): void {
  const { organisation = '', customer = '', technician = '' } = report ?? {};
  for (const [name, text] of Object.entries({ organisation, customer, technician })) {
    if (text.length <= reportCharsMax && text.isWellFormed()) continue;
    violations.add(`${path}.${name}`, `has ${text.length} characters; at most ${reportCharsMax}`);
  }
}

/** A repeated request id gets its response without a change. */
function brake(
  deps: RpcDependencies,
  { reason, requestId }: FleetCall,
  method: string,
  apply: (fleet: Fleet) => void,
): Promise<Fleet> {
  const violations = new Violations();
  checkReason('reason', reason, violations);
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  const id = appliedId(method, requestId);
  return change(deps, method, (record) => {
    if (hasApplied(record, id)) return 'only look';
    const fleet = record.fleet ?? create(FleetSchema, { name: fleetName });
    record.fleet = fleet;
    apply(fleet);
    record.requestIds = withApplied(record.requestIds, id);
    return 'write';
  });
}

/** Reads, changes and writes, and retries when another writer was first. */
async function change(
  deps: RpcDependencies,
  method: string,
  apply: (record: wire.FleetRecord, revision: StoreRevision) => 'write' | 'only look',
): Promise<Fleet> {
  return untilWritten(fleetName, async () => {
    const { record, revision } = await kept(deps);
    const next = clone(wire.FleetRecordSchema, record);
    const verdict = apply(next, revision);
    if (verdict === 'only look' || isSame(record, next)) return present(deps, next, revision);
    const expected = revision === 0 ? 'absent' : revision;
    const schema = wire.FleetRecordSchema;
    const written = await writeRecord(deps, schema, fleetKey, next, expected);
    if (written.kind === 'conflict') return undefined;
    deps.log.info({ actor: deps.actor }, `fleet: ${method}`);
    return present(deps, next, written.revision);
  });
}

/** An unchanged record is not written only to store the call's id. */
function isSame(before: wire.FleetRecord, after: wire.FleetRecord): boolean {
  const { requestIds } = before;
  return equals(wire.FleetRecordSchema, before, { ...after, requestIds });
}
