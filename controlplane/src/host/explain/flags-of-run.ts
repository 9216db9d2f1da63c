/** The flags of a command that repeats a run. Pure. */
import { FailureType, type Run, RunKind, type RunStep } from '@rackwright/messages';
import { engineSteps } from '../pass/step-names.ts';
import { isEngineStep } from '../run/steps.ts';

/** The steps of the failed service, while no other run has come after it. */
export function stepFlags(run: Run | undefined): string {
  const steps = run?.kind === RunKind.SERVICE ? run.steps : [];
  const flags = steps
    .filter(({ name }) => !isEngineStep(name))
    .map((step) => `--step ${shellWord([step.name, ...pairsOf(step)].join(','))}`);
  return flags.join(' ') || '--step STEP';
}

function pairsOf({ arguments: given }: RunStep): string[] {
  return Object.entries(given).map(([name, value]) => `${name}=${value}`);
}

export function powerAction(run: Run | undefined): string {
  const names = run?.steps.map(({ name }) => name) ?? [];
  if (!names.includes(engineSteps.on)) return 'off';
  // A host that is already on boots its disk only after it was switched off.
  return names.includes(engineSteps.off) || run?.error?.type === FailureType.CONFLICT
    ? 'reset'
    : 'on';
}

/** Quoted as one word of a shell. */
function shellWord(text: string): string {
  return /^[\w.,:=/@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
