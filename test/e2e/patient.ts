/** Clients that wait for a control plane which is away: tests kill it, and restart it. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiFailure } from '@rackwright/messages';

/** How long a control plane may be away, on a machine that is busy with other tests. */
const awayMs = 180_000;
const pauseMs = 250;

type Call = (request: object, ...rest: unknown[]) => unknown;

function isAway(error: unknown): boolean {
  return error instanceof ApiFailure && error.error.kind === 'unavailable';
}

/**
 * The same clients, whose calls with one response are repeated while nobody answers. A request id
 * makes a change that is asked for twice one change.
 */
export function patient<Clients extends object>(clients: Clients): Clients {
  const services = Object.entries(clients).map(([name, client]) => [
    name,
    typeof client === 'object' && client !== null ? patientClient(client) : client,
  ]);
  return Object.fromEntries(services) as Clients;
}

function patientClient(client: object): object {
  return new Proxy(client, {
    get(target, name) {
      const call: unknown = Reflect.get(target, name);
      return typeof call === 'function' ? patientCall(call as Call) : call;
    },
  });
}

function patientCall(call: Call): Call {
  return (request, ...rest) => {
    const named = { requestId: randomUUID(), ...request };
    const first = call(named, ...rest);
    return first instanceof Promise ? repeatWhileAway(first, () => call(named, ...rest)) : first;
  };
}

async function repeatWhileAway(first: Promise<unknown>, again: () => unknown): Promise<unknown> {
  const endMs = Date.now() + awayMs;
  for (let attempt = first; ; attempt = Promise.resolve(again())) {
    try {
      return await attempt;
    } catch (error) {
      if (!isAway(error) || Date.now() > endMs) throw error;
      await sleep(pauseMs);
    }
  }
}
