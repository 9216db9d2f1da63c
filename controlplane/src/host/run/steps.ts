/**
 * What each step of a run asks of the agent, how long it may take, and what its completion must
 * show. A completion that does not show it is a failure, never a success (R8).
 */

import { create, toBinary } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  awaitImageStep,
  commandStep,
  fetchImageStep,
  HostState,
  type Inventory,
  InventorySchema,
  type Run,
  type RunFailure,
  type RunStep,
  type store,
  webhookStep,
  writeImageStep,
} from '@rackwright/api';
import { commandImageOf, missingSecret, reachProblem, secretUses } from '../../steps/index.ts';
import { accessTo } from '../bmc/access.ts';
import {
  bootsOverNetwork,
  deploymentOf,
  noteDeployed,
  proofLeftMs,
  refusalOfDeployment,
} from '../deployment/deployment.ts';
import { queueTimeoutMs } from '../deployment/image-turn.ts';
import { beginWriteOver } from '../deployment/written-disk.ts';
import { certifyErasure, checkCertified, uncertifiedDevice } from '../erasure/certify.ts';
import { challengeSeed } from '../erasure/derive.ts';
import { planDevices } from '../erasure/device-plan.ts';
import { recordIdentity } from '../erasure/identity.ts';
import { bootOperationId } from '../operation/boots.ts';
import { operationId } from '../operation/operation.ts';
import { pauseEndsMs } from '../turn/pause.ts';
import { invalidResult, isErasure } from '../turn/step-failure.ts';
import {
  type EngineStep,
  engineSteps,
  isDeployStepOfAgent,
  prepareNetbootStep,
} from '../turn/step-names.ts';
import type { EngineTiming } from '../turn/timing.ts';
import { activeRun, later, leaveAvailable, type Turn } from '../turn/turn.ts';
import type { HostWait } from '../turn/waiting.ts';
import { forgetFailure } from './after-failure.ts';

export interface OperationOptions {
  /** The interrupted operation whose effect is to be checked instead of run again. */
  readonly checkOf?: agent.Operation | undefined;
  /** Where the interrupted operation was, in the runner's own words. */
  readonly lastProgress?: string;
}

/** A step that is one operation of the agent. */
export interface OperationStep {
  readonly kind: 'operation';
  /** Done by the runner of the run's boot, not by the agent itself. */
  readonly inBand?: true;
  /** What the host is from here on, whatever comes of the step; once for each beginning of it. */
  begin?(turn: Turn): void;
  timeoutMs(timing: EngineTiming): number;
  /** Where the time that is left does not follow from the configuration alone. */
  leftMs?(turn: Turn, run: Run): number;
  operation(
    turn: Turn,
    run: Run,
    step: RunStep,
    options: OperationOptions,
  ): agent.Operation['kind'];
  /** Takes in what the completion shows; returns why it is no success, or undefined. */
  complete(turn: Turn, run: Run, step: RunStep, result: agent.Complete): RunFailure | undefined;
}

/** A step that waits for a fact. */
export interface ConditionStep {
  readonly kind: 'condition';
  timeoutMs(timing: EngineTiming): number | undefined;
  readonly waiting: { readonly reason: HostWait; readonly message: string };
  /** Says why it is not met, where more is known. */
  sees?(turn: Turn, step: RunStep): string | undefined;
  /** What it waits for does not come from the agent. */
  readonly needsNoAgent?: true;
  begin?(turn: Turn): void;
  met(turn: Turn, run: Run, step: RunStep): boolean;
}

/** A step that the control plane does itself, by a call to somebody outside (`calls.ts`). */
export interface CallStep {
  readonly kind: 'call';
  timeoutMs(timing: EngineTiming): number;
}

export type StepDefinition = OperationStep | ConditionStep | CallStep;

const operationTimeout = (timing: EngineTiming) => timing.operationTimeoutMs;

const verifyAccess: OperationStep = {
  kind: 'operation',
  timeoutMs: operationTimeout,
  operation: (turn) => ({
    case: 'verifyAccess',
    value: create(agent.VerifyAccessSchema, { bmc: bmcAccess(turn) }),
  }),
  complete: (turn, _run, _step, result) => recordIdentity(turn, result.observations),
};

const powerOff: OperationStep = {
  kind: 'operation',
  timeoutMs: operationTimeout,
  operation: (turn) => ({ case: 'setPower', value: setPower(turn, false) }),
  complete: (turn) => {
    turn.status.poweredOn = false;
    return undefined;
  },
};

/**
 * What boots from here on may write: certificates of before say nothing of the disks after it, and
 * no clean of before can be gone on with.
 */
