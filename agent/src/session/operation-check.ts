/**
 * Whether an operation is one that this agent can understand (R8), and which checks it needs. Pure.
 * Details that only the executor can judge, such as a step's own arguments, are not checked here.
 */
import { agent, byHand, type OperationId } from '@rackwright/messages';
import type { ExecutedKind } from './executor.ts';

export type OperationCheck =
  | {
      readonly kind: 'execute';
      /** At most one such operation may run for a host (R12). */
      readonly exclusive: boolean;
      /** Destroys data: needs the work lease (R11). */
      readonly destructive: boolean;
      /** The name in its progress reports: "interface.step", or the kind. */
      readonly step: string;
    }
  | { readonly kind: 'cancel'; readonly targetId: OperationId }
  | { readonly kind: 'unsupported'; readonly problem: string };

/** Checks every required field. `kinds`: the kinds that the executor supports. */
export function checkOperation(
  operation: agent.Operation,
  kinds: readonly ExecutedKind[],
): OperationCheck {
  const { id, hostUid, kind } = operation;
  if (hostUid === '') return missing('host_uid');
  if (!id.startsWith(`${hostUid}/`)) return bad('id', `"${id}" does not begin with host_uid`);
  if (kind.case === undefined) return missing('kind, of those known here,');
  if (kind.case === 'cancel') {
    const targetId = kind.value.operationId;
    return targetId === '' ? missing('cancel.operation_id') : { kind: 'cancel', targetId };
  }
  if (!kinds.includes(kind.case)) return bad('kind', `${kind.case} is not executed here`);
  if (operation.deadline === undefined) return missing('deadline');
  return checkKind(kind);
}

function checkKind(kind: Extract<agent.Operation['kind'], { case: ExecutedKind }>): OperationCheck {
  switch (kind.case) {
    case 'verifyAccess':
      return badBmc('verify_access', kind.value.bmc) ?? execute(kind.case);
    case 'setPower':
      return badBmc('set_power', kind.value.bmc) ?? checkSetPower(kind.value);
    case 'inspect':
      if (kind.value.bootOperationId === '') return missing('inspect.boot_operation_id');
      return execute(kind.case, { exclusive: true });
    case 'runStep':
      return checkRunStep(kind.value);
  }
}

function checkSetPower(setPower: agent.SetPower): OperationCheck {
  const { on, bootFrom } = setPower;
  if (on === undefined) return missing('set_power.on');
  if (on && setPower.shutdownDeadline !== undefined) {
    return bad('set_power.shutdown_deadline', 'a host that is switched on shuts nothing down');
  }
  switch (bootFrom) {
    // Power alone; the boot override stays as it is.
    case agent.BootTarget.UNSPECIFIED:
      return execute('setPower', { exclusive: true });
    case agent.BootTarget.DISK:
    case agent.BootTarget.IMAGE:
      if (!on) return bad('set_power.boot_from', 'a host that is switched off boots nothing');
      return execute('setPower', { exclusive: true });
    case agent.BootTarget.RUNNER:
    case agent.BootTarget.RESCUE:
      if (!on) return bad('set_power.boot_from', 'a host that is switched off boots nothing');
      if (setPower.bootMacs.length === 0) return missing('set_power.boot_macs');
      if (setPower.grantExpireTime === undefined) return missing('set_power.grant_expire_time');
      return execute('setPower', { exclusive: true });
    default:
      return bad('set_power.boot_from', `${String(bootFrom)} is not known here`);
  }
}

function checkRunStep(runStep: agent.RunStep): OperationCheck {
  const { step, mode, destructive, bootOperationId } = runStep;
  if (step === '') return missing('run_step.step');
  // Out of band the BMC replaces the runner of a boot.
  const problem = runStep.bmc === undefined ? undefined : badBmc('run_step', runStep.bmc);
  if (problem !== undefined) return problem;
  // A step of a deployment that is the agent's own needs neither.
  const isOwn = runStep.deployment !== undefined && destructive === false;
  if (runStep.bmc === undefined && bootOperationId === '' && !isOwn) {
    return missing('run_step.boot_operation_id');
  }
  if (destructive === undefined) return missing('run_step.destructive');
  switch (mode) {
    case agent.StepMode.RUN:
      return execute(step, { exclusive: true, destructive });
    case agent.StepMode.CHECK:
      return execute(step, { exclusive: true });
    case agent.StepMode.UNSPECIFIED:
      return missing('run_step.mode');
    default:
      return bad('run_step.mode', `${String(mode)} is not known here`);
  }
}

function badBmc(within: string, bmc: agent.BmcAccess | undefined): OperationCheck | undefined {
  if (bmc === undefined) return missing(`${within}.bmc`);
  if (bmc.protocol === byHand) return undefined;
  if (bmc.address === '') return missing(`${within}.bmc.address`);
  if (bmc.credential === '') return missing(`${within}.bmc.credential`);
  return undefined;
}

function execute(
  step: string,
  { exclusive = false, destructive = false }: { exclusive?: boolean; destructive?: boolean } = {},
): OperationCheck {
  return { kind: 'execute', exclusive, destructive, step };
}

function missing(field: string): OperationCheck {
  return { kind: 'unsupported', problem: `${field} is missing` };
}

function bad(field: string, why: string): OperationCheck {
  return { kind: 'unsupported', problem: `${field}: ${why}` };
}
