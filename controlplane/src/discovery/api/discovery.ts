/**
 * DiscoveryService: machines that netbooted and are not hosts, and the manifest of expected hosts.
 */
import { clone, create, equals, fromBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type AcceptDiscoveredMachineRequest,
  alreadyExists,
  type BoundService,
  bind,
  type CreateExpectedHostRequest,
  type DiscoveredMachine,
  DiscoveryService,
  type ExpectedHost,
  ExpectedHostSchema,
  failedPrecondition,
  type Host,
  type HostSpec,
  invalidArgument,
  notFound,
  type RackName,
  type RequestId,
  type UpdateExpectedHostRequest,
  store as wire,
} from '@rackwright/messages';
import { randomId } from '@rackwright/platform';
import { type Entry, type StoreRevision, storeKey } from '@rackwright/store';
import { applyMask, maskPaths } from '../../call/field-mask.ts';
import { readHost } from '../../call/host-view.ts';
import { idProblem, nameProblem, requireName } from '../../call/names.ts';
import { entriesOf, listPage, pageOf } from '../../call/paging.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { checkEtag, etagMismatch, formatPosition, revisionOfEtag } from '../../call/position.ts';
import { checkRackFilter } from '../../call/rack-filter.ts';
import { checkRequestId } from '../../call/texts.ts';
import { Violations } from '../../call/violations.ts';
import { checkReferences } from '../../host/api/create-host.ts';
import { checkDestination, checkMayPoint, type Destination } from '../../host/api/destination.ts';
import { checkExpectedHost } from '../../rack/discovery-spec.ts';
import {
  appliedId,
  deleteRecord,
  hasApplied,
  idOfKey,
  readRecord,
  untilWritten,
  withApplied,
  writeRecord,
} from '../../records/index.ts';
import {
  keysOfLine,
  keysOfMachine,
  lineKey,
  listedMachines,
  rackKey,
  traitsOfMachine,
} from '../kept.ts';
import { refuseRival } from './expected-rivals.ts';

const machines = 'discoveredMachines';
const lines = 'expectedHosts';

/** The service over these dependencies. */
export function createDiscoveryService(deps: RpcDependencies): BoundService {
  const { store } = deps;
  return bind(DiscoveryService, {
    getDiscoveredMachine: async ({ name }) => {
      const { machine, revision } = await existingMachine(deps, name);
      return presentMachine(deps, machine, revision);
    },
    listDiscoveredMachines: async (request) => {
      const { rack } = request;
      await checkRackFilter(store, rack);
      const read = ({ value, revision }: Entry): DiscoveredMachine | undefined => {
        const { machine } = fromBinary(wire.DiscoveredMachineRecordSchema, value);
        if (machine === undefined || (rack !== '' && machine.rack !== rack)) return undefined;
        return presentMachine(deps, machine, revision);
      };
      const page =
        rack === ''
          ? await listPage(store, machines, request, rack, read)
          : await pageOf(store, await machinesOf(deps, rack), request, rack, read);
      return { discoveredMachines: [...page.items], nextPageToken: page.nextPageToken };
    },
    acceptDiscoveredMachine: (request) => accept(deps, request),
    deleteDiscoveredMachine: async ({ name, etag }) => {
      const { machine, revision } = await existingMachine(deps, name);
      checkEtag(store, etag, revision, name);
      const key = storeKey(machines, requireName(machines, name));
      const gone = await deleteRecord(deps, key, revision);
      if (gone.kind === 'conflict') throw etagMismatch(name);
      deps.log.info({ machine: name, actor: deps.actor }, 'discovered machine dropped');
      deps.discovery.wake(keysOfMachine({ machine, traits: traitsOfMachine(machine) }));
      return presentMachine(deps, machine, revision);
    },
    createExpectedHost: (request) => createLine(deps, request),
    getExpectedHost: async ({ name }) => {
      const { line, revision } = await existingLine(deps, name);
      return presentLine(deps, line, revision);
    },
    listExpectedHosts: async (request) => {
      const page = await listPage(store, lines, request, '', ({ value, revision }) => {
        const { expectedHost } = fromBinary(wire.ExpectedHostRecordSchema, value);
        return expectedHost && presentLine(deps, expectedHost, revision);
      });
      return { expectedHosts: [...page.items], nextPageToken: page.nextPageToken };
    },
    updateExpectedHost: (request) => updateLine(deps, request),
    deleteExpectedHost: async ({ name, etag }) => {
      const { line, revision } = await existingLine(deps, name);
      checkEtag(store, etag, revision, name);
      const gone = await deleteRecord(deps, recordKey(name), revision);
      if (gone.kind === 'conflict') throw etagMismatch(name);
      deps.log.info({ expected: name, actor: deps.actor }, 'expected host removed');
      deps.discovery.wake(keysOfLine(line));
      return presentLine(deps, line, revision);
    },
  });
}

