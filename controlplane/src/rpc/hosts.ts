/** HostService: what people ask of hosts. State is changed only through the host loop. */

import type { MessageInitShape } from '@bufbuild/protobuf';
import { clone } from '@bufbuild/protobuf';
import {
  type BoundService,
  bind,
  type CleanStepRequest,
  type Host,
  type HostRevisionSchema,
  HostSchema,
  HostService,
  HostState,
  type ListCleanStepsResponseSchema,
  type ListHostRevisionsRequest,
  type ListHostsRequest,
  notFound,
  PowerAction,
  type SetHostPowerRequest,
} from '@rackwright/api';
import { displayOf } from '../host/index.ts';
import type { HostRequest } from '../host/types.ts';
import { answered } from '../records/index.ts';
import { builtInSteps, cleanPlan } from '../steps/index.ts';
import { createHost } from './create-host.ts';
import {
  factsKey,
  hostKey,
  hostRecordOf,
  presentHost,
  readAllFacts,
  readFacts,
  readHost,
} from './host-view.ts';
import { nameProblem, requireName } from './names.ts';
import { answerOf } from './outcome.ts';
import { checkPageSize, listPage } from './paging.ts';
import { type RpcDependencies, requester } from './ports.ts';
import { formatPosition, revisionOfEtag } from './position.ts';
import { checkReason, checkRequestId } from './texts.ts';
import { updateHost } from './update-host.ts';
import { Violations } from './violations.ts';
import { watchHosts } from './watch-hosts.ts';

const cleanStepsMax = 64;

/** The service over these dependencies. */
export function createHostService(deps: RpcDependencies): BoundService {
  return bind(HostService, {
    createHost: (request) => createHost(deps, request),
    getHost: async ({ name }) => (await existing(deps, name)).host,
    listHosts: (request) => listHosts(deps, request),
    updateHost: (request) => updateHost(deps, request),
    deleteHost: (request) => deleteHost(deps, request),
    watchHosts: (request, context) => watchHosts(deps, request, context),
    verifyHost: ({ name, requestId }) => ask(deps, name, { kind: 'verify' }, requestId),
    inspectHost: ({ name, requestId }) => ask(deps, name, { kind: 'inspect' }, requestId),
    cleanHost: ({ name, steps, requestId }) => {
      checkSteps(steps);
      const wanted = steps.map(({ step, arguments: given }) => ({ step, arguments: given }));
      return ask(deps, name, { kind: 'clean', steps: wanted }, requestId);
    },
    abortRun: ({ name, reason }) => {
      const violations = new Violations();
      checkReason('reason', reason, violations);
      violations.throwIfAny();
      return ask(deps, name, { kind: 'abort', reason });
    },
    releaseHold: ({ name, hold, reason, requestId }) => {
      const violations = new Violations();
      checkReason('reason', reason, violations);
      violations.throwIfAny();
      return ask(deps, name, { kind: 'releaseHold', hold, reason }, requestId);
    },
    setHostPower: (request) => setHostPower(deps, request),
    explainHost: async ({ name }) => {
      const explanation = await deps.hosts.explain(requireName('hosts', name));
      if (explanation === undefined) throw notFound(name);
      return explanation;
    },
    listCleanSteps: ({ name }) => listCleanSteps(deps, name),
    listHostRevisions: (request) => listHostRevisions(deps, request),
  });
}

async function setHostPower(deps: RpcDependencies, request: SetHostPowerRequest): Promise<Host> {
  const { name, action, bootOldDiskReason, requestId } = request;
  const violations = new Violations();
  checkReason('boot_old_disk_reason', bootOldDiskReason, violations);
  const wanted = powerRequest(action, bootOldDiskReason);
  if (wanted === undefined) violations.add('action', 'must be on, off or reset');
  violations.throwIfAny();
  return ask(deps, name, wanted ?? { kind: 'powerOff' }, requestId);
}

function powerRequest(action: PowerAction, bootOldDiskReason: string): HostRequest | undefined {
  switch (action) {
    case PowerAction.ON:
      return { kind: 'powerOn', bootOldDiskReason };
    case PowerAction.RESET:
      return { kind: 'powerReset', bootOldDiskReason };
    case PowerAction.OFF:
      return { kind: 'powerOff' };
    default:
      return undefined;
  }
}

async function existing(deps: RpcDependencies, name: string) {
  const found = await readHost(deps, requireName('hosts', name));
  if (found === undefined) throw notFound(name);
  return found;
}

