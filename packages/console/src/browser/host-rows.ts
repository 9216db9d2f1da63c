/** The rows of the list of hosts: the pages that are looked at, kept fresh by the watch. */

import { type Host, HostView } from '@rackwright/messages';
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Failure } from '../logic/failure.ts';
import { orderByOf, type Sorting, sortedRowsMax } from '../logic/filter.ts';
import { missing, type Pages, pageRows, rowAt, withPage, withRow } from '../logic/pages.ts';
import { type ListWindow, pagesOf } from '../logic/window.ts';
import { failureOf } from './client.ts';
import { useConsole } from './console.ts';
import { useEvents, useLive } from './hooks.ts';
import type { LinkEvent } from './link.ts';

/** The minimum time between two counts of added or removed hosts. */
const countPauseMs = 2_000;

export interface HostRows {
  /** Hosts that match; undefined: not known yet. */
  readonly total: number | undefined;
  /** Rows that can be scrolled to, where that is fewer. */
  readonly reach: number | undefined;
  readonly failure: Failure | undefined;
  readonly rowAt: (index: number) => Host | undefined;
  /** Sets the visible part of the list. */
  readonly show: (window: Pick<ListWindow, 'first' | 'end'>) => void;
  readonly reload: () => void;
}

export function useHostRows(filter: string, sorting: Sorting): HostRows {
  const { clients, link } = useConsole();
  const orderBy = orderByOf(sorting);
  const key = JSON.stringify([filter, orderBy]);
  const [pages, setPages] = useState<Pages<Host>>(new Map());
  const [failure, setFailure] = useState<Failure | undefined>(undefined);
  const counted = useLive(
    `count ${filter}`,
    (signal) => clients.hosts.countHosts({ filter }, { signal }),
    { isConcerned: isGoneOrNew(pages), pauseMs: countPauseMs, everyMs: 30_000 },
  );
  const reader = useMemo(
    () => new PageReader(link, readerOf(clients.hosts, filter, orderBy), setPages, setFailure),
    [clients, link, key],
  );
  useEffect(() => {
    setPages(new Map());
    setFailure(undefined);
    return () => reader.stop();
  }, [reader]);
  useEffect(() => link.onRecovery(() => reader.renew()), [link, reader]);
  const total = counted.value?.total;
  const before = useRef(total);
  useEffect(() => {
    // Hosts that were added or removed have moved the rows behind them.
    if (before.current !== undefined && before.current !== total) reader.renew();
    before.current = total;
  }, [total, reader]);
  useEvents((event) => {
    if (event.kind === 'host' && !event.isGone) reader.replace(event.host);
  });
  const show = useCallback(
    (window: Pick<ListWindow, 'first' | 'end'>) => reader.show(window),
    [reader],
  );
  const reload = useCallback(() => {
    setFailure(undefined);
    counted.reload();
    reader.renew();
  }, [reader, counted.reload]);
  const isCut = orderBy !== '' && total !== undefined && total > sortedRowsMax;
  return {
    total,
    reach: isCut ? sortedRowsMax : undefined,
    failure: failure ?? counted.failure,
    rowAt: (index) => rowAt(pages, index),
    show,
    reload,
  };
}

/**
 * Whether an event may change the count. A change of a loaded host does not, or the next count
 * shows it.
 */
function isGoneOrNew(pages: Pages<Host>): (event: LinkEvent) => boolean {
  return (event) => {
    if (event.kind !== 'host') return false;
    const { name } = event.host;
    return (
      event.isGone || ![...pages.values()].some(({ rows }) => rows.some((row) => row.name === name))
    );
  };
}

type ReadPage = (number: number, signal: AbortSignal) => Promise<readonly Host[]>;

function readerOf(
  hosts: ReturnType<typeof useConsole>['clients']['hosts'],
  filter: string,
  orderBy: string,
): ReadPage {
  return async (number, signal) => {
    const skip = number * pageRows;
    const request = { filter, orderBy, pageSize: pageRows, skip, view: HostView.BASIC };
    return (await hosts.listHosts(request, { signal })).hosts;
  };
}

/** Reads one page at a time: the page in view now, and none that was scrolled past. */
class PageReader {
  readonly #link: { unreached(): void; heard(): void };
  readonly #read: ReadPage;
  readonly #show: (pages: Pages<Host>) => void;
  readonly #fail: (failure: Failure | undefined) => void;
  readonly #stopping = new AbortController();
  #pages: Pages<Host> = new Map();
  #wanted: readonly number[] = [];
  #version = 0;
  #isReading = false;

  constructor(
    link: { unreached(): void; heard(): void },
    read: ReadPage,
    show: (pages: Pages<Host>) => void,
    fail: (failure: Failure | undefined) => void,
  ) {
    this.#link = link;
    this.#read = read;
    this.#show = show;
    this.#fail = fail;
  }

  show(window: Pick<ListWindow, 'first' | 'end'>): void {
    this.#wanted = pagesOf(window, pageRows);
    void this.#go();
  }

  /** Reads the visible rows anew; the others when they become visible. */
  renew(): void {
    this.#version += 1;
    void this.#go();
  }

  replace(host: Host): void {
    const next = withRow(this.#pages, host, ({ name }) => name === host.name);
    if (next !== this.#pages) this.#become(next);
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #go(): Promise<void> {
    const { signal } = this.#stopping;
    if (this.#isReading || signal.aborted) return;
    this.#isReading = true;
    try {
      for (let next = this.#next(); next !== undefined; next = this.#next()) {
        const version = this.#version;
        const rows = await this.#read(next, signal);
        this.#link.heard();
        this.#become(withPage(this.#pages, next, { rows, version }));
      }
      this.#fail(undefined);
    } catch (error) {
      if (!signal.aborted) this.#failed(failureOf(error));
    } finally {
      this.#isReading = false;
    }
  }

  #next(): number | undefined {
    return missing(this.#pages, this.#wanted, this.#version)[0];
  }

  #failed(failure: Failure): void {
    if (failure.isUnreached) this.#link.unreached();
    else this.#fail(failure);
  }

  #become(pages: Pages<Host>): void {
    if (this.#stopping.signal.aborted) return;
    this.#pages = pages;
    this.#show(pages);
  }
}
