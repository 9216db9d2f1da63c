/** The rest of a condition when its step is next. */
import { StepState } from '@rackwright/messages';
import { evaluate, type KnownValue } from './expression/evaluate.ts';
import { parseExpression } from './expression/parse.ts';
import type { stepStates } from './expression/references.ts';
import { expressionDepthMax, renderedBytesMax } from './limits.ts';
import type { StepOutcome } from './types.ts';

const states: Readonly<Record<StepState, (typeof stepStates)[number]>> = {
  [StepState.UNSPECIFIED]: 'pending',
  [StepState.PENDING]: 'pending',
  [StepState.RUNNING]: 'running',
  [StepState.SUCCEEDED]: 'succeeded',
  [StepState.FAILED]: 'failed',
  [StepState.SKIPPED]: 'skipped',
};

/** A rendered condition may be longer than one that people write. */
const residualLimits = { charsMax: renderedBytesMax, depthMax: expressionDepthMax + 2 };

/**
 * Whether a rendered condition holds now. An empty one always does; an unreadable one never. Steps
 * that are not in the map are pending.
 */
export function conditionHolds(
  condition: string,
  steps: ReadonlyMap<string, StepOutcome>,
): boolean {
  if (condition === '') return true;
  const parsed = parseExpression(condition, residualLimits);
  if (parsed.kind === 'bad') return false;
  const result = evaluate(parsed.expression, ([root, name, field]) =>
    root === 'steps' ? fieldOf(steps.get(String(name)), field) : { value: undefined },
  );
  return 'value' in result && result.value === true;
}

function fieldOf(outcome: StepOutcome | undefined, field: string | number | undefined): KnownValue {
  switch (field) {
    case 'state':
      return { value: states[outcome?.state ?? StepState.PENDING] };
    case 'exitCode':
      return { value: outcome?.exitCode === undefined ? undefined : BigInt(outcome.exitCode) };
    case 'output':
      // A program's last line ends with a line break, which a condition does not contain.
      return { value: outcome?.lastOutput.trimEnd() ?? '' };
    default:
      return { value: undefined };
  }
}
