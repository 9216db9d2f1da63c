/**
 * The one watch connection of the page: what it follows, whether it is live, and its recovery.
 *
 * Invariants:
 * 1. At most one watch is open; a page that follows something else ends it first.
 * 2. A watch that ends or falls silent is opened again without limit, with pauses. `onRecovery`
 *    reports that events were missed meanwhile, and each view then reads its data anew.
 * 3. No event is kept: a page may be open for weeks. The client keeps about a hundred bytes of each
 *    message until its call ends. So a call ends after a number of messages, and the next one
 *    resumes from its last position.
 */
import {
  type Host,
  WatchHostsResponse_Kind as HostsKind,
  HostView,
  type Pool,
  WatchPoolsResponse_Kind as PoolsKind,
  WatchRacksResponse_Kind as RacksKind,
} from '@rackwright/messages';
import {
  answerMs,
  type ConnectionEvent,
  type ConnectionState,
  connectionAfter,
  quietMs,
} from '../logic/connection.ts';
import { type Failure, isSignedOut } from '../logic/failure.ts';
import { type ConsoleClients, failureOf } from './client.ts';
import type { PageClock } from './clock.ts';

/** Messages of one call (invariant 3). */
const messagesOfCallMax = 4_000;

/** The subject that the page follows. */
export type Topic =
  | { readonly kind: 'hosts'; readonly filter: string }
  | { readonly kind: 'host'; readonly name: string }
  | { readonly kind: 'pools'; readonly name: string }
  | { readonly kind: 'racks' };

export type LinkEvent =
  | { readonly kind: 'host'; readonly host: Host; readonly isGone: boolean }
  | { readonly kind: 'pool'; readonly pool: Pool }
  | { readonly kind: 'other' };

type Observer<T> = (value: T) => void;

export class ConsoleLink {
  readonly #clients: ConsoleClients;
  readonly #clock: PageClock;
  #state: ConnectionState = { kind: 'opening' };
  #topic: Topic = { kind: 'racks' };
  #watching: AbortController | undefined;
  #cancelTimer: () => void = () => {};
  #epoch = 0;
  /** From where the next call goes on; empty: from now. */
  #position = '';
  #missedSome = false;
  readonly #stateObservers = new Set<Observer<ConnectionState>>();
  readonly #eventObservers = new Set<Observer<LinkEvent>>();
  readonly #recoveryObservers = new Set<Observer<number>>();
  readonly #signedOut: Observer<Failure>;

