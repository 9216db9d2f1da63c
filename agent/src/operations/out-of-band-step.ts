/** What a step is that the agent runs itself, on the BMC. */
import type { Asserted, BmcDriver, BmcResult } from '@rackwright/bmc';
import type { agent } from '@rackwright/messages';

export interface OutOfBandStep {
  readonly description: agent.StepDescription;
  /** What is wrong with the arguments, and what would be right; undefined: nothing. */
  readonly problem?: (values: Arguments) => string | undefined;
  run(driver: BmcDriver, values: Arguments, signal: AbortSignal): Promise<BmcResult<Asserted>>;
}

type Arguments = Readonly<Record<string, string>>;
