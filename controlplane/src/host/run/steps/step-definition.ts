/** What a step of a run is to the engine: an operation of the agent, a wait, or a call outside. */
import type { agent, Run, RunFailure, RunStep } from '@rackwright/messages';
import type { Pass } from '../../pass/pass.ts';
import type { EngineTiming } from '../../pass/timing.ts';
import type { HostWait } from '../../pass/waiting.ts';

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
  begin?(pass: Pass, run: Run): void;
  timeoutMs(timing: EngineTiming): number;
  /** Where the time that is left does not follow from the configuration alone. */
  leftMs?(pass: Pass, run: Run): number;
  operation(
    pass: Pass,
    run: Run,
    step: RunStep,
    options: OperationOptions,
  ): agent.Operation['kind'];
  /** Takes in what the completion shows; returns why it is no success, or undefined. */
  complete(pass: Pass, run: Run, step: RunStep, result: agent.Complete): RunFailure | undefined;
}

/** A step that waits for a fact. */
export interface ConditionStep {
  readonly kind: 'condition';
  timeoutMs(timing: EngineTiming, pass: Pass): number | undefined;
  readonly waiting: { readonly reason: HostWait; readonly message: string };
  /** For what else a host waits that has no BMC. */
  waitsFor?(pass: Pass): ConditionStep['waiting'] | undefined;
  /** Says why it is not met, where more is known. */
  sees?(pass: Pass, step: RunStep): string | undefined;
  /** What it waits for does not come from the agent. */
  readonly needsNoAgent?: true;
  begin?(pass: Pass): void;
  met(pass: Pass, run: Run, step: RunStep): boolean;
}

/** A step that the control plane does itself, by a call to somebody outside (`calls.ts`). */
export interface CallStep {
  readonly kind: 'call';
  timeoutMs(timing: EngineTiming): number;
}

export type StepDefinition = OperationStep | ConditionStep | CallStep;

/** For what asks the BMC or the runner for one thing. */
export const operationTimeout = (timing: EngineTiming) => timing.operationTimeoutMs;