/** The machines of one rack after a key, at a cost independent of other racks. */
async function machinesOf({ store, fleetView }: RpcDependencies, rack: RackName) {
  const listed = await fleetView.collection(listedMachines);
  return (after: string) => {
    const ids = [...listed.idsBy(rackKey(rack), after === '' ? '' : idOfKey(after))];
    return entriesOf(
      store,
      ids.map((id) => storeKey(machines, id)),
    );
  };
}

async function existingMachine({ store }: RpcDependencies, name: string) {
  const key = storeKey(machines, requireName(machines, name));
  const kept = await readRecord(store, wire.DiscoveredMachineRecordSchema, key);
  if (kept?.record.machine === undefined) throw notFound(name);
  return { machine: kept.record.machine, revision: kept.revision };
}

function recordKey(name: string): string {
  return storeKey(lines, requireName(lines, name));
}

async function existingLine({ store }: RpcDependencies, name: string) {
  const kept = await readRecord(store, wire.ExpectedHostRecordSchema, recordKey(name));
  if (kept?.record.expectedHost === undefined) throw notFound(name);
  return { line: kept.record.expectedHost, record: kept.record, revision: kept.revision };
}

function presentMachine(
  { store }: RpcDependencies,
  machine: DiscoveredMachine,
  revision: StoreRevision,
): DiscoveredMachine {
  machine.etag = formatPosition(store, revision);
  return machine;
}

function presentLine(
  { store }: RpcDependencies,
  line: ExpectedHost,
  revision: StoreRevision,
): ExpectedHost {
  line.etag = formatPosition(store, revision);
  return line;
}

/** A repeated request returns the host that it made, though the machine is no longer listed. */
async function accept(
  deps: RpcDependencies,
  request: AcceptDiscoveredMachineRequest,
): Promise<Host> {
  const { name, hostId, host, requestId, etag, validateOnly = false } = request;
  const violations = new Violations();
  violations.addIf('name', nameProblem(machines, name));
  violations.addIf('host_id', idProblem(hostId));
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  const id = requireName(machines, name);
  const made = await readHost(deps, hostId);
  const before = appliedId('create', requestId);
  if (made !== undefined && hasApplied(made.record, before)) return made.host;
  const acceptance = {
    ...{ hostId, labels: host?.labels ?? {}, spec: host?.spec, by: 'hand' },
    ...{ requestId, actor: deps.actor, seenRevision: revisionOfEtag(deps.store, etag) },
    // Checks the spec including the machine's own report: a password may be sent to the address in
    // it.
    check: (spec: HostSpec) => checkMayPoint(deps, 'host.spec', undefined, spec),
  };
  const accepted = await deps.discovery.accept(id, acceptance, validateOnly);
  if (accepted === undefined) throw notFound(name);
  deps.log.info({ machine: name, host: accepted.name, actor: deps.actor }, 'machine accepted');
  return accepted;
}

