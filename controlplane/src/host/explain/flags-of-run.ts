/** What a command says that asks for a run again. Pure. */
import { FailureType, type Run, RunKind, type RunStep } from '@rackwright/messages';
import { engineSteps } from '../pass/step-names.ts';
import { isEngineStep } from '../run/steps.ts';

/** The steps of the service that failed, as long as no other run has come after it. */
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
  // A host that is on already boots its disk only when it is switched off before.
  return names.includes(engineSteps.off) || run?.error?.type === FailureType.CONFLICT
    ? 'reset'
    : 'on';
}

/** As a shell takes it in one piece. */
function shellWord(text: string): string {
  return /^[\w.,:=/@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