export function beginUse(turn: Turn): void {
  if (turn.status.state === HostState.AVAILABLE) turn.status.state = HostState.MANAGEABLE;
  turn.status.useEpoch += 1n;
  turn.status.dirty = true;
  forgetFailure(turn);
}

const powerOn: OperationStep = {
  kind: 'operation',
  begin: beginUse,
  timeoutMs: operationTimeout,
  operation: (turn) => {
    const value = setPower(turn, true);
    value.bootFrom = agent.BootTarget.DISK;
    // What it runs may not be on its disk.
    if (bootsOverNetwork(turn.record)) bootOverNetwork(turn, value);
    return { case: 'setPower', value };
  },
  complete: (turn) => {
    turn.status.poweredOn = true;
    return undefined;
  },
};

const bootImage: OperationStep = {
  ...powerOn,
  operation: (turn) => {
    const value = setPower(turn, true);
    bootOverNetwork(turn, value);
    return { case: 'setPower', value };
  },
};

function bootOverNetwork({ spec }: Turn, value: agent.SetPower): void {
  value.bootFrom = agent.BootTarget.IMAGE;
  value.bootMacs = [...spec.bootMacs];
}

const bootRunner = bootStep(agent.BootTarget.RUNNER);

/** A person works on the host there: it may be written, though not by a step of ours. */
const bootRescue: OperationStep = { ...bootStep(agent.BootTarget.RESCUE), begin: beginUse };

function bootStep(target: agent.BootTarget): OperationStep {
  return {
    kind: 'operation',
    timeoutMs: operationTimeout,
    operation: (turn) => {
      const value = setPower(turn, true);
      value.bootFrom = target;
      value.bootMacs = [...turn.spec.bootMacs];
      value.grantExpireTime = later(turn, turn.context.timing.bootTimeoutMs);
      return { case: 'setPower', value };
    },
    complete: (turn) => {
      turn.status.poweredOn = true;
      return undefined;
    },
  };
}

const awaitRunner: ConditionStep = {
  kind: 'condition',
  timeoutMs: (timing) => timing.bootTimeoutMs,
  waiting: { reason: 'runner', message: 'the host is booting into the runner' },
  sees: (turn) => {
    if (turn.status.poweredOn === false) {
      return 'the host is off: it was switched on to boot the runner, and has been seen off since';
    }
    const run = activeRun(turn.status);
    const { runnerRefused: refused } = turn.record;
    if (run === undefined || refused?.bootOperationId !== bootOperationId(turn, run))
      return undefined;
    return `its runner was refused: ${refused.message}`;
  },
  met: (turn, run) => turn.record.runner?.bootOperationId === bootOperationId(turn, run),
};

/** The first inventory of a run; in a clean it also fixes which devices are erased. */
const inspect: OperationStep = {
  kind: 'operation',
  inBand: true,
  timeoutMs: operationTimeout,
  operation: (turn, run) => ({
    case: 'inspect',
    value: create(agent.InspectSchema, { bootOperationId: bootOperationId(turn, run) }),
  }),
  complete: (turn, run, _step, result) => {
    const inventory = result.observations?.inventory;
    if (inventory === undefined) return invalidResult('the inspection brought no inventory');
    const tooLarge = keepInventory(turn, inventory);
    if (tooLarge !== undefined) return tooLarge;
    leaveIfUncertified(turn, inventory);
    return planDevices(turn, run, inventory);
  },
};

/** Largest inventory that is kept, in bytes on the wire: facts are one bounded record. */
const inventoryBytesMax = 128 * 1024;

function keepInventory(turn: Turn, inventory: Inventory): RunFailure | undefined {
  const { length } = toBinary(InventorySchema, inventory);
  if (length > inventoryBytesMax) {
    return invalidResult(
      `the inventory has ${length} bytes; at most ${inventoryBytesMax} are kept`,
    );
  }
  turn.effects.push({ kind: 'facts', facts: factsWith(turn, { inventory }) });
  return undefined;
}

/** A disk that nobody erased has come into an available host: it is available no more. */
function leaveIfUncertified(turn: Turn, inventory: Inventory): void {
  if (turn.status.state !== HostState.AVAILABLE) return;
  if (uncertifiedDevice(turn, inventory) !== undefined) leaveAvailable(turn);
}

/** The inventory after the last erase: every device must be certified for this epoch (H6). */
const inspectAgain: OperationStep = {
  ...inspect,
  complete: (turn, run, _step, result) => {
    const inventory = result.observations?.inventory;
    if (inventory === undefined) return invalidResult('the inspection brought no inventory');
    return keepInventory(turn, inventory) ?? checkCertified(turn, run, inventory);
  },
};

