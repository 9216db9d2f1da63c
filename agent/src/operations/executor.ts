/**
 * Carries out operations, one file per kind. The session decides whether one may run at all, and
 * records it; the gateway drives the runner.
 */
import type { agent, HostUid } from '@rackwright/messages';
import type { Clock, Log } from '@rackwright/platform';
import type { FinalResult } from '@rackwright/results';
import type { RunnerOrders } from '../runner-gateway/index.ts';
import type { ExecutedKind, Executor, OperationContext } from '../session/index.ts';
import { type BmcDrivers, bmcAddress, failure } from './bmc-access.ts';
import { DriveLists } from './drive-lists.ts';
import { type InspectParts, inspect, resumeInspect } from './inspect.ts';
import { outOfBandSteps, runOutOfBand } from './out-of-band.ts';
import { type OwnStepParts, ownSteps } from './own-steps.ts';
import { resumeStep, runStep, type StepImages } from './run-step.ts';
import { type BootFirmware, type BootMediumUrl, setPower } from './set-power.ts';
import { verifyAccess } from './verify-access.ts';

export interface ExecutorParts extends StepImages, OwnStepParts {
  readonly drivers: BmcDrivers;
  readonly orders: RunnerOrders;
  readonly clock: Clock;
  readonly log: Log;
  /** Absent: that of the drivers, for all hosts. */
  readonly bootFirmware?: BootFirmware;
  /** Absent: no host boots from virtual media. */
  readonly bootMediumUrl?: BootMediumUrl;
  /** A host has been switched on; must be quick, and must not throw. */
  readonly onSwitchedOn?: (operation: agent.Operation, request: agent.SetPower) => void;
  /** Nothing is left of a host; rejects when that is not durable. */
  readonly forgetDeployments?: (hostUid: HostUid) => Promise<void>;
}

const operationKinds = ['verifyAccess', 'setPower', 'inspect', 'runStep'] as const;

/** Hosts whose BMC address is remembered, so that Forget can drop its governor. */
const bmcAddressesMax = 10_000;

export function createExecutor(parts: ExecutorParts): Executor {
  const { drivers, orders, clock, log, forgetDeployments } = parts;
  const inspectParts = { orders, driveLists: new DriveLists(drivers, clock, log) };
  const { driveLists } = inspectParts;
  const own = ownSteps(parts);
  const bmcOfHost = new Map<HostUid, { address: string; port: number }>();
  const remember = (operation: agent.Operation, access: agent.BmcAccess | undefined): void => {
    const at = access === undefined ? undefined : bmcAddress(access);
    if (at === undefined || bmcOfHost.size >= bmcAddressesMax) return;
    bmcOfHost.set(operation.hostUid, at);
  };
  return {
    operationKinds: operationKinds satisfies readonly ExecutedKind[],
    steps: [...outOfBandSteps, ...own.values()].map(({ description }) => description),
    execute: (operation, context) => {
      const { kind } = operation;
      switch (kind.case) {
        case 'verifyAccess':
          remember(operation, kind.value.bmc);
          return verifyAccess(drivers, driveLists, kind.value, context);
        case 'setPower':
          remember(operation, kind.value.bmc);
          return switchPower(parts, operation, kind.value, context);
        case 'inspect':
          return inspect(inspectParts, operation, kind.value, context);
        case 'runStep':
          if (kind.value.bmc !== undefined) {
            remember(operation, kind.value.bmc);
            return runOutOfBand(drivers, kind.value, context);
          }
          return runWithoutBmc(parts, own, operation, kind.value, context);
        case 'cancel':
        case undefined:
          return Promise.resolve(unsupported(operation));
      }
    },
    resume: (operation, context) => resume(parts, inspectParts, operation, context),
    noteReportDurable: (operationId) => orders.noteReportDurable(operationId),
    handOffAnswered: (handOff, acts) => orders.handOffAnswered(handOff, acts),
    handOffUnderWay: (hostUid) => orders.handOffUnderWay(hostUid),
    credentialsStartedOver: () => drivers.forgetRefusals(),
    forgetHost: async (hostUid) => {
      const bmc = bmcOfHost.get(hostUid);
      bmcOfHost.delete(hostUid);
      // A host enrolled anew may have this BMC: its governor's state is still valid.
      const shared = [...bmcOfHost.values()].some((other) => {
        return other.address === bmc?.address && other.port === bmc.port;
      });
      if (bmc !== undefined && !shared) drivers.forget(bmc.address, bmc.port);
      driveLists.forgetHost(hostUid);
      orders.forgetHost(hostUid);
      await forgetDeployments?.(hostUid);
    },
  };
}

async function switchPower(
  { drivers, clock, bootFirmware, bootMediumUrl, onSwitchedOn }: ExecutorParts,
  operation: agent.Operation,
  request: agent.SetPower,
  context: OperationContext,
): Promise<FinalResult> {
  const driving = { ...drivers, bootFirmware, bootMediumUrl };
  const result = await setPower(driving, clock, operation, request, context);
  if (result.kind === 'complete' && request.on === true) onSwitchedOn?.(operation, request);
  return result;
}

async function runWithoutBmc(
  parts: ExecutorParts,
  own: ReturnType<typeof ownSteps>,
  operation: agent.Operation,
  request: agent.RunStep,
  context: OperationContext,
): Promise<FinalResult> {
  const step = own.get(request.step);
  if (step !== undefined) return step.run(operation, request, context);
  if (request.bootOperationId !== '') {
    return runStep(parts.orders, operation, request, context, parts);
  }
  const known = [...own.keys()].join(', ') || 'none';
  return failure('unsupported', `this agent has no step ${request.step}; it has ${known}`);
}

function resume(
  parts: ExecutorParts,
  inspectParts: InspectParts,
  operation: agent.Operation,
  context: OperationContext,
): 'interrupted' | Promise<FinalResult | 'interrupted'> {
  const { kind } = operation;
  if (kind.case !== 'inspect' && kind.case !== 'runStep') return 'interrupted';
  // Only this agent was at work: its work is over.
  if (kind.case === 'runStep') {
    if (kind.value.bmc !== undefined || kind.value.bootOperationId === '') return 'interrupted';
    return resumeStep(parts.orders, operation, kind.value, context, parts);
  }
  return resumeInspect(inspectParts, operation, kind.value, context);
}

function unsupported(operation: agent.Operation): FinalResult {
  const kind = operation.kind.case ?? 'an unknown kind';
  return failure('unsupported', `this agent does not execute ${kind}`);
}
