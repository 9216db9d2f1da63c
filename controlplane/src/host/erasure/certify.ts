/**
 * From the agent's signed evidence to certificates, and from certificates to "every device of this
 * host is erased" (invariant H6). A device counts only with the verdict `erased`, in this run and
 * this use epoch.
 */
import { create } from '@bufbuild/protobuf';
import {
  buildStatement,
  type DeviceFacts,
  type Disposition,
  deviceFactsOf,
  deviceIdentity,
  sha256Hex,
  statementSha256 as statementSha256Of,
  verdictOf,
} from '@rackwright/erasure';
import {
  agent,
  ErasureLevel,
  eraseStep,
  type Inventory,
  isErasure,
  type LastCleaned,
  LastCleanedSchema,
  type RunFailure,
  RunKind,
  type RunnerSessionId,
  StepState,
  store,
} from '@rackwright/messages';
import { inventoryNow, type Pass, type PassView, timeNow } from '../pass/pass.ts';
import type { RunView, StepView } from '../pass/read-only.ts';
import { invalidResult, stepFailure } from '../pass/step-failure.ts';
import { engineSteps } from '../pass/step-names.ts';
import type { CertificateDraft } from '../pass/types.ts';
import {
  decideDevices,
  erasesAtLevel,
  missingDevice,
  plansOfStep,
  tooWeakFor,
} from './device-plan.ts';
import { orderAgeOf, whyUntrue, withEvidence } from './evidence.ts';
import { failureOf, gapsOf, refusalsOf } from './gaps.ts';
import { writeManifest } from './manifest.ts';
import { noteUnproved, unprovedDevice } from './power-cycle.ts';
import { noteSpeeds } from './speeds.ts';

/** Certifies every device of the plan from one step's evidence, or says why it cannot. */
export function certifyErasure(
  pass: Pass,
  _run: RunView,
  step: StepView,
  evidence: agent.Evidence | undefined,
): RunFailure | undefined {
  return withEvidence(pass, step, evidence, (signed, parsed) =>
    certifyDevices(pass, step, signed, parsed),
  );
}

function certifyDevices(
  pass: Pass,
  step: StepView,
  evidence: agent.Evidence,
  parsed: agent.StepEvidence,
): RunFailure | undefined {
  const plans = plansOfStep(pass.record.devicePlan, step.name);
  const problem =
    (parsed.ofFailedStep
      ? invalidResult(`${step.name}: the evidence says that the step failed`)
      : undefined) ?? strangerIn(parsed, plans);
  if (problem !== undefined) return problem;
  for (const plan of plans) {
    const unproved = deviceProblem(pass, parsed, plan, orderAgeOf(pass, step));
    if (unproved !== undefined) return unproved;
  }
  const certificates = parsed.devices.map((device, index) =>
    draft(pass, evidence, device, index, parsed.runnerSession),
  );
  pass.effects.push({ kind: 'certify', certificates });
  noteSpeeds(pass, parsed.devices);
  noteUnproved(
    pass,
    parsed.devices.flatMap((outcome, index) => {
      const plan = plans.find(({ device }) => deviceKey(device) === deviceKey(outcome.device));
      if (plan === undefined) return [];
      const certificate = `erasureCertificates/${certificates[index]?.id ?? ''}`;
      const statementSha256 = Buffer.from(
        statementSha256Of(certificates[index]?.statement ?? new Uint8Array()),
        'hex',
      );
      const named = { seed: outcome.challengeSeed, certificate, statementSha256 };
      return [unprovedDevice(pass, plan, { ...named, bootId: parsed.bootId })];
    }),
  );
  return undefined;
}

/** Evidence names only devices of the plan, each once: nothing else is ever signed. */
function strangerIn(
  { devices }: agent.StepEvidence,
  plans: readonly agent.DevicePlan[],
): RunFailure | undefined {
  if (devices.length > plans.length) {
    return invalidResult(
      `the evidence speaks of ${devices.length} devices, and the plan has ${plans.length}`,
    );
  }
  const planned = new Set(plans.map(({ device }) => deviceKey(device)));
  for (const { device } of devices) {
    const key = deviceKey(device);
    if (planned.delete(key)) continue;
    return invalidResult(`the evidence speaks of disk ${key || 'without a name'}, out of the plan`);
  }
  return undefined;
}

/** Why the evidence does not prove that a device of the plan was erased as planned. */
function deviceProblem(
  pass: PassView,
  { devices, mode }: agent.StepEvidence,
  plan: agent.DevicePlan,
  orderAgeMs: number,
): RunFailure | undefined {
  const key = deviceKey(plan.device);
  const outcome = devices.find((candidate) => deviceKey(candidate.device) === key);
  if (outcome === undefined) return invalidResult(`the evidence says nothing of disk ${key}`);
  const verdict = verdictOf(outcome);
  if (verdict.kind !== 'erased') {
    const reason = 'reason' in verdict ? verdict.reason : 'the verdict was switched off';
    return stepFailure('notErased', `disk ${key} is not proven erased: ${reason}`);
  }
  if (mode === agent.StepMode.CHECK && outcome.challengeBlocksWritten === 0n) {
    return stepFailure('unverified', `disk ${key}: nothing shows that its erasure had begun`);
  }
  const ordered = pass.record.operation?.operation?.kind;
  const seed = ordered?.case === 'runStep' ? ordered.value.challengeSeed : new Uint8Array();
  const asOrdered =
    outcome.method === plan.method && Buffer.from(outcome.challengeSeed).equals(seed);
  if (!asOrdered) return invalidResult(`disk ${key} was not erased as it was ordered`);
  const untrue = whyUntrue(outcome, plan, orderAgeMs);
  return untrue === undefined ? undefined : invalidResult(`disk ${key}: ${untrue}`);
}

