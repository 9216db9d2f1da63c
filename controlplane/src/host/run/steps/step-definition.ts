/** A step of a run for the engine: an operation of the agent, a wait, or an outgoing call. */
import type { agent, HostWait, Run, RunFailure, RunStep } from '@rackwright/messages';
import type { Pass, PassView } from '../../pass/pass.ts';
import type { DeepReadonly, RunView, StepView } from '../../pass/read-only.ts';
import type { EngineTiming } from '../../pass/timing.ts';

export interface OperationOptions {
  /** The interrupted operation whose effect is checked instead of another run of it. */
  readonly checkOf?: DeepReadonly<agent.Operation> | undefined;
  /** The progress of the interrupted operation, in the runner's own words. */
  readonly lastProgress?: string;
}

/** A step that is one operation of the agent. */
export interface OperationStep {
  readonly kind: 'operation';
  /** Executed by the runner of the run's boot, not by the agent itself. */
  readonly inBand?: true;
  /**
   * The effect on the host from here on, whatever the result of the step; once for each start of
   * it.
   */
  readonly begin?: (pass: Pass, run: Run) => void;
  timeoutMs(timing: EngineTiming): number;
  /** Where the remaining time does not follow from the configuration alone. */
  readonly leftMs?: (pass: PassView, run: RunView) => number;
  readonly operation: (
    pass: PassView,
    run: RunView,
    step: StepView,
    options: OperationOptions,
  ) => agent.Operation['kind'];
  /** Records the completion; returns why it is no success, or undefined. */
  readonly complete: (
    pass: Pass,
    run: Run,
    step: RunStep,
    result: agent.Complete,
  ) => RunFailure | undefined;
}

/** A step that waits for a fact. */
export interface ConditionStep {
  readonly kind: 'condition';
  readonly timeoutMs: (timing: EngineTiming, pass: PassView) => number | undefined;
  readonly waiting: { readonly reason: HostWait; readonly message: string };
  /** What else a host without a BMC waits for. */
  readonly waitsFor?: (pass: PassView) => ConditionStep['waiting'] | undefined;
  /** Why it is not met, where more is known. */
  readonly sees?: (pass: PassView, step: StepView) => string | undefined;
  /** What it waits for does not come from the agent. */
  readonly needsNoAgent?: true;
  readonly begin?: (pass: Pass) => void;
  readonly met: (pass: PassView, run: RunView, step: StepView) => boolean;
}

/** A step of the control plane itself: a call to an external receiver (`calls.ts`). */
export interface CallStep {
  readonly kind: 'call';
  timeoutMs(timing: EngineTiming): number;
}

export type StepDefinition = OperationStep | ConditionStep | CallStep;

/** For steps with a single request to the BMC or the runner. */
export const operationTimeout = (timing: EngineTiming) => timing.operationTimeoutMs;
