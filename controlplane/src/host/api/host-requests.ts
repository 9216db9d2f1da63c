/** Requests to one host: each call is one request to the host loop and returns the host. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { namesOfNone } from '@rackwright/disk-image';
import {
  type CleanStepRequest,
  type DeploySpec,
  type Handlers,
  HoldScope,
  type Host,
  type HostService,
  HostState,
  PowerAction,
  type ProvisionHostRequest,
  type RequestId,
  type SetHostPowerRequest,
  type store as wire,
} from '@rackwright/messages';
import { presentHost, readFacts, readHost } from '../../call/host-view.ts';
import { isKnown, nameProblem, requireName } from '../../call/names.ts';
import { answerOf } from '../../call/outcome.ts';
import { type RpcDependencies, requester } from '../../call/ports.ts';
import { checkReason, checkRequestId } from '../../call/texts.ts';
import { quote, Violations } from '../../call/violations.ts';
import { appliedId, hasApplied, idOf } from '../../records/index.ts';
import type { HostRequest } from '../index.ts';
import { checkShutdown } from '../spec/host-spec.ts';
import { imageByDigest } from '../spec/image-by-digest.ts';
import { deleteHost, lastSeen } from './delete-host.ts';
import { checkDeployment, deployRequest } from './deploy-request.ts';
import { hasPoolGivenUp } from './given-up.ts';

const cleanStepsMax = 64;

type Requests = Pick<
  Handlers<typeof HostService>,
  | 'verifyHost'
  | 'inspectHost'
  | 'cleanHost'
  | 'serviceHost'
  | 'provisionHost'
  | 'reimageHost'
  | 'releaseHost'
  | 'rescueHost'
  | 'adoptHost'
  | 'setHostPower'
  | 'abortRun'
  | 'resumeRun'
  | 'skipStep'
  | 'retryHost'
  | 'claimHost'
  | 'unclaimHost'
  | 'holdHost'
  | 'releaseHold'
  | 'deleteHost'
  | 'cancelHostDeletion'
>;

/** The calls that make a request to a host. */
export function hostRequests(deps: RpcDependencies): Requests {
  const plain = (kind: 'verify' | 'inspect') => (call: Call) => ask(deps, call, { kind });
  const reasoned =
    (
      kind:
        | 'abort'
        | 'resume'
        | 'skip'
        | 'claim'
        | 'unclaim'
        | 'release'
        | 'rescue'
        | 'cancelDelete',
    ) =>
    (call: Call & { reason: string }) =>
      ask(deps, call, { kind, reason: call.reason });
  return {
    verifyHost: plain('verify'),
    inspectHost: plain('inspect'),
    retryHost: (call) => retryHost(deps, call),
    abortRun: reasoned('abort'),
    resumeRun: reasoned('resume'),
    skipStep: reasoned('skip'),
    claimHost: reasoned('claim'),
    unclaimHost: reasoned('unclaim'),
    releaseHost: reasoned('release'),
    rescueHost: reasoned('rescue'),
    cancelHostDeletion: reasoned('cancelDelete'),
    cleanHost: (call) => ask(deps, call, { kind: 'clean', steps: stepsOf(call.steps) }),
    serviceHost: (call) => ask(deps, call, { kind: 'service', steps: stepsOf(call.steps) }),
    provisionHost: (call) => askForImage(deps, call, 'provision'),
    reimageHost: (call) => askForImage(deps, call, 'reimage'),
    adoptHost: (call) => {
      const violations = new Violations();
      if (call.to !== HostState.EXTERNAL && call.to !== HostState.PROVISIONED) {
        violations.add('to', 'must be external or provisioned');
      }
      violations.throwIfAny();
      return ask(deps, call, { kind: 'adopt', to: call.to, reason: call.reason });
    },
    holdHost: (call) => {
      const { scope, reason, until } = call;
      const violations = new Violations();
      if (scope === HoldScope.UNSPECIFIED || !isKnown(HoldScope, scope)) {
        violations.add('scope', 'must be work, power or release');
      }
      if (reason === '') violations.add('reason', 'is empty; say why the host is held');
      violations.throwIfAny();
      const untilMs = until === undefined ? undefined : timestampMs(until);
      return ask(deps, call, { kind: 'hold', scope, reason, untilMs });
    },
    releaseHold: (call) => {
      const { hold, reason, physicallyDisconnected = false } = call;
      return ask(deps, call, { kind: 'releaseHold', hold, reason, physicallyDisconnected });
    },
    setHostPower: (call) => setHostPower(deps, call),
    deleteHost: (call) => deleteHost(deps, call),
  };
}

interface Call {
  readonly name: string;
  readonly reason?: string;
  readonly requestId: RequestId;
}