/** The result of a successful clean for people: level, certificates, and devices left alone. */
export function lastCleaned(pass: PassView, run: RunView): LastCleaned | undefined {
  const { certified } = pass.record;
  const erased = run.steps.filter(
    ({ name, state }) => isErasure(name) && state === StepState.SUCCEEDED,
  );
  if (erased.length === 0) return undefined;
  const full = erased.some((step) => step.name === eraseStep);
  const inventory = pass.snapshot.facts.inventory;
  const decisions =
    inventory === undefined
      ? []
      : decideDevices(inventory, { metadataOnly: !full }, pass.spec.cleaning);
  return create(LastCleanedSchema, {
    at: timeNow(pass),
    level: full ? ErasureLevel.FULL : ErasureLevel.METADATA_ONLY,
    certificates: certified.map(({ certificate }) => certificate),
    skipped: decisions
      .filter((decision) => decision.kind === 'listed')
      .map(({ device, reason }) => `${device.serial || device.name}: ${reason}`),
  });
}

/** One statement; the record has its hash, so that the next statement can refer to it. */
function draft(
  pass: Pass,
  evidence: agent.Evidence,
  outcome: agent.DeviceOutcome,
  deviceIndex: number,
  runnerSession: RunnerSessionId,
): CertificateDraft {
  const { record, host, status, spec, snapshot } = pass;
  const previous = record.lastStatementSha256;
  const id = certificateId(pass, evidence, deviceIndex);
  const statement =
    snapshot.keptStatements?.get(id) ??
    buildStatement({
      host: { name: host.name, uid: host.uid },
      operationId: record.operation?.operation?.id ?? '',
      useEpoch: Number(status.useEpoch),
      evidence,
      deviceIndex,
      storeIncarnation: snapshot.incarnation,
      ...(previous.length === 0 ? {} : { previousSha256: Buffer.from(previous).toString('hex') }),
      report: reportOf(pass),
      disposition: dispositionOf(pass),
      orderedBy: status.run?.requestedBy ?? '',
      ...(snapshot.software === undefined ? {} : { software: snapshot.software }),
      ...(spec.cleaning?.allowUnprovenIdentity === true
        ? { identityWaivedBy: 'cleaning.allow_unproven_identity' }
        : {}),
    });
  record.lastStatementSha256 = Buffer.from(statementSha256Of(statement), 'hex');
  record.certified.push(
    create(store.CertifiedDeviceSchema, {
      ...(outcome.device === undefined ? {} : namesOf(deviceFactsOf(outcome.device))),
      certificate: `erasureCertificates/${id}`,
      useEpoch: status.useEpoch,
      runnerSession,
      statementSha256: record.lastStatementSha256,
      metadataOnly: outcome.method === agent.ErasureMethod.METADATA_ONLY,
    }),
  );
  return { id, host: host.name, statement };
}

/** The site's texts for certificates. */
function reportOf({ snapshot }: PassView): {
  [K in 'organisation' | 'customer' | 'technician']: string;
} {
  const { organisation = '', customer = '', technician = '' } = snapshot.fleet?.erasureReport ?? {};
  return { organisation, customer, technician };
}

function dispositionOf({ spec, status }: PassView): Disposition {
  if (status.deletion !== undefined) return 'hostDeleted';
  return spec.retired ? 'hostRetired' : 'remainsInHost';
}

/** The id depends on the content, so that other evidence never gets the same id. */
function certificateId(pass: PassView, { payload }: agent.Evidence, deviceIndex: number): string {
  const attempt = (pass.record.operation?.operation?.id ?? '').replaceAll('/', '-');
  return `${attempt}-${deviceIndex + 1}-${sha256Hex(payload).slice(0, 8)}`;
}

/** Whether the run erased at the level of the policy, and each device that it erased. */
export function erasesAsAsked({ spec, record, status }: PassView, run: RunView): boolean {
  const counting = run.steps.filter((step) => {
    return step.state === StepState.SUCCEEDED && erasesAtLevel(spec, step);
  });
  if (counting.length === 0) return false;
  if (spec.cleaning?.level === ErasureLevel.METADATA_ONLY) return true;
  const ofUse = record.certified.filter(({ useEpoch }) => useEpoch === status.useEpoch);
  const erased = new Set(ofUse.flatMap((each) => (each.metadataOnly ? [] : [each.deviceKey])));
  return ofUse.every(({ deviceKey }) => erased.has(deviceKey));
}