async function listHosts(deps: RpcDependencies, request: ListHostsRequest) {
  const { rack } = request;
  const violations = new Violations();
  if (rack !== '') violations.addIf('rack', nameProblem('racks', rack));
  violations.throwIfAny();
  const facts = await readAllFacts(deps);
  const page = await listPage(deps.store, 'hosts', request, rack, (entry) => {
    const record = hostRecordOf(entry);
    if (rack !== '' && record.host?.spec?.rack !== rack) return undefined;
    const hostId = entry.key.slice('hosts.'.length);
    return presentHost(deps, record, entry.revision, facts.get(factsKey(hostId)));
  });
  return { hosts: [...page.items], nextPageToken: page.nextPageToken };
}

async function deleteHost(
  deps: RpcDependencies,
  request: { name: string; etag: string; reason: string; requestId: string },
): Promise<Host> {
  const violations = new Violations();
  violations.addIf('name', nameProblem('hosts', request.name));
  checkReason('reason', request.reason, violations);
  checkRequestId(request.requestId, violations);
  violations.throwIfAny();
  const { host } = await existing(deps, request.name);
  const outcome = await deps.hosts.request(
    requireName('hosts', request.name),
    { kind: 'delete', reason: request.reason },
    requester('delete', request.requestId),
    revisionOfEtag(deps.store, request.etag),
  );
  if (outcome.kind === 'removed') return asGone(host);
  const { record, revision } = answerOf(outcome, request.name);
  return presentHost(deps, record, revision, undefined);
}

function asGone(host: Host): Host {
  const gone = clone(HostSchema, host);
  if (gone.status !== undefined) gone.status.state = HostState.GONE;
  return gone;
}

async function ask(
  deps: RpcDependencies,
  name: string,
  request: HostRequest,
  requestId = '',
): Promise<Host> {
  const violations = new Violations();
  violations.addIf('name', nameProblem('hosts', name));
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  const hostId = requireName('hosts', name);
  const outcome = await deps.hosts.request(hostId, request, requester(request.kind, requestId));
  const { record, revision } = answerOf(outcome, name);
  return presentHost(deps, record, revision, await readFacts(deps, hostId));
}

function checkSteps(steps: readonly CleanStepRequest[]): void {
  const violations = new Violations();
  if (steps.length > cleanStepsMax) {
    violations.add('steps', `has ${steps.length} steps; at most ${cleanStepsMax} can run at once`);
  }
  for (const [index, { step }] of steps.slice(0, cleanStepsMax).entries()) {
    if (/^[a-z]+\.[a-z][a-z0-9_]*$/.test(step)) continue;
    violations.add(`steps[${index}].step`, 'must be "interface.step", as ListCleanSteps names it');
  }
  violations.throwIfAny();
}

async function listCleanSteps(
  deps: RpcDependencies,
  name: string,
): Promise<MessageInitShape<typeof ListCleanStepsResponseSchema>> {
  const { host } = await existing(deps, name);
  const facts = await readFacts(deps, requireName('hosts', name));
  const reported = facts?.hostUid === host.uid ? facts.runnerSteps : [];
  const known = reported.length > 0 ? reported : builtInSteps;
  const plan = cleanPlan(host.spec?.cleaning, known);
  return {
    steps: [...plan.enabled, ...plan.disabled],
    complete: reported.length > 0,
    warnings: [...plan.warnings],
    ...(reported.length > 0 && facts?.runnerStepsAt ? { collectedAt: facts.runnerStepsAt } : {}),
  };
}

async function listHostRevisions(deps: RpcDependencies, request: ListHostRevisionsRequest) {
  const hostId = requireName('hosts', request.name);
  const size = checkPageSize(request.pageSize);
  const changes = await answered(deps.store.history(hostKey(hostId)));
  if (changes.length === 0) throw notFound(request.name);
  const revisions = changes
    .toReversed()
    .filter((change) => change.kind === 'put')
    .slice(0, size)
    .map((change): MessageInitShape<typeof HostRevisionSchema> => {
      const { host, change: cause } = hostRecordOf(change);
      if (host !== undefined) host.etag = formatPosition(deps.store, change.revision);
      if (host?.status !== undefined) host.status.display = displayOf(host.status);
      return {
        revision: BigInt(change.revision),
        actor: cause?.actor ?? '',
        cause: cause?.cause ?? '',
        ...(cause?.time === undefined ? {} : { time: cause.time }),
        ...(host === undefined ? {} : { host }),
      };
    });
  return { revisions };
}
