/**
 * The person who keeps a rack going while no operators are simulated: asks for cleans, tries again
 * what was given up, and lifts what only a person may lift.
 */
import { FailureType, HostState, RunPhase } from '@rackwright/messages';
import type { Judge } from './judge.ts';
import { counterOf } from './operators/counter.ts';
import type { Replica, WorldView } from './view.ts';

const roundMs = 30_000;

/** Goes round until the simulation ends; asks for nothing new once the faults have stopped. */
export function startPerson(view: WorldView, judge: Judge): void {
  const by = { actor: 'user:person' };
  const round = () => {
    view.heap.after(view.chance.around(roundMs), round);
    const [replica] = view.replicas();
    if (replica === undefined) return;
    const ask = (key: string, request: Parameters<typeof replica.hosts.request>[1]) =>
      void replica.hosts.request(key.slice('hosts.'.length), request, by).catch(() => undefined);
    acceptStore(view, judge, replica);
    for (const { key, record } of judge.hosts.values()) {
      const status = record.host?.status;
      if (status === undefined || status.run?.phase === RunPhase.RUNNING) continue;
      if (status.run?.phase === RunPhase.WAITING && status.run.waiting?.reason === 'hold') {
        ask(key, { kind: view.random.fraction() < 0.5 ? 'resume' : 'skip', reason: 'looked' });
      }
      // Pools leave a host alone that nobody has looked at since a restore, as its goal does.
      const isUnlooked = record.lookFirstSince !== undefined && view.random.fraction() < 0.5;
      const givenUp = isUnlooked || (status.backoff?.givenUpReason ?? '') !== '';
      // Whose BMC turned out to be another one's is proved anew.
      const isOther = status.run?.error?.type === FailureType.IDENTITY_MISMATCH;
      if (givenUp) ask(key, { kind: isOther && view.random.fraction() < 0.5 ? 'verify' : 'retry' });
      // A host that wants nothing may still keep the identity of another one's BMC.
      const isCrossed = status.faults.some(({ type }) => type === 'bmcIdentityMismatch');
      if (isCrossed && !givenUp && !view.faulty()) ask(key, { kind: 'verify' });
      for (const { reason } of status.holds) {
        ask(key, { kind: 'releaseHold', hold: reason, reason: 'looked at' });
      }
      const another = view.faulty() && view.random.fraction() < 0.4;
      if (another && status.state === HostState.AVAILABLE) ask(key, { kind: 'clean', steps: [] });
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
