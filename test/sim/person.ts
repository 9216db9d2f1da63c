/**
 * The person who keeps a rack going while no operators are simulated: asks for cleans, tries again
 * what was given up, and lifts what only a person may lift.
 */
import {
  FailureType,
  HostState,
  hasFault,
  hostWaitOf,
  isGivenUp,
  type Run,
  RunPhase,
  type store,
  userActor,
} from '@rackwright/messages';
import type { Judge } from './judge.ts';
import { counterOf } from './operators/counter.ts';
import type { Replica, WorldView } from './view.ts';

type HostRequest = Parameters<Replica['hosts']['request']>[1];

const roundMs = 30_000;

/** Goes round until the simulation ends; asks for nothing new once the faults have stopped. */
export function startPerson(view: WorldView, judge: Judge): void {
  const by = { actor: userActor('person') };
  const round = () => {
    view.heap.after(view.chance.around(roundMs), round);
    const [replica] = view.replicas();
    if (replica === undefined) return;
    const ask = (key: string, request: HostRequest) =>
      void replica.hosts.request(key.slice('hosts.'.length), request, by).catch(() => undefined);
    acceptStore(view, judge, replica);
    for (const { key, record } of judge.hosts.values()) {
      for (const request of whatToAsk(view, record)) ask(key, request);
    }
  };
  round();
}

/** Accepts, by the operators' API, that a store that was put back has lost something. */
function acceptStore(view: WorldView, judge: Judge, replica: Replica): void {
  const isHeld = [...judge.hosts.values()].some(({ record }) =>
    record.host?.status?.holds.some(({ reason }) => reason.startsWith('restored')),
  );
  if (!isHeld || view.random.fraction() < 0.5) return;
  const request = { name: 'racks/r1', reason: 'the backup is what we have' };
  counterOf(view, replica)
    .racks.acceptRestoredStore(request)
    .catch((error: unknown) => view.trace(`person: not accepted: ${String(error)}`));
}

function* whatToAsk(view: WorldView, record: store.HostRecord): Generator<HostRequest> {
  const { status } = record.host ?? {};
  if (status === undefined || status.run?.phase === RunPhase.RUNNING) return;
  yield* asksOfRun(view, record);
  for (const { reason } of status.holds) {
    yield { kind: 'releaseHold', hold: reason, reason: 'looked at' };
  }
  const another = view.faulty() && view.random.fraction() < 0.4;
  if (another && status.state === HostState.AVAILABLE) yield { kind: 'clean', steps: [] };
}

/** For what waits, was given up, or is crossed with another machine. */
function* asksOfRun(
  view: WorldView,
  { host, lookFirstSince }: store.HostRecord,
): Generator<HostRequest> {
  const { run, backoff, faults = [] } = host?.status ?? {};
  if (run !== undefined && isHeld(run)) {
    yield { kind: view.random.fraction() < 0.5 ? 'resume' : 'skip', reason: 'looked' };
  }
  // Pools leave a host alone that nobody has looked at since a restore, as its goal does.
  const isUnlooked = lookFirstSince !== undefined && view.random.fraction() < 0.5;
  const givenUp = isUnlooked || isGivenUp(backoff);
  // Whose BMC turned out to be another one's is proved anew.
  const isOther = run?.error?.type === FailureType.IDENTITY_MISMATCH;
  if (givenUp) yield { kind: isOther && view.random.fraction() < 0.5 ? 'verify' : 'retry' };
  // A host that wants nothing may still keep the identity of another one's BMC.
  const isCrossed = hasFault(faults, 'bmcIdentityMismatch');
  if (isCrossed && !givenUp && !view.faulty()) yield { kind: 'verify' };
}

function isHeld({ phase, waiting }: Run): boolean {
  return phase === RunPhase.WAITING && hostWaitOf(waiting) === 'hold';
}
