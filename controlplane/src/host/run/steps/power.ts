/** BMC steps that every kind of run shares: identity, power, and boots. */

import { create } from '@bufbuild/protobuf';
import { agent, bootText, type HostSpec } from '@rackwright/messages';
import { accessTo } from '../../bmc/access.ts';
import { isByHand } from '../../bmc/protocols.ts';
import { bootsOverNetwork, noteDeployed } from '../../deployment/deployment.ts';
import { recordIdentity } from '../../erasure/identity.ts';
import { bootTraceOf } from '../../operation/boot-traces.ts';
import { bootOperationId } from '../../operation/boots.ts';
import { bootWindowMs, notePower } from '../../operation/person.ts';
import { noteShutdown } from '../../operation/shutdown.ts';
import { activeRun, forgetFailure, type Pass, type PassView, timeAfter } from '../../pass/pass.ts';
import type { DeepReadonly, RunView } from '../../pass/read-only.ts';
import { move } from '../../pass/transitions.ts';
import { type ConditionStep, type OperationStep, operationTimeout } from './step-definition.ts';

export const verifyAccess: OperationStep = {
  kind: 'operation',
  timeoutMs: operationTimeout,
  operation: (pass) => ({
    case: 'verifyAccess',
    value: create(agent.VerifyAccessSchema, { bmc: bmcAccess(pass) }),
  }),
  complete: (pass, _run, _step, result) => recordIdentity(pass, result.observations),
};

export const powerOff: OperationStep = {
  kind: 'operation',
  timeoutMs: operationTimeout,
  operation: (pass) => ({ case: 'setPower', value: setPower(pass, { on: false }) }),
  complete: (pass, run, step, { observations }) => {
    noteShutdown(pass, step, observations);
    notePower(pass, run, { on: false });
    pass.record.switchedOnRun = 0n;
    pass.record.inRunner = false;
    return undefined;
  },
};

/**
 * A system that is booted from here on may write: earlier certificates no longer apply to the
 * disks, and no earlier clean can be resumed.
 */
export function beginUse(pass: Pass): void {
  move(pass.status, 'used');
  forgetFailure(pass);
}

export const powerOn: OperationStep = {
  kind: 'operation',
  begin: (pass, run) => {
    beginUse(pass);
    pass.record.inRunner = false;
    // Whatever the result: it may take effect although its answer is lost.
    if (pass.record.switchedOnRun === 0n) pass.record.switchedOnRun = run.number;
  },
  timeoutMs: operationTimeout,
  operation: (pass) => {
    const value = setPower(pass, { on: true });
    value.bootFrom = agent.BootTarget.DISK;
    // Its image may not be on its disk.
    if (bootsOverNetwork(pass.record)) bootOverNetwork(pass, value);
    return { case: 'setPower', value };
  },
  complete: (pass, run) => {
    notePower(pass, run, { on: true });
    return undefined;
  },
};

/** From here on the requested image is the host's; the agent learns that before the order. */
export const bootImage: OperationStep = {
  ...powerOn,
  begin: (pass, run) => {
    beginUse(pass);
    pass.record.inRunner = false;
    noteDeployed(pass, run);
  },
  operation: (pass) => {
    const value = setPower(pass, { on: true });
    bootOverNetwork(pass, value);
    return { case: 'setPower', value };
  },
};

function bootOverNetwork({ spec }: PassView, value: agent.SetPower): void {
  value.bootFrom = agent.BootTarget.IMAGE;
  value.bootMacs = [...spec.bootMacs];
}

export const bootRunner = bootStep(agent.BootTarget.RUNNER);

/** A person works on the host there: it may be written to, though not by a step of ours. */
export const bootRescue: OperationStep = {
  ...bootStep(agent.BootTarget.RESCUE),
  begin: (pass) => {
    beginUse(pass);
    pass.record.switchedOnRun = 0n;
    pass.record.inRunner = false;
  },
};

function bootStep(target: agent.BootTarget): OperationStep {
  return {
    kind: 'operation',
    begin: (pass) => {
      pass.record.switchedOnRun = 0n;
      pass.record.inRunner = false;
    },
    timeoutMs: operationTimeout,
    operation: (pass) => {
      const value = setPower(pass, { on: true });
      value.bootFrom = target;
      value.bootMacs = [...pass.spec.bootMacs];
      value.grantExpireTime = timeAfter(pass, bootWindowMs(pass));
      return { case: 'setPower', value };
    },
    complete: (pass, run) => {
      notePower(pass, run, { on: true });
      // It may boot now; its runner reports whether it does.
      if (isByHand(pass.spec)) delete pass.status.poweredOn;
      return undefined;
    },
  };
}

export const awaitRunner: ConditionStep = {
  kind: 'condition',
  timeoutMs: (timing, { spec }) => (isByHand(spec) ? undefined : timing.bootTimeoutMs),
  waiting: { reason: 'runner', message: 'the host is booting into the runner' },
  waitsFor: ({ spec }) => (isByHand(spec) ? bootByHand(spec) : undefined),
  sees: (pass) => {
    if (pass.status.poweredOn === false) {
      return 'the host is off: it was switched on to boot the runner, and has been seen off since';
    }
    const run = activeRun(pass.status);
    return run === undefined ? undefined : whyNoRunner(pass, run);
  },
  met: (pass, run) => pass.record.runner?.bootOperationId === bootOperationId(pass, run),
};

function bootByHand({ bmc }: DeepReadonly<HostSpec>) {
  const instruction = 'switch the host on and let it boot from the network';
  const message = bmc?.wakeOnLan === true ? `${instruction}, if Wake-on-LAN does not` : instruction;
  return { reason: 'person', message } as const;
}

/** What is known of a missing runner; undefined: nothing. */
export function whyNoRunner(pass: PassView, run: RunView): string | undefined {
  const { runnerRefused: refused, netbootInstead: instead } = pass.record;
  const boot = bootOperationId(pass, run);
  if (refused?.bootOperationId === boot) return `its runner was refused: ${refused.message}`;
  if (instead?.insteadOfOperationId !== boot) {
    const trace = bootTraceOf(pass, boot);
    return trace === undefined ? undefined : bootText(trace);
  }
  return (
    `the host is booting into the runner, and has not been seen; ${instead.hostName} ` +
    `(${instead.mac}) netbooted meanwhile without an order: if it was off before, the BMC ` +
    `addresses of ${pass.host.name} and ${instead.hostName} may be crossed`
  );
}

export function bmcAccess({ spec, status, snapshot }: PassView): agent.BmcAccess {
  return accessTo(spec.bmc, status.bmcIdentity, snapshot.credentialVersion ?? 0n);
}

function setPower(pass: PassView, { on }: { readonly on: boolean }): agent.SetPower {
  const bmc = bmcAccess(pass);
  const { spec } = pass;
  if (on && spec.bmc?.wakeOnLan === true) bmc.wakeMacs = [...spec.bootMacs];
  const bootMethod = spec.boot?.method ?? 0;
  return create(agent.SetPowerSchema, { bmc, on, bootMethod, ...expectedIdentity(pass) });
}

/** The identity that the BMC must still report before any action. */
export function expectedIdentity({ status }: PassView) {
  const { bmcIdentity } = status;
  return bmcIdentity === undefined ? {} : { expectedIdentity: bmcIdentity };
}