const runnerStep: OperationStep = {
  kind: 'operation',
  inBand: true,
  timeoutMs: (timing) => timing.cleanStepTimeoutMs,
  operation: (turn, run, step, options) => ({
    case: 'runStep',
    value: runStep(turn, run, step, options),
  }),
  complete: (turn, run, step, result) =>
    isErasure(step.name) ? certifyErasure(turn, run, step, result.evidence) : undefined,
};

/** While it writes, the disk holds no whole image. */
const writeImage: OperationStep = {
  ...runnerStep,
  timeoutMs: (timing) => timing.imageTimeoutMs,
  begin: beginWriteOver,
  complete: (turn, run) => {
    noteDeployed(turn, run);
    return undefined;
  },
};

/** A step of a deployment that the agent takes by itself; nothing is asked of the BMC. */
const deployStepOfAgent: OperationStep = {
  kind: 'operation',
  timeoutMs: (timing) => timing.imageTimeoutMs,
  operation: (turn, run, step) => ({
    case: 'runStep',
    value: create(agent.RunStepSchema, {
      step: step.name,
      mode: agent.StepMode.RUN,
      destructive: false,
      rerunClass: step.rerunClass,
      ...deploymentFor(turn, run, step),
    }),
  }),
  complete: () => undefined,
};

const prepareNetboot: OperationStep = {
  ...deployStepOfAgent,
  complete: (turn, run) => {
    noteDeployed(turn, run);
    return undefined;
  },
};

const awaitImage: OperationStep = { ...deployStepOfAgent, leftMs: proofLeftMs };

const forget: ConditionStep = {
  kind: 'condition',
  timeoutMs: () => undefined,
  waiting: { reason: 'agent', message: 'the agent has not yet dropped what it knows of the host' },
  begin: (turn) => {
    turn.record.forgetting = turn.context.agentRegistered;
    if (turn.record.forgetting) turn.effects.push({ kind: 'forget' });
  },
  met: (turn) => !turn.record.forgetting,
};

/** A step that the rack's agent runs itself, on the BMC; no runner takes part. */
const outOfBandStep: OperationStep = {
  kind: 'operation',
  timeoutMs: operationTimeout,
  operation: (turn, _run, step) => ({
    case: 'runStep',
    value: create(agent.RunStepSchema, {
      step: step.name,
      mode: agent.StepMode.RUN,
      arguments: { ...step.arguments },
      destructive: step.destructive,
      rerunClass: step.rerunClass,
      bmc: bmcAccess(turn),
      ...expectedIdentity(turn),
    }),
  }),
  complete: () => undefined,
};

/** Waits for a person, who resumes or skips (`step-on.ts`); never met by itself. */
const hold: ConditionStep = {
  kind: 'condition',
  timeoutMs: () => undefined,
  waiting: { reason: 'hold', message: 'the list of steps asks for a person here' },
  sees: (_turn, step) => step.arguments['reason'],
  needsNoAgent: true,
  met: () => false,
};

/** Stored by its beginning and its argument, so that it survives every restart. */
const wait: ConditionStep = {
  kind: 'condition',
  timeoutMs: () => undefined,
  waiting: { reason: 'wait', message: 'the list of steps asks for a pause here' },
  needsNoAgent: true,
  met: (turn, _run, step) => (pauseEndsMs(step) ?? 0) <= turn.context.nowMs,
};

const webhook: CallStep = { kind: 'call', timeoutMs: (timing) => timing.webhookTimeoutMs };

const definitions: Readonly<Record<EngineStep, StepDefinition>> = {
  [engineSteps.verifyAccess]: verifyAccess,
  [engineSteps.off]: powerOff,
  [engineSteps.on]: powerOn,
  [engineSteps.bootRunner]: bootRunner,
  [engineSteps.bootRescue]: bootRescue,
  [engineSteps.bootImage]: bootImage,
  [engineSteps.awaitRunner]: awaitRunner,
  [engineSteps.inspect]: inspect,
  [engineSteps.inspectAgain]: inspectAgain,
  [fetchImageStep]: deployStepOfAgent,
  [writeImageStep]: writeImage,
  [prepareNetbootStep]: prepareNetboot,
  [awaitImageStep]: awaitImage,
  [engineSteps.forget]: forget,
  [engineSteps.hold]: hold,
  [engineSteps.wait]: wait,
  [webhookStep]: webhook,
};

/** The engine's own steps by name; every other step is one of the agent or of the runner. */
export function stepDefinition({ name, outOfBand }: RunStep): StepDefinition {
  if (isEngineStep(name)) return definitions[name];
  return outOfBand ? outOfBandStep : runnerStep;
}

