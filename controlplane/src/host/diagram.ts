/** The picture of the host's life in the README, drawn from the tables that the machine runs on. */
import { HostState, RunKind, RunOutcome } from '@rackwright/api';
import { type Kind, type Landing, landings, requests, type State } from './machine.ts';
import { runKindName } from './turn.ts';

const stateNames: { readonly [S in State]: string } = {
  [HostState.NEW]: 'new',
  [HostState.MANAGEABLE]: 'manageable',
  [HostState.AVAILABLE]: 'available',
  [HostState.PROVISIONED]: 'provisioned',
  [HostState.EXTERNAL]: 'external',
  [HostState.GONE]: 'gone',
};

/** States that some run can lead to or start from in this version. */
const drawnStates: readonly State[] = [HostState.NEW, HostState.MANAGEABLE, HostState.AVAILABLE];

const drawnKinds: readonly Kind[] = [
  RunKind.VERIFY,
  RunKind.INSPECT,
  RunKind.CLEAN,
  RunKind.DELETE,
];

/**
 * A Mermaid state diagram: every move between stable states, labelled with the run that makes it.
 */
export function stateDiagram(): string {
  const lines = drawnStates.flatMap((from) => drawnKinds.flatMap((kind) => edges(from, kind)));
  return ['stateDiagram-v2', '  [*] --> new: create', ...lines, '  gone --> [*]'].join('\n');
}

function edges(from: State, kind: Kind): string[] {
  if (requests[requestOf(kind)][from] !== 'accept') return [];
  const moves = new Map<State, string[]>();
  for (const outcome of outcomes) {
    for (const to of targets(from, landings[kind][outcome.value])) {
      if (to !== from) moves.set(to, [...(moves.get(to) ?? []), outcome.name]);
    }
  }
  return [...moves].map(([to, names]) => {
    const label = `${runKindName(kind)} ${names.join(', ')}`;
    return `  ${stateNames[from]} --> ${stateNames[to]}: ${label}`;
  });
}

const outcomes = [
  { value: RunOutcome.SUCCEEDED, name: 'succeeded' },
  { value: RunOutcome.FAILED, name: 'failed' },
  { value: RunOutcome.TIMED_OUT, name: 'timed out' },
  { value: RunOutcome.CANCELLED, name: 'cancelled' },
] as const;

function requestOf(kind: Kind): keyof typeof requests {
  const names = { 1: 'verify', 2: 'inspect', 3: 'clean', 4: 'delete', 5: 'powerOff' } as const;
  return names[kind];
}

function targets(from: State, landing: Landing): State[] {
  switch (landing.to) {
    case 'same':
      return [from];
    case 'proved':
      return [from === HostState.NEW ? HostState.MANAGEABLE : from];
    case 'goal':
      return [HostState.AVAILABLE, HostState.MANAGEABLE];
    default:
      return [landing.to];
  }
}