async function createLine(
  deps: RpcDependencies,
  request: CreateExpectedHostRequest,
): Promise<ExpectedHost> {
  const { expectedHostId, expectedHost, requestId, validateOnly } = request;
  const violations = new Violations();
  violations.addIf('expected_host_id', idProblem(expectedHostId));
  checkRequestId(requestId, violations);
  const wanted = expectedHost ?? create(ExpectedHostSchema);
  const name = `${lines}/${expectedHostId}`;
  if (wanted.name !== '' && wanted.name !== name) {
    violations.add('expected_host.name', `must be "${name}" or empty`);
  }
  await checkLine(deps, wanted, violations);
  violations.throwIfAny();
  const line = create(ExpectedHostSchema, {
    name,
    uid: randomId(deps.random),
    createTime: timestampFromMs(deps.clock.nowMs()),
    labels: { ...wanted.labels },
    ...(wanted.match === undefined ? {} : { match: wanted.match }),
    ...(wanted.spec === undefined ? {} : { spec: wanted.spec }),
  });
  const made = await readRecord(deps.store, wire.ExpectedHostRecordSchema, recordKey(name));
  if (made !== undefined) return sameLine(deps, made, name, requestId);
  await refuseRival(deps, line);
  await checkMayPoint(deps, 'expected_host.spec', undefined, destinationOf(line));
  if (validateOnly) return presentLine(deps, line, 0);
  const requestIds = withApplied([], appliedId('create', requestId));
  const schema = wire.ExpectedHostRecordSchema;
  const record = create(schema, { expectedHost: line, requestIds });
  const written = await writeRecord(deps, schema, recordKey(name), record, 'absent');
  if (written.kind === 'conflict') {
    const rival = await readRecord(deps.store, schema, recordKey(name));
    if (rival === undefined) throw alreadyExists(`${name} was made and removed meanwhile.`);
    return sameLine(deps, rival, name, requestId);
  }
  deps.log.info({ expected: name, actor: deps.actor }, 'expected host created');
  deps.discovery.wake([lineKey(expectedHostId), ...keysOfLine(line)]);
  return presentLine(deps, line, written.revision);
}

function sameLine(
  deps: RpcDependencies,
  { record, revision }: { record: wire.ExpectedHostRecord; revision: StoreRevision },
  name: string,
  requestId: RequestId,
): ExpectedHost {
  const same = hasApplied(record, appliedId('create', requestId));
  if (!same || record.expectedHost === undefined) throw alreadyExists(`${name} exists already.`);
  return presentLine(deps, record.expectedHost, revision);
}

const linePaths = ['match', 'match.serial', 'match.mac', 'match.bmc_address', 'labels', 'spec'];

async function updateLine(
  deps: RpcDependencies,
  request: UpdateExpectedHostRequest,
): Promise<ExpectedHost> {
  const { expectedHost: wanted } = request;
  if (wanted === undefined) {
    const description = 'is missing; give its name and fields';
    throw invalidArgument([{ field: 'expected_host', description }]);
  }
  return untilWritten(wanted.name, () => tryUpdateLine(deps, request, wanted));
}

async function tryUpdateLine(
  deps: RpcDependencies,
  { updateMask, validateOnly }: UpdateExpectedHostRequest,
  wanted: ExpectedHost,
): Promise<ExpectedHost | undefined> {
  const { line, record, revision } = await existingLine(deps, wanted.name);
  checkEtag(deps.store, wanted.etag, revision, wanted.name);
  const violations = new Violations();
  const paths = maskPaths(ExpectedHostSchema, updateMask, wanted, linePaths, violations);
  const next = clone(ExpectedHostSchema, line);
  applyMask(ExpectedHostSchema, next, wanted, paths);
  await checkLine(deps, next, violations);
  violations.throwIfAny();
  if (equals(ExpectedHostSchema, next, line)) return presentLine(deps, line, revision);
  if (line.host !== '') {
    throw failedPrecondition(
      'MACHINE_TAKEN',
      `${line.name} has taken its machine: it is ${line.host}. Change that host instead.`,
    );
  }
  await refuseRival(deps, next);
  await checkMayPoint(deps, 'expected_host.spec', destinationOf(line), destinationOf(next));
  if (validateOnly) return presentLine(deps, next, revision);
  const schema = wire.ExpectedHostRecordSchema;
  const changed = clone(schema, record);
  changed.expectedHost = next;
  const written = await writeRecord(deps, schema, recordKey(wanted.name), changed, revision);
  if (written.kind === 'conflict') return undefined;
  const id = requireName(lines, wanted.name);
  deps.discovery.wake([lineKey(id), ...keysOfLine(line), ...keysOfLine(next)]);
  return presentLine(deps, next, written.revision);
}

async function checkLine(
  deps: RpcDependencies,
  line: ExpectedHost,
  violations: Violations,
): Promise<void> {
  const found = new Violations();
  checkExpectedHost('expected_host', line, found);
  if (found.count === 0 && line.spec !== undefined) {
    await checkReferences(deps, 'expected_host.spec', line.spec, found);
    await checkDestination(deps, 'expected_host.spec', undefined, line.spec, found);
  }
  violations.addAll(found);
}

function destinationOf({ spec, match }: ExpectedHost): Destination {
  return { rack: spec?.rack ?? '', bmc: spec?.bmc, matched: match?.bmcAddress ?? '' };
}
