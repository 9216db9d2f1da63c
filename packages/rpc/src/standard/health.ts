/** grpc.health.v1 for a server: whether each of its services can do its work now. */

import {
  type BoundService,
  bind,
  type CallContext,
  Health,
  notFound,
  HealthCheckResponse_ServingStatus as ServingStatus,
  unavailable,
} from '@rackwright/messages';
import { networkOfPeer } from '../wire/caller-address.ts';

/** The name of the server as a whole. */
const wholeServer = '';

/** Streams of health at once, in all and to one address: clients need no token for one. */
const watchesMax = 512;
const watchesPerAddressMax = 16;
/** When a watch that was refused because there was no room should be retried. */
const watchAgainMs = 30_000;

/** Health of one server; the program sets it, peers query it. */
export interface HealthBoard {
  readonly service: BoundService;
  /** Sets one service's health, or with '' the whole server's. */
  set(service: string, serving: boolean): void;
  /** Whether this service, or with '' the whole server, serves now. */
  isServing(service: string): boolean;
  /** Sets the health of all services and of the whole server. */
  setAll(serving: boolean): void;
}

/** A board on which `services` and the whole server are not yet serving. */
export function createHealthBoard(services: readonly string[]): HealthBoard {
  const board = new Map<string, ServingStatus>(
    [wholeServer, ...services].map((name) => [name, ServingStatus.NOT_SERVING]),
  );
  const watchers = new Set<() => void>();
  const watches = new Watches();
  const service = bind(Health, {
    check: (request) => {
      const status = board.get(request.service);
      if (status === undefined) throw notFound(`Health of service "${request.service}"`);
      return { status };
    },
    list: () => ({
      statuses: Object.fromEntries([...board].map(([name, status]) => [name, { status }])),
    }),
    watch: async function* (request, context) {
      const now = () => board.get(request.service) ?? ServingStatus.SERVICE_UNKNOWN;
      let sent: ServingStatus | undefined;
      const leave = watches.enter(networkOfPeer(context.peerAddress));
      try {
        while (!context.signal.aborted) {
          const status = now();
          if (status !== sent) yield { status };
          sent = status;
          // While the yield was pending it may have changed again.
          if (now() === sent) await changed(watchers, context);
        }
      } finally {
        leave();
      }
    },
  });
  const set = (names: Iterable<string>, serving: boolean) => {
    for (const name of names) {
      board.set(name, serving ? ServingStatus.SERVING : ServingStatus.NOT_SERVING);
    }
    for (const wake of [...watchers]) wake();
  };
  return {
    service,
    isServing: (name) => board.get(name) === ServingStatus.SERVING,
    set: (name, serving) => set([name], serving),
    setAll: (serving) => set([...board.keys()], serving),
  };
}

/** The watches, by address. */
class Watches {
  readonly #addresses = new Map<string, number>();
  #all = 0;

  /** Returns the function that ends the watch; throws when there is no room for it. */
  enter(address: string): () => void {
    const own = this.#addresses.get(address) ?? 0;
    if (this.#all >= watchesMax || own >= watchesPerAddressMax) {
      const text = 'As many watch the health as may; ask by Check, or come again later.';
      throw unavailable('TOO_MANY_WATCHES', text, watchAgainMs);
    }
    this.#all += 1;
    this.#addresses.set(address, own + 1);
    return () => {
      this.#all -= 1;
      const left = (this.#addresses.get(address) ?? 1) - 1;
      if (left === 0) this.#addresses.delete(address);
      else this.#addresses.set(address, left);
    };
  }
}

function changed(watchers: Set<() => void>, { signal }: CallContext): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      watchers.delete(wake);
      signal.removeEventListener('abort', wake);
      resolve();
    };
    if (signal.aborted) return resolve();
    watchers.add(wake);
    signal.addEventListener('abort', wake, { once: true });
  });
}
