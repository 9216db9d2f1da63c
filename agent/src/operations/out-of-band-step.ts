/** The form of a step that the agent runs itself, on the BMC. */
import type { BeforeOrder, BmcAssertion, BmcDriver, BmcResult, TellUpdate } from '@rackwright/bmc';
import type { agent } from '@rackwright/messages';

export interface OutOfBandStep {
  readonly description: agent.StepDescription;
  /** What is wrong with the arguments, and what would be right; undefined: nothing. */
  readonly problem?: (values: Arguments) => string | undefined;
  run(
    driver: BmcDriver,
    values: Arguments,
    signal: AbortSignal,
    way: StepWay,
  ): Promise<BmcResult<BmcAssertion>>;
  /** It can wait for the effect of an earlier order without ordering anything. */
  readonly canCheck?: true;
}

export interface StepWay {
  readonly isCheck: boolean;
  readonly tell: TellUpdate;
  readonly beforeOrder: BeforeOrder;
}

type Arguments = Readonly<Record<string, string>>;
