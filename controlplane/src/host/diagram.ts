/** The diagram of the host's life in the README, generated from the state machine's tables. */
import { HostState, RunKind, RunOutcome } from '@rackwright/messages';
import { requests } from './life/machine-tables.ts';
import { runKindName } from './pass/pass.ts';
import {
  causes,
  type KnownRunKind,
  type Landing,
  landings,
  type State,
  type TransitionCause,
} from './pass/transitions.ts';
import type { RequestKind } from './pass/types.ts';

const stateNames: { readonly [S in State]: string } = {
  [HostState.NEW]: 'new',
  [HostState.MANAGEABLE]: 'manageable',
  [HostState.AVAILABLE]: 'available',
  [HostState.PROVISIONED]: 'provisioned',
  [HostState.EXTERNAL]: 'external',
  [HostState.GONE]: 'gone',
};

/** The request that starts a run of each kind. */
const startedBy: { readonly [K in KnownRunKind]: RequestKind } = {
  [RunKind.VERIFY]: 'verify',
  [RunKind.INSPECT]: 'inspect',
  [RunKind.CLEAN]: 'clean',
  [RunKind.PROVISION]: 'provision',
  [RunKind.REIMAGE]: 'reimage',
  [RunKind.SERVICE]: 'service',
  [RunKind.WORKFLOW]: 'workflow',
  [RunKind.RELEASE]: 'release',
  [RunKind.POWER]: 'powerOff',
  [RunKind.RESCUE]: 'rescue',
  [RunKind.ADOPT]: 'adopt',
  [RunKind.DELETE]: 'delete',
};

const drawnStates = Object.keys(stateNames).map(Number) as State[];
const drawnKinds = Object.keys(startedBy).map(Number) as KnownRunKind[];

/**
 * A Mermaid state diagram: every move between stable states, labelled with the run or the cause
 * that makes it; and each end of a run that keeps the host where it is only because nothing was
 * written.
 */
export function stateDiagram(): string {
  const lines = drawnStates.flatMap((from) => [
    ...drawnKinds.flatMap((kind) => edges(from, kind)),
    ...causeEdges(from),
  ]);
  return ['stateDiagram-v2', '  [*] --> new: create', ...lines, '  gone --> [*]'].join('\n');
}

const causeTexts: { readonly [S in TransitionCause]: string } = {
  used: 'may have been used',
  otherMachine: 'another machine answers',
  unproved: 'erasure not proved again',
  changed: 'hardware changed',
  written: 'an image is being written',
  unwanted: 'goal is less',
  notUnderstood: 'deleted by force, with work of a newer version',
};
const drawnCauses = Object.keys(causeTexts) as TransitionCause[];

/** Causes that lead to the same state share an edge. */
function causeEdges(from: State): string[] {
  const moves = new Map<State, string[]>();
  for (const cause of drawnCauses) {
    const { to = from } = causes[cause][from];
    if (to !== from && from !== HostState.GONE) {
      moves.set(to, [...(moves.get(to) ?? []), causeTexts[cause]]);
    }
  }
  return [...moves].map(
    ([to, labels]) => `  ${stateNames[from]} --> ${stateNames[to]}: ${labels.join(' / ')}`,
  );
}

function edges(from: State, kind: KnownRunKind): string[] {
  if (requests[startedBy[kind]][from] !== 'accept') return [];
  const moves = new Map<State, string[]>();
  const untouched = new Map<State, string[]>();
  const add = (to: State, name: string, into = moves) =>
    into.set(to, [...(into.get(to) ?? []), name]);
  for (const { value, name } of outcomes) {
    const landing = landings[kind][value];
    for (const to of targets(from, landing)) if (to !== from) add(to, name);
    if (landing.untouched !== undefined) add(landing.untouched, name, untouched);
  }
  const edge = (to: State, names: readonly string[], when = '') =>
    `  ${stateNames[from]} --> ${stateNames[to]}: ${runKindName(kind)} ${names.join(', ')}${when}`;
  return [
    ...[...moves].map(([to, names]) => edge(to, names)),
    ...[...untouched].map(([to, names]) => edge(to, names, ' before a write')),
  ];
}

const outcomes = [
  { value: RunOutcome.SUCCEEDED, name: 'succeeded' },
  { value: RunOutcome.FAILED, name: 'failed' },
  { value: RunOutcome.TIMED_OUT, name: 'timed out' },
  { value: RunOutcome.CANCELLED, name: 'cancelled' },
] as const;

function targets(from: State, landing: Landing): State[] {
  switch (landing.to) {
    case 'same':
      return [from];
    case 'proved':
      return [from === HostState.NEW ? HostState.MANAGEABLE : from];
    case 'adopted':
      return [HostState.EXTERNAL, HostState.PROVISIONED];
    case 'goal':
      return [HostState.AVAILABLE, HostState.MANAGEABLE];
    default:
      return [landing.to];
  }
}