export function isEngineStep(name: string): name is EngineStep {
  return Object.hasOwn(definitions, name);
}

export function factsWith(turn: Turn, change: Partial<store.HostFacts>): store.HostFacts {
  return { ...turn.context.facts, hostUid: turn.host.uid, ...change };
}

function bmcAccess({ spec, status, context }: Turn): agent.BmcAccess {
  return accessTo(spec.bmc, status.bmcIdentity, context.credentialVersion ?? 0n);
}

function setPower(turn: Turn, on: boolean): agent.SetPower {
  return create(agent.SetPowerSchema, { bmc: bmcAccess(turn), on, ...expectedIdentity(turn) });
}

/** What the BMC must still say of itself before anything is done by it. */
function expectedIdentity({ status }: Turn) {
  const { bmcIdentity } = status;
  return bmcIdentity === undefined ? {} : { expectedIdentity: bmcIdentity };
}

function runStep(
  turn: Turn,
  run: Run,
  step: RunStep,
  { checkOf, lastProgress }: OperationOptions,
): agent.RunStep {
  const checked = checkOf?.kind.case === 'runStep' ? checkOf.kind.value : undefined;
  const image = imageOf(turn, step);
  const id = operationId(turn, run, run.currentStep, step.attempt);
  return create(agent.RunStepSchema, {
    step: step.name,
    mode: checked === undefined ? agent.StepMode.RUN : agent.StepMode.CHECK,
    arguments: {
      ...step.arguments,
      ...checked?.arguments,
      ...(lastProgress === undefined || lastProgress === '' ? {} : { lastProgress }),
    },
    destructive: step.destructive,
    rerunClass: step.rerunClass,
    bootOperationId: bootOperationId(turn, run),
    runnerSession: runnerSession(turn, run),
    devices: isErasure(step.name) ? [...turn.record.devicePlan] : [],
    challengeSeed: checked?.challengeSeed ?? challengeSeed(turn.context.incarnation, id),
    allowUnprovenIdentity: turn.spec.cleaning?.allowUnprovenIdentity ?? false,
    allowDiskless: turn.spec.cleaning?.allowDiskless ?? false,
    ...(step.handOff ? { handOff: true } : {}),
    ...(image === undefined ? {} : { image }),
    ...deploymentFor(turn, run, step),
    secrets: secretUses(step.arguments, credentialVersions(turn)),
    ...expectedIdentity(turn),
  });
}

/**
 * The runner of the present boot. An agent whose disk was put back to an older copy knows neither
 * which runner has had the boot nor what that one has begun: it must not hand that to the next.
 */
function runnerSession(turn: Turn, run: Run): string {
  const { runner } = turn.record;
  return runner?.bootOperationId === bootOperationId(turn, run) ? runner.runnerSession : '';
}

/** The image that a command comes in, for the agent to fetch; undefined: it comes in none. */
function imageOf(turn: Turn, step: RunStep): agent.CommandImage | undefined {
  const found = commandImage(turn, step);
  return found?.kind === 'ok' ? found.image : undefined;
}

/** What a step of a deployment is told of it; nothing for any other. */
function deploymentFor(turn: Turn, run: Run, step: RunStep) {
  const { name } = step;
  if (name !== writeImageStep && !isDeployStepOfAgent(name)) return {};
  const found = deploymentOf(turn, run);
  if (found.kind === 'refused') return {};
  const { deployment } = found;
  const { timing } = turn.context;
  if (queueTimeoutMs(step, timing) === 0) return { deployment };
  return { deployment, turnTimeout: durationFromMs(timing.imageTimeoutMs) };
}

/** Why an image is not fetched, or a secret not given, as things stand now. */
export function refusalOfImage(turn: Turn, run: Run, step: RunStep): string | undefined {
  const deploys = refusalOfDeployment(turn, run, step);
  if (deploys !== undefined) return deploys;
  const found = commandImage(turn, step);
  if (found?.kind === 'refused') return found.problem;
  return (
    reachProblem(turn.context.fleet?.templates, { step: step.name, arguments: step.arguments }) ??
    missingSecret(step.arguments, credentialVersions(turn))
  );
}

function commandImage(turn: Turn, step: RunStep) {
  if (step.name !== commandStep) return undefined;
  return commandImageOf(step, turn.context.fleet?.templates, credentialVersions(turn));
}

/** Of the credentials that the fleet names for templates and registries. */
function credentialVersions({ context }: Turn): ReadonlyMap<string, bigint> {
  return context.registryCredentials ?? new Map<string, bigint>();
}
