/**
 * The deployment parts of the engine: the order to the agent, the image in the host's record, and
 * the state of the disk after an early end. Pure.
 *
 * Invariants:
 * 1. The status names an image only while the image is complete: from the first moment at which the
 *    disk may be overwritten until it has been read back, it names none.
 * 2. The earlier image stays named while every attempt has reported that it left the disks
 *    untouched.
 * 3. The record has the first boot's data once for each image, and operations do not have them:
 *    they are added when the order to write the image is sent. After a run the record has them for
 *    at most one image: the image that the host runs.
 * 4. A disk is written while its image is still downloading only if no data on it needs to be kept.
 */
import { clone, create } from '@bufbuild/protobuf';
import { durationMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  asRunNumber,
  type CredentialName,
  type DeploySpec,
  DeploySpecSchema,
  deploymentIdOf,
  FirstBootFormat,
  HostState,
  type HostStatus,
  type Run,
  RunKind,
  RunPhase,
  store,
  writeImageStep,
} from '@rackwright/messages';
import { hostImageOf, type ImageSources } from '../../images/index.ts';
import { idOf } from '../../records/index.ts';
import { protocolOf } from '../bmc/protocols.ts';
import { activeRun, type Pass, type PassView } from '../pass/pass.ts';
import type { DeepReadonly, RunView, StepView } from '../pass/read-only.ts';
import { isDeployStepOfAgent, switchesOnImage } from '../pass/step-names.ts';
import type { HostSnapshot, RequestedStep } from '../pass/types.ts';

const proofTimeoutDefaultMs = 20 * 60_000;
const versionsOfNone: ReadonlyMap<CredentialName, bigint> = new Map();

/** How long the host may take to prove that it runs its image. */
export function proofTimeoutMs(deploy: DeploySpec | undefined): number {
  const given = deploy?.proofTimeout;
  return given === undefined ? proofTimeoutDefaultMs : durationMs(given);
}

/** The first of these steps that the agent does not support; undefined: none, or unknown. */
export function missingAgentStep(
  { agentSteps }: Pick<HostSnapshot, 'agentSteps'>,
  steps: readonly Pick<RequestedStep, 'step'>[],
): string | undefined {
  if (agentSteps === undefined) return undefined;
  const missing = steps.find(({ step }) => {
    return isDeployStepOfAgent(step) && !agentSteps.some(({ name }) => name === step);
  });
  return missing?.step;
}

export type DeploymentResult =
  | { readonly kind: 'ok'; readonly deployment: agent.Deployment }
  | { readonly kind: 'refused'; readonly problem: string };

/** The agent's order for the deployment of this run; the first boot's data are added later (3). */
export function deploymentOf(pass: PassView, run: Pick<Run, 'number'>): DeploymentResult {
  const { record, host, spec, snapshot } = pass;
  const found = hostImageOf(
    record.image,
    snapshot.fleet,
    snapshot.registryCredentials ?? versionsOfNone,
  );
  if (found.kind === 'refused') return found;
  const deployment = create(agent.DeploymentSchema, {
    id: deploymentIdOf(host.uid, run.number),
    hostName: idOf(host.name),
    image: found.image,
    ...(spec.rootDisk === undefined ? {} : { rootDisk: spec.rootDisk }),
    writeAsFetched: holdsNothing(pass.status),
    networkFirst: !protocolOf(spec.bmc?.protocol).setsBoot,
  });
  return { kind: 'ok', deployment };
}

/**
 * Whether the disks of a host in its run hold no data to keep (4). A provision begins with an
 * available host, whose disks were proved erased; the host becomes manageable once it is written
 * to.
 */
export function holdsNothing(
  status: DeepReadonly<Pick<HostStatus, 'state' | 'image' | 'run'>>,
): boolean {
  const { state, image, run } = status;
  const isInUse = state !== HostState.AVAILABLE && state !== HostState.MANAGEABLE;
  if (isInUse || image !== '') return false;
  return run?.kind === RunKind.PROVISION && run.phase !== RunPhase.ENDED;
}

/** The operation in the form for sending (3). */
export function asSent(
  { deploy }: Pick<store.HostRecord, 'deploy'>,
  operation: agent.Operation,
): agent.Operation {
  if (operation.kind.case !== 'runStep' || operation.kind.value.deployment === undefined) {
    return operation;
  }
  const sent = clone(agent.OperationSchema, operation);
  if (sent.kind.case === 'runStep' && sent.kind.value.deployment !== undefined) {
    const { step, deployment } = sent.kind.value;
    const whole = deploy ?? create(DeploySpecSchema);
    deployment.deploy = isDeployStepOfAgent(step)
      ? forAgent(whole)
      : clone(DeploySpecSchema, whole);
  }
  return sent;
}

/** The part for the agent's own steps: the agent journals each of them while they wait. */
function forAgent({ netboot, proof, firstBoot }: DeploySpec): DeploySpec {
  const format = firstBoot?.format ?? FirstBootFormat.UNSPECIFIED;
  return create(DeploySpecSchema, { netboot, proof, firstBoot: { format } });
}

/** Why the deployment of this step cannot be ordered in the present state. */
export function refusalOfDeployment(
  pass: PassView,
  run: RunView,
  step: StepView,
): string | undefined {
  if (step.name !== writeImageStep && !isDeployStepOfAgent(step.name)) return undefined;
  const found = deploymentOf(pass, run);
  return found.kind === 'refused' ? found.problem : undefined;
}

