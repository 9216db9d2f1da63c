/** Hooks that bind pages to the address, the clock, the link and the calls that they show. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ConnectionState } from '../logic/connection.ts';
import { type Failure, isPassing, isSignedOut } from '../logic/failure.ts';
import { parseRoute, type Route } from '../logic/route.ts';
import { failureOf } from './client.ts';
import { type Console, useConsole } from './console.ts';
import type { LinkEvent, Topic } from './link.ts';

/** The minimum time between two loads after events. */
const eventPauseMs = 1_000;

/** The route, as the address changes. */
export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return useMemo(() => parseRoute(hash), [hash]);
}

/** The present time, renewed so often; `everyMs` 0: the time when the component was mounted. */
export function useNow(everyMs: number): number {
  const { clock } = useConsole();
  const [nowMs, setNowMs] = useState(clock.nowMs());
  useEffect(() => {
    if (everyMs === 0) return undefined;
    let cancel = () => {};
    const tick = () => {
      setNowMs(clock.nowMs());
      cancel = clock.after(everyMs, tick);
    };
    cancel = clock.after(everyMs, tick);
    return () => cancel();
  }, [everyMs, clock]);
  return nowMs;
}

/** The state of the page's connection. */
export function useConnection(): ConnectionState {
  const { link } = useConsole();
  const [state, setState] = useState(link.state);
  useEffect(() => {
    setState(link.state);
    return link.onState(setState);
  }, [link]);
  return state;
}

/** Has the page's one watch follow this while the component is there. */
export function useTopic(topic: Topic): void {
  const { link } = useConsole();
  const key = JSON.stringify(topic);
  useEffect(() => link.follow(JSON.parse(key) as Topic), [link, key]);
}

/** Calls back for each event of the watch. */
export function useEvents(observer: (event: LinkEvent) => void): void {
  const { link } = useConsole();
  const present = useRef(observer);
  present.current = observer;
  useEffect(() => link.onEvent((event) => present.current(event)), [link]);
}

export interface Live<T> {
  /** The last answer, also while a later one is awaited or has failed. */
  readonly value: T | undefined;
  /** Why there is no answer; a passing failure is shown by the link's state instead. */
  readonly failure: Failure | undefined;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

export interface LiveOptions {
  /** Loads again after so long; 0: not by itself. */
  readonly everyMs?: number;
  /** Which events mean that the answer may be another one. */
  readonly isConcerned?: (event: LinkEvent) => boolean;
  readonly pauseMs?: number;
}

/**
 * The result of `load` for `key`: loaded again after events, in intervals, and when the connection
 * has come back. At most one load is under way, and at most one waits.
 */
export function useLive<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  options: LiveOptions = {},
): Live<T> {
  const app = useConsole();
  const [answer, setAnswer] = useState<Answer<T>>(noAnswer(key));
  const latest = useRef({ load, options });
  latest.current = { load, options };
  const loader = useMemo(() => new Loader<T>(app, latest, key, setAnswer), [app, key]);
  useEffect(() => {
    loader.start();
    return () => loader.stop();
  }, [loader]);
  const reload = useCallback(() => loader.ask(0), [loader]);
  // An answer for another key is not shown under this one.
  const shown = answer.key === key ? answer : noAnswer<T>(key);
  return { value: shown.value, failure: shown.failure, isLoading: shown.isLoading, reload };
}

interface Answer<T> {
  readonly key: string;
  readonly value: T | undefined;
  readonly failure: Failure | undefined;
  readonly isLoading: boolean;
}

function noAnswer<T>(key: string): Answer<T> {
  return { key, value: undefined, failure: undefined, isLoading: true };
}

interface Latest<T> {
  readonly current: {
    readonly load: (signal: AbortSignal) => Promise<T>;
    readonly options: LiveOptions;
  };
}

class Loader<T> {
  readonly #app: Console;
  readonly #latest: Latest<T>;
  readonly #key: string;
  readonly #tell: (answer: Answer<T>) => void;
  readonly #stopping = new AbortController();
  #value: T | undefined;
  #isLoading = false;
  #isAskedAgain = false;
  #loadedMs = 0;
  #cancel: (() => void) | undefined;
  #unlisten: (() => void)[] = [];

  constructor(app: Console, latest: Latest<T>, key: string, tell: (answer: Answer<T>) => void) {
    this.#app = app;
    this.#latest = latest;
    this.#key = key;
    this.#tell = tell;
  }

  start(): void {
    const { link } = this.#app;
    this.#unlisten = [
      link.onRecovery(() => this.ask(0)),
      link.onEvent((event) => {
        const { isConcerned, pauseMs = eventPauseMs } = this.#latest.current.options;
        if (isConcerned?.(event) === true) this.ask(pauseMs);
      }),
    ];
    this.ask(0);
  }

  stop(): void {
    this.#stopping.abort();
    this.#cancel?.();
    for (const unlisten of this.#unlisten) unlisten();
  }

  /** Loads, but not sooner than so long after the last load. */
  ask(pauseMs: number): void {
    if (this.#isLoading) {
      this.#isAskedAgain = true;
      return;
    }
    const { clock } = this.#app;
    const waitMs = this.#loadedMs + pauseMs - clock.nowMs();
    if (waitMs <= 0) {
      void this.#load();
      return;
    }
    if (this.#isAskedAgain) return;
    this.#isAskedAgain = true;
    this.#cancel?.();
    this.#cancel = clock.after(waitMs, () => void this.#load());
  }

  async #load(): Promise<void> {
    const { signal } = this.#stopping;
    if (signal.aborted) return;
    this.#cancel?.();
    this.#isLoading = true;
    this.#isAskedAgain = false;
    try {
      this.#value = await this.#latest.current.load(signal);
      this.#app.link.heard();
      this.#say(undefined);
    } catch (error) {
      if (!signal.aborted) this.#failed(failureOf(error));
    }
    this.#isLoading = false;
    this.#loadedMs = this.#app.clock.nowMs();
    if (!signal.aborted) this.#next();
  }

  #failed(failure: Failure): void {
    if (isSignedOut(failure)) this.#app.signInOver();
    if (failure.isUnreached) this.#app.link.unreached();
    this.#say(isPassing(failure) && this.#value !== undefined ? undefined : failure);
  }

  #next(): void {
    const { everyMs = 0, pauseMs = eventPauseMs } = this.#latest.current.options;
    if (this.#isAskedAgain) {
      this.#isAskedAgain = false;
      this.ask(pauseMs);
    } else if (everyMs > 0) {
      this.#cancel = this.#app.clock.after(everyMs, () => void this.#load());
    }
  }

  #say(failure: Failure | undefined): void {
    if (this.#stopping.signal.aborted) return;
    this.#tell({ key: this.#key, value: this.#value, failure, isLoading: false });
  }
}
