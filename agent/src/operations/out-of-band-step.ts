/** The form of a step that the agent runs itself, on the BMC. */
import type {
  BeforeOrder,
  BmcAssertion,
  BmcDriver,
  BmcResult,
  OnUpdateProgress,
} from '@rackwright/bmc';
import type { agent } from '@rackwright/messages';

export interface OutOfBandStep {
  readonly description: agent.StepDescription;
  /** What is wrong with the arguments, and what would be right; undefined: nothing. */
  readonly problem?: (values: Arguments) => string | undefined;
  run(
    driver: BmcDriver,
    values: Arguments,
    signal: AbortSignal,
    hooks: StepHooks,
  ): Promise<BmcResult<BmcAssertion>>;
  /** It can wait for the effect of an earlier order without ordering anything. */
  readonly canCheck?: true;
}

export interface StepHooks {
  readonly isCheck: boolean;
  readonly onProgress: OnUpdateProgress;
  readonly beforeOrder: BeforeOrder;
}

type Arguments = Readonly<Record<string, string>>;