/**
 * H6: every device in scope of the inventory after the last erase has its certificate. An automatic
 * clean must also have erased at the level of the policy.
 */
export function checkCertified(
  pass: Pass,
  run: RunView,
  inventory: Inventory,
): RunFailure | undefined {
  const tooWeak = tooWeakFor(pass.host, run, pass.snapshot.fleet);
  if (tooWeak !== undefined) return tooWeak;
  if (!run.steps.some((step) => isErasure(step.name))) return undefined;
  if (inventory.runnerSession !== pass.record.runner?.runnerSession) {
    return stepFailure('interrupted', 'the runner was replaced between erasing and looking again');
  }
  const lack = missingDevice(pass, inventory) ?? uncertifiedDevice(pass, inventory);
  if (lack !== undefined) return lack;
  if (isProvenBefore(run) || isOfSession(pass, inventory)) return writeManifest(pass, inventory);
  return stepFailure('interrupted', 'what erased and what looked again are two runners');
}

/**
 * Whether the session of the inventory has erased everything itself: what ran between two sessions
 * is unknown.
 */
function isOfSession({ record, status }: PassView, { runnerSession }: Inventory): boolean {
  const counting = record.certified.filter(({ useEpoch }) => useEpoch === status.useEpoch);
  const own = counting.filter((device) => device.runnerSession === runnerSession);
  return counting.every((device) => own.some(({ deviceKey }) => deviceKey === device.deviceKey));
}

/** Whether the session that erased last has taken the inventory itself, before a planned reboot. */
function isProvenBefore({ steps, currentStep }: RunView): boolean {
  const erased = steps.findLastIndex(({ name }, at) => at < currentStep && isErasure(name));
  return steps.slice(erased + 1, currentStep).some(({ name, state }) => {
    return name === engineSteps.inspectAgain && state === StepState.SUCCEEDED;
  });
}

/**
 * H6: why a cleaned host is no longer clean at the end of the run, or undefined. Each device must
 * still have its certificate: a later event may have revoked one.
 */
export function notCleanAtEnd(pass: Pass, run: RunView): RunFailure | undefined {
  if (run.kind !== RunKind.CLEAN) return undefined;
  const { record, status } = pass;
  const counts = record.certified.every(({ useEpoch }) => useEpoch === status.useEpoch);
  if (!counts) {
    const message = 'the host was switched on or booted by somebody else after it was erased';
    return stepFailure('notCertified', message);
  }
  const hasErased = run.steps.some(({ name, state }) => {
    return isErasure(name) && state === StepState.SUCCEEDED;
  });
  const inventory = inventoryNow(pass);
  return hasErased && inventory !== undefined ? uncertifiedDevice(pass, inventory) : undefined;
}

/** Certificates of absent disks no longer count, even if the disks return. */
export function forgetAbsent({ record }: Pass, { devices }: Inventory): void {
  if (record.certified.length === 0) return;
  const present = devices.map((device) => namesOf(deviceFactsOf(device)));
  record.certified = record.certified.filter((each) => present.some((now) => isOf(each, now)));
}

type Names = Pick<store.CertifiedDevice, 'deviceKey' | 'traitsSha256'>;

/** The key of a certificate of this use: another disk may have the same serial number. */
export function namesOf(device: DeviceFacts): Names {
  const { model, wwn, sizeBytes } = device;
  const traits = sha256Hex(Buffer.from(JSON.stringify([model, wwn, sizeBytes])));
  return { deviceKey: deviceIdentity(device), traitsSha256: Buffer.from(traits, 'hex') };
}

function isOf(certified: Names, device: Names): boolean {
  if (certified.deviceKey !== device.deviceKey) return false;
  return (
    certified.traitsSha256.length === 0 ||
    Buffer.from(certified.traitsSha256).equals(device.traitsSha256)
  );
}

/** Why not every device in scope has a certificate of this use epoch, or undefined. */
export function uncertifiedDevice(pass: Pass, inventory: Inventory): RunFailure | undefined {
  const weakEnough = pass.spec.cleaning?.level === ErasureLevel.METADATA_ONLY;
  const decisions = decideDevices(inventory, { metadataOnly: weakEnough }, pass.spec.cleaning);
  const refused = failureOf([...gapsOf(pass, inventory), ...refusalsOf(decisions)]);
  if (refused !== undefined) return refused;
  const counting = pass.record.certified.filter((each) => each.useEpoch === pass.status.useEpoch);
  const lacking = decisions.flatMap(({ kind, device }) => {
    const names = namesOf(device);
    const isCertified = counting.some((each) => isOf(each, names));
    return kind === 'listed' || isCertified ? [] : [names.deviceKey];
  });
  if (lacking.length === 0) return undefined;
  const have = lacking.length === 1 ? 'has' : 'have';
  const disks = lacking.length === 1 ? 'disk' : 'disks';
  const text = `${disks} ${lacking.join(', ')} ${have} no certificate of this use`;
  return stepFailure('notCertified', text);
}

function deviceKey(device: agent.DevicePlan['device']): string {
  return device === undefined ? '' : deviceIdentity(device);
}
