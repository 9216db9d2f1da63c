/** Steps on the host's BMC that every kind of run shares: who it is, its power, and its boots. */

import { create } from '@bufbuild/protobuf';
import { agent, bootText, type HostSpec, type Run } from '@rackwright/messages';
import { accessTo } from '../../bmc/access.ts';
import { isByHand } from '../../bmc/protocols.ts';
import { bootsOverNetwork, noteDeployed } from '../../deployment/deployment.ts';
import { recordIdentity } from '../../erasure/identity.ts';
import { bootTraceOf } from '../../operation/boot-traces.ts';
import { bootOperationId } from '../../operation/boots.ts';
import { bootWindowMs, notePower } from '../../operation/person.ts';
import { noteShutdown } from '../../operation/shutdown.ts';
import { move } from '../../turn/transitions.ts';
import { activeRun, forgetFailure, later, type Turn } from '../../turn/turn.ts';
import { type ConditionStep, type OperationStep, operationTimeout } from './step-definition.ts';

export const verifyAccess: OperationStep = {
  kind: 'operation',
  timeoutMs: operationTimeout,
  operation: (turn) => ({
    case: 'verifyAccess',
    value: create(agent.VerifyAccessSchema, { bmc: bmcAccess(turn) }),
  }),
  complete: (turn, _run, _step, result) => recordIdentity(turn, result.observations),
};

export const powerOff: OperationStep = {
  kind: 'operation',
  timeoutMs: operationTimeout,
  operation: (turn) => ({ case: 'setPower', value: setPower(turn, { on: false }) }),
  complete: (turn, run, step, { observations }) => {
    noteShutdown(turn, step, observations);
    notePower(turn, run, { on: false });
    turn.record.switchedOnRun = 0n;
    turn.record.inRunner = false;
    return undefined;
  },
};

/**
 * What boots from here on may write: certificates of before say nothing of the disks after it, and
 * no clean of before can be gone on with.
 */
export function beginUse(turn: Turn): void {
  move(turn.status, 'used');
  forgetFailure(turn);
}

export const powerOn: OperationStep = {
  kind: 'operation',
  begin: (turn, run) => {
    beginUse(turn);
    turn.record.inRunner = false;
    // Whatever comes of it: it may act although its answer is lost.
    if (turn.record.switchedOnRun === 0n) turn.record.switchedOnRun = run.number;
  },
  timeoutMs: operationTimeout,
  operation: (turn) => {
    const value = setPower(turn, { on: true });
    value.bootFrom = agent.BootTarget.DISK;
    // What it runs may not be on its disk.
    if (bootsOverNetwork(turn.record)) bootOverNetwork(turn, value);
    return { case: 'setPower', value };
  },
  complete: (turn, run) => {
    notePower(turn, run, { on: true });
    return undefined;
  },
};

/** From here on the host's image is what it asks for; an agent is told of that before the order. */
export const bootImage: OperationStep = {
  ...powerOn,
  begin: (turn, run) => {
    beginUse(turn);
    turn.record.inRunner = false;
    noteDeployed(turn, run);
  },
  operation: (turn) => {
    const value = setPower(turn, { on: true });
    bootOverNetwork(turn, value);
    return { case: 'setPower', value };
  },
};

function bootOverNetwork({ spec }: Turn, value: agent.SetPower): void {
  value.bootFrom = agent.BootTarget.IMAGE;
  value.bootMacs = [...spec.bootMacs];
}

export const bootRunner = bootStep(agent.BootTarget.RUNNER);

/** A person works on the host there: it may be written, though not by a step of ours. */
export const bootRescue: OperationStep = {
  ...bootStep(agent.BootTarget.RESCUE),
  begin: (turn) => {
    beginUse(turn);
    turn.record.switchedOnRun = 0n;
    turn.record.inRunner = false;
  },
};

function bootStep(target: agent.BootTarget): OperationStep {
  return {
    kind: 'operation',
    begin: (turn) => {
      turn.record.switchedOnRun = 0n;
      turn.record.inRunner = false;
    },
    timeoutMs: operationTimeout,
    operation: (turn) => {
      const value = setPower(turn, { on: true });
      value.bootFrom = target;
      value.bootMacs = [...turn.spec.bootMacs];
      value.grantExpireTime = later(turn, bootWindowMs(turn));
      return { case: 'setPower', value };
    },
    complete: (turn, run) => {
      notePower(turn, run, { on: true });
      // It may boot now; whether it does, its runner says.
      if (isByHand(turn.spec)) delete turn.status.poweredOn;
      return undefined;
    },
  };
}

export const awaitRunner: ConditionStep = {
  kind: 'condition',
  timeoutMs: (timing, { spec }) => (isByHand(spec) ? undefined : timing.bootTimeoutMs),
  waiting: { reason: 'runner', message: 'the host is booting into the runner' },
  waitsFor: ({ spec }) => (isByHand(spec) ? bootByHand(spec) : undefined),
  sees: (turn) => {
    if (turn.status.poweredOn === false) {
      return 'the host is off: it was switched on to boot the runner, and has been seen off since';
    }
    const run = activeRun(turn.status);
    return run === undefined ? undefined : whyNoRunner(turn, run);
  },
  met: (turn, run) => turn.record.runner?.bootOperationId === bootOperationId(turn, run),
};

function bootByHand({ bmc }: HostSpec) {
  const asked = 'switch the host on and let it boot from the network';
  const message = bmc?.wakeOnLan === true ? `${asked}, if Wake-on-LAN does not` : asked;
  return { reason: 'person', message } as const;
}

/** What is known of a runner that does not come; undefined: nothing. */
export function whyNoRunner(turn: Turn, run: Run): string | undefined {
  const { runnerRefused: refused, netbootInstead: instead } = turn.record;
  const boot = bootOperationId(turn, run);
  if (refused?.bootOperationId === boot) return `its runner was refused: ${refused.message}`;
  if (instead?.insteadOfOperationId !== boot) {
    const trace = bootTraceOf(turn, boot);
    return trace === undefined ? undefined : bootText(trace);
  }
  return (
    `the host is booting into the runner, and has not been seen; ${instead.hostName} ` +
    `(${instead.mac}) netbooted meanwhile without an order: if it was off before, the BMC ` +
    `addresses of ${turn.host.name} and ${instead.hostName} may be crossed`
  );
}

export function bmcAccess({ spec, status, context }: Turn): agent.BmcAccess {
  return accessTo(spec.bmc, status.bmcIdentity, context.credentialVersion ?? 0n);
}

function setPower(turn: Turn, { on }: { readonly on: boolean }): agent.SetPower {
  const bmc = bmcAccess(turn);
  const { spec } = turn;
  if (on && spec.bmc?.wakeOnLan === true) bmc.wakeMacs = [...spec.bootMacs];
  const bootMethod = spec.boot?.method ?? 0;
  return create(agent.SetPowerSchema, { bmc, on, bootMethod, ...expectedIdentity(turn) });
}

/** What the BMC must still say of itself before anything is done by it. */
export function expectedIdentity({ status }: Turn) {
  const { bmcIdentity } = status;
  return bmcIdentity === undefined ? {} : { expectedIdentity: bmcIdentity };
}