async function setHostPower(deps: RpcDependencies, call: SetHostPowerRequest): Promise<Host> {
  const { action, bootOldDiskReason, shutdown } = call;
  const violations = new Violations();
  checkReason('boot_old_disk_reason', bootOldDiskReason, violations);
  const wanted = powerRequest(call);
  if (wanted === undefined)
    violations.add('action', 'must be on, off, reset, skip wait, confirm on or confirm off');
  if (shutdown !== undefined) checkShutdown('shutdown', shutdown, violations);
  const takesPower = action === PowerAction.OFF || action === PowerAction.RESET;
  if (shutdown !== undefined && !takesPower) {
    violations.add('shutdown', 'belongs to off and reset; leave it unset');
  }
  violations.throwIfAny();
  return ask(deps, call, wanted ?? { kind: 'powerOff' });
}

function powerRequest({
  action,
  bootOldDiskReason,
  shutdown,
}: SetHostPowerRequest): HostRequest | undefined {
  const policy = shutdown === undefined ? {} : { shutdown };
  switch (action) {
    case PowerAction.ON:
      return { kind: 'powerOn', bootOldDiskReason };
    case PowerAction.RESET:
      return { kind: 'powerReset', bootOldDiskReason, ...policy };
    case PowerAction.OFF:
      return { kind: 'powerOff', ...policy };
    case PowerAction.SKIP_WAIT:
      return { kind: 'skipWait' };
    case PowerAction.CONFIRM_ON:
      return { kind: 'confirmPower', on: true };
    case PowerAction.CONFIRM_OFF:
      return { kind: 'confirmPower', on: false };
    default:
      return undefined;
  }
}

async function retryHost(deps: RpcDependencies, call: Call): Promise<Host> {
  const found = await readHost(deps, requireName('hosts', call.name));
  const poolGaveUp = found !== undefined && (await hasPoolGivenUp(deps.store, found.host));
  return ask(deps, call, { kind: 'retry', poolGaveUp });
}

/** A tag is resolved only for a request that has not been applied. */
async function askForImage(
  deps: RpcDependencies,
  call: Call & Pick<ProvisionHostRequest, 'image' | 'deploy'>,
  kind: 'provision' | 'reimage',
): Promise<Host> {
  const { name, image, deploy, requestId } = call;
  checkDeployment(call);
  const violations = new Violations();
  violations.addIf('name', nameProblem('hosts', name));
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  const found = await readHost(deps, requireName('hosts', name));
  const isKnown = hasApplied(found?.record, appliedId(kind, requestId));
  const isAsked = found !== undefined && !isKnown;
  if (isAsked && deploy !== undefined) await checkKeptDisks(deps, found.record, deploy);
  const named = isAsked ? await imageByDigest(deps, image) : image;
  return ask(deps, call, deployRequest(kind, named, deploy));
}

/** A name that matches no disk of the inventory would protect nothing. Throws `invalidArgument`. */
async function checkKeptDisks(
  { store }: RpcDependencies,
  { host }: wire.HostRecord,
  { keepDisks }: DeploySpec,
): Promise<void> {
  const facts = await readFacts({ store }, idOf(host?.name));
  const { inventory, hostUid } = facts ?? {};
  if (inventory === undefined || hostUid !== host?.uid) return;
  const strange = namesOfNone(inventory.devices, keepDisks);
  const violations = new Violations();
  for (const [index, name] of keepDisks.entries()) {
    if (!strange.includes(name)) continue;
    const own = inventory.devices.map(({ serial, wwn }) => serial || wwn).join(', ');
    const right = `leave it out, or name one of ${own}`;
    const why = `is ${quote(name)}, which no disk of the host has; ${right}`;
    violations.add(`deploy.keep_disks[${index}]`, why.slice(0, 512));
  }
  violations.throwIfAny();
}

/** A list of steps. Throws `invalidArgument`. */
export function stepsOf(steps: readonly CleanStepRequest[], field = 'steps') {
  const violations = new Violations();
  if (steps.length > cleanStepsMax) {
    violations.add(field, `has ${steps.length} steps; at most ${cleanStepsMax} can run at once`);
  }
  for (const [index, { step }] of steps.slice(0, cleanStepsMax).entries()) {
    if (/^([a-z]+\.[a-z][a-z0-9_]*|[a-z][a-zA-Z]*)$/.test(step)) continue;
    violations.add(
      `${field}[${index}].step`,
      'must be "interface.step", as ListCleanSteps names it, or a control step',
    );
  }
  violations.throwIfAny();
  return steps.map(({ step, arguments: given }) => ({ step, arguments: given }));
}

async function ask(deps: RpcDependencies, call: Call, request: HostRequest): Promise<Host> {
  const { name, reason = '', requestId } = call;
  const violations = new Violations();
  violations.addIf('name', nameProblem('hosts', name));
  checkReason('reason', reason, violations);
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  const hostId = requireName('hosts', name);
  const outcome = await deps.hosts.request(
    hostId,
    request,
    requester(deps, request.kind, requestId),
  );
  if (outcome.kind === 'removed') return lastSeen(deps, hostId, name);
  const { record, revision } = answerOf(outcome, name);
  return presentHost(deps, record, revision, await readFacts(deps, hostId));
}