  constructor(clients: ConsoleClients, clock: PageClock, signedOut: Observer<Failure>) {
    this.#clients = clients;
    this.#clock = clock;
    this.#signedOut = signedOut;
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Follows something else from now on; the same again changes nothing. */
  follow(topic: Topic): void {
    if (sameTopic(topic, this.#topic) && this.#watching !== undefined) return;
    this.#topic = topic;
    // No event reports changes before the new watch is open.
    this.#missedSome = true;
    if (this.#state.kind !== 'resting') this.#open();
  }

  /** Ends the watch for good, as when the caller signs out. */
  close(): void {
    this.#cancelTimer();
    this.#watching?.abort();
    this.#watching = undefined;
  }

  /** The page is not seen for long, or is seen again. */
  setShown(isShown: boolean): void {
    const isResting = this.#state.kind === 'resting';
    if (isShown !== isResting) return;
    this.#become(isShown ? 'shown' : 'hidden');
    this.#missedSome = true;
    if (isShown) this.#open();
    else this.close();
  }

  /** Begins anew, as after signing in again. */
  restart(): void {
    this.#missedSome = true;
    this.#open();
  }

  /** A call of the page was answered, or was not. */
  heard(): void {
    if (this.#state.kind === 'live') this.#become('heard');
  }

  unreached(): void {
    if (this.#state.kind === 'live') this.#failed();
  }

  /** Tries at once, on a person's request. */
  retryNow(): void {
    if (this.#state.kind === 'lost') this.#open();
  }

  onState(observer: Observer<ConnectionState>): () => void {
    return added(this.#stateObservers, observer);
  }

  onEvent(observer: Observer<LinkEvent>): () => void {
    return added(this.#eventObservers, observer);
  }

  onRecovery(observer: Observer<number>): () => void {
    return added(this.#recoveryObservers, observer);
  }

  #open(position = ''): void {
    this.close();
    this.#position = position;
    const watching = new AbortController();
    this.#watching = watching;
    this.#listen();
    void this.#read(watching.signal);
  }

  async #read(signal: AbortSignal): Promise<void> {
    let left = messagesOfCallMax;
    try {
      for await (const event of this.#events(signal)) {
        if (signal.aborted) return;
        this.#become('heard');
        this.#listen();
        if (event === 'opened') this.#recovered();
        else for (const observer of this.#eventObservers) observer(event);
        left -= 1;
        if (left <= 0 && this.#position !== '') break;
      }
      if (signal.aborted) return;
      if (left <= 0) this.#open(this.#position);
      else this.#failed();
    } catch (error) {
      if (signal.aborted) return;
      const failure = failureOf(error);
      if (isSignedOut(failure)) this.#refused(failure);
      else this.#failed();
    }
  }

  async *#events(signal: AbortSignal): AsyncGenerator<LinkEvent | 'opened'> {
    const { hosts, pools, racks } = this.#clients;
    const options = { signal, timeoutMs: 0 };
    const topic = this.#topic;
    const position = this.#position;
    switch (topic.kind) {
      case 'hosts':
      case 'host': {
        for await (const message of hosts.watchHosts({ ...requestOf(topic), position }, options)) {
          const { kind, host } = this.#noted(message);
          if (kind === HostsKind.SYNCED) yield 'opened';
          else if (host !== undefined) {
            yield { kind: 'host', host, isGone: kind === HostsKind.DELETED };
          }
        }
        return;
      }
      case 'pools': {
        for await (const message of pools.watchPools({ name: topic.name, position }, options)) {
          const { kind, pool } = this.#noted(message);
          if (kind === PoolsKind.SYNCED) yield 'opened';
          else if (pool !== undefined) yield { kind: 'pool', pool };
        }
        return;
      }
      case 'racks': {
        for await (const message of racks.watchRacks({ position }, options)) {
          const { kind } = this.#noted(message);
          yield kind === RacksKind.SYNCED ? 'opened' : { kind: 'other' };
        }
        return;
      }
    }
  }

  /** An event that is served and not stored has no position of its own. */
  #noted<T extends { readonly position: string }>(message: T): T {
    if (message.position !== '') this.#position = message.position;
    return message;
  }

  /** After a silence it checks the server: a dead connection may look open. */
  #listen(): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.after(quietMs, () => void this.#ask());
  }

  async #ask(): Promise<void> {
    const watching = this.#watching;
    try {
      await this.#clients.access.whoAmI({}, { timeoutMs: answerMs });
      if (watching !== this.#watching) return;
      if (this.#state.kind === 'live') this.#become('heard');
      this.#listen();
    } catch (error) {
      if (watching !== this.#watching) return;
      const failure = failureOf(error);
      if (isSignedOut(failure)) this.#refused(failure);
      else this.#failed();
    }
  }

  /** The control plane answered, and no longer knows the caller. */
  #refused(failure: Failure): void {
    this.close();
    this.#become('heard');
    this.#signedOut(failure);
  }

  #failed(): void {
    this.close();
    this.#missedSome = true;
    this.#become('failed');
    if (this.#state.kind !== 'lost') return;
    const pauseMs = Math.max(0, this.#state.retryAtMs - this.#clock.nowMs());
    this.#cancelTimer = this.#clock.after(pauseMs, () => this.#open());
  }

  #recovered(): void {
    if (!this.#missedSome) return;
    this.#missedSome = false;
    this.#epoch += 1;
    for (const observer of this.#recoveryObservers) observer(this.#epoch);
  }

  #become(event: ConnectionEvent): void {
    const before = this.#state;
    this.#state = connectionAfter(before, event, this.#clock.nowMs());
    // A live connection that goes on changes nothing that is shown.
    if (before.kind === 'live' && this.#state.kind === 'live') return;
    for (const observer of this.#stateObservers) observer(this.#state);
  }
}

function added<T>(observers: Set<Observer<T>>, observer: Observer<T>): () => void {
  observers.add(observer);
  return () => void observers.delete(observer);
}

function requestOf(topic: Extract<Topic, { kind: 'hosts' | 'host' }>) {
  if (topic.kind === 'host') return { name: topic.name };
  return { filter: topic.filter, changesOnly: true, view: HostView.BASIC };
}

function sameTopic(a: Topic, b: Topic): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