/** What the host boots over the network at each request; undefined: it boots from its disk. */
export function netbootOf(
  record: DeepReadonly<store.HostRecord>,
  sources: ImageSources,
  versions: ReadonlyMap<CredentialName, bigint>,
): agent.Deployment | undefined {
  const { host, deployedRun } = record;
  const { status, spec } = host ?? {};
  if (host === undefined || status === undefined || spec === undefined) return undefined;
  if (!bootsOverNetwork(record)) return undefined;
  const found = hostImageOf(status.image, sources, versions);
  // A registry that the fleet no longer permits does not keep the host from the image that its
  // agent already has.
  const image =
    found.kind === 'ok' ? found.image : create(agent.HostImageSchema, { reference: status.image });
  return create(agent.DeploymentSchema, {
    id: deploymentIdOf(host.uid, asRunNumber(deployedRun)),
    hostName: idOf(host.name),
    image,
    deploy: clone(DeploySpecSchema, status.deploy ?? create(DeploySpecSchema)),
  });
}

/** Why the netboot image could not be fetched again; undefined: it could. */
export function netbootProblem(
  record: DeepReadonly<store.HostRecord>,
  sources: ImageSources,
  versions: ReadonlyMap<CredentialName, bigint>,
): string | undefined {
  if (!bootsOverNetwork(record)) return undefined;
  const found = hostImageOf(record.host?.status?.image ?? '', sources, versions);
  return found.kind === 'refused' ? found.problem : undefined;
}

/** Whether the host loads its image over the network at each start. */
export function bootsOverNetwork({ host }: DeepReadonly<Pick<store.HostRecord, 'host'>>): boolean {
  const { status } = host ?? {};
  if (status?.deploy?.netboot !== true || status.image === '') return false;
  const kind = activeRun(status)?.kind;
  const deploys = kind === RunKind.PROVISION || kind === RunKind.REIMAGE;
  return status.state === HostState.PROVISIONED || deploys;
}

/** From here on the disk may be overwritten (1); a repeated step changes nothing. */
export function beginWrite({ status, record }: Pass): void {
  const writing = activeRun(status)?.steps.find(({ name }) => name === writeImageStep);
  if (writing !== undefined && writing.attempt > 1) return;
  record.replaced = create(store.ReplacedImageSchema, {
    image: status.image,
    run: asRunNumber(record.deployedRun),
  });
  status.image = '';
}

/** The image is complete, or the host is about to boot it over the network. */
export function noteDeployed({ status, record }: Pass, run: RunView): void {
  delete record.replaced;
  status.image = record.image;
  status.deploy = clone(DeploySpecSchema, record.deploy ?? create(DeploySpecSchema));
  record.deployedRun = run.number;
}

/**
 * A write attempt is sent to the agent: an earlier attempt with unknown result counts as a write
 * (2).
 */
export function noteWriteSent({ record }: Pass, { name }: StepView): void {
  const { replaced } = record;
  if (name !== writeImageStep || replaced === undefined) return;
  if (replaced.attemptOpen) delete record.replaced;
  else replaced.attemptOpen = true;
}

/** What a write attempt reports of the disks, at its end or before (2). */
export function noteWriteReported(
  { record }: Pass,
  { name }: StepView,
  { result }: agent.Report,
): void {
  const { replaced } = record;
  if (name !== writeImageStep || replaced === undefined) return;
  if (result.case === 'hostUpdated') return;
  if (result.case === 'continuing' && !result.value.begun) return;
  if (isUntouched(result)) replaced.attemptOpen = false;
  else delete record.replaced;
}

function isUntouched(result: agent.Report['result']): boolean {
  switch (result.case) {
    case 'failed':
    case 'transientError':
      return result.value.disksUntouched;
    case 'retryAfter':
      // It began before, and its result is lost.
      return result.value.reason !== agent.ConflictReason.DUPLICATE;
    default:
      return false;
  }
}

/** The disk after a deployment: the new image, the old one, or nothing that boots. */
export type DiskAfter = 'whole' | 'untouched' | 'lost';

/** At the end of a deployment; an image that no attempt has touched is named as before (2). */
export function settleDisk(pass: Pass, run: Run): DiskAfter {
  const disk = diskAfter(pass, run);
  // Two of the largest size would leave no room for other runs (3).
  if (pass.status.deploy !== undefined) delete pass.record.deploy;
  return disk;
}

function diskAfter({ status, record }: Pass, run: Run): DiskAfter {
  const { replaced, deployedRun } = record;
  delete record.replaced;
  if (deployedRun === run.number) return 'whole';
  const writing = run.steps.find(({ name }) => name === writeImageStep);
  if (writing === undefined || writing.attempt === 0) return 'untouched';
  if (replaced !== undefined && !replaced.attemptOpen) {
    status.image = replaced.image;
    writing.disksUntouched = true;
    return 'untouched';
  }
  delete status.deploy;
  record.deployedRun = 0n;
  return 'lost';
}

/** Removes all traces of a deployment from the host's record. */
export function forgetImage({ status, record }: Pass): void {
  status.image = '';
  delete status.deploy;
  record.deployedRun = 0n;
}

/** When the host was switched on to boot its image; undefined: not in this run. */
export function switchedOnMs(run: RunView): number | undefined {
  const on = run.steps.findLast(({ name }, at) => {
    return at < run.currentStep && switchesOnImage(name);
  });
  return on?.endTime === undefined ? undefined : timestampMs(on.endTime);
}

/** Time for an agent that already has the proof to report it, even when it is asked late. */
const proofAskMsMin = 60_000;

/** How long the agent may still wait for the proof, from now. */
export function proofLeftMs({ record, snapshot }: PassView, run: RunView): number {
  const wholeMs = proofTimeoutMs(record.deploy);
  const sinceMs = switchedOnMs(run);
  if (sinceMs === undefined) return wholeMs;
  return Math.max(proofAskMsMin, sinceMs + wholeMs - snapshot.nowMs);
}
