/** The console's colours of states. A tone goes with a word and a shape, never alone. Pure. */
import {
  enumWord,
  FaultSeverity,
  type Host,
  HostState,
  HostStateSchema,
  isGivenUp,
  type Run,
  RunKindSchema,
  RunOutcome,
  RunPhase,
  StepState,
  WorkflowRunState,
} from '@rackwright/messages';

export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'calm' | 'used';

/** States in the order of a host's life, with their tones. */
export const hostStates = [
  [HostState.NEW, 'calm'],
  [HostState.MANAGEABLE, 'warn'],
  [HostState.AVAILABLE, 'good'],
  [HostState.PROVISIONED, 'used'],
  [HostState.EXTERNAL, 'calm'],
] as const satisfies readonly (readonly [HostState, Tone])[];

export function stateWord(state: HostState): string {
  return enumWord(HostStateSchema, state) ?? 'unknown';
}

export function stateTone(state: HostState): Tone {
  return hostStates.find(([each]) => each === state)?.[1] ?? 'calm';
}

/** The tone of a state in the form of filters and counts: "available". */
export function toneOfWord(word: string): Tone {
  return hostStates.find(([state]) => stateWord(state) === word)?.[1] ?? 'calm';
}

/** The tone of a host as a whole. */
export function hostTone({ status }: Host): Tone {
  if (status === undefined) return 'calm';
  if (status.faults.some(({ severity }) => severity !== FaultSeverity.WARNING)) return 'bad';
  if (isGivenUp(status.backoff)) return 'bad';
  if (status.run?.phase === RunPhase.WAITING) return 'warn';
  if (status.run?.phase === RunPhase.RUNNING) return 'busy';
  return status.faults.length > 0 ? 'warn' : stateTone(status.state);
}

/** "clean 3" */
export function runWord({ kind, number }: Pick<Run, 'kind' | 'number'>): string {
  return `${enumWord(RunKindSchema, kind) ?? 'run'} ${number}`;
}

export function outcomeTone({ phase, outcome }: Pick<Run, 'phase' | 'outcome'>): Tone {
  if (phase === RunPhase.WAITING) return 'warn';
  if (phase === RunPhase.RUNNING) return 'busy';
  switch (outcome) {
    case RunOutcome.SUCCEEDED:
      return 'good';
    case RunOutcome.CANCELLED:
      return 'calm';
    default:
      return 'bad';
  }
}

const stepTones: Readonly<Record<StepState, Tone>> = {
  [StepState.UNSPECIFIED]: 'calm',
  [StepState.PENDING]: 'calm',
  [StepState.RUNNING]: 'busy',
  [StepState.SUCCEEDED]: 'good',
  [StepState.FAILED]: 'bad',
  [StepState.SKIPPED]: 'calm',
};

export function stepTone(state: StepState): Tone {
  return stepTones[state] ?? 'calm';
}

const workflowTones: Readonly<Record<WorkflowRunState, Tone>> = {
  [WorkflowRunState.UNSPECIFIED]: 'calm',
  [WorkflowRunState.PENDING]: 'warn',
  [WorkflowRunState.RUNNING]: 'busy',
  [WorkflowRunState.SUCCEEDED]: 'good',
  [WorkflowRunState.FAILED]: 'bad',
  [WorkflowRunState.TIMED_OUT]: 'bad',
  [WorkflowRunState.CANCELLED]: 'calm',
};

export function workflowTone(state: WorkflowRunState): Tone {
  return workflowTones[state] ?? 'calm';
}

/** The tone of a host in a pool, by the server's word for it. */
const poolTones: Readonly<Record<string, Tone>> = {
  current: 'good',
  waiting: 'calm',
  atGate: 'warn',
  out: 'busy',
  kept: 'used',
  failed: 'bad',
  unclaimed: 'calm',
  contested: 'warn',
  notReady: 'warn',
  missing: 'bad',
};

export function poolHostTone(state: string): Tone {
  return poolTones[state] ?? 'calm';
}
