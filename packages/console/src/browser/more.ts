/** Lists that are read page by page, as far as a person asks for. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Failure } from '../logic/failure.ts';
import { failureOf } from './client.ts';
import { type LiveOptions, useLive } from './hooks.ts';

/** Rows that a page shows at most: a person who needs older ones narrows the filter. */
const rowsMax = 2_000;

interface PageOf<T> {
  readonly rows: readonly T[];
  /** Token of the next page; empty: there is none. */
  readonly next: string;
}

export interface MorePages<T> {
  readonly rows: readonly T[];
  readonly isLoading: boolean;
  readonly failure: Failure | undefined;
  readonly hasMore: boolean;
  readonly more: () => void;
  readonly reload: () => void;
}

/**
 * The first page, kept fresh; `more` adds the next one to the shown rows. Rows that a fresh first
 * page displaces stay, in their order.
 */
export function usePages<T>(
  key: string,
  keyOf: (row: T) => string,
  read: (pageToken: string, signal: AbortSignal) => Promise<PageOf<T>>,
  options: LiveOptions = {},
): MorePages<T> {
  const first = useLive(key, (signal) => read('', signal), options);
  const [later, setLater] = useState<PageOf<T> | undefined>(undefined);
  const [failure, setFailure] = useState<Failure | undefined>(undefined);
  const [isAdding, setAdding] = useState(false);
  const reading = useRef(new AbortController());
  useEffect(() => {
    const controller = new AbortController();
    reading.current = controller;
    setLater(undefined);
    setFailure(undefined);
    return () => controller.abort();
  }, [key]);
  const next = later?.next ?? first.value?.next ?? '';
  const rows = useMemo(
    () => merged(first.value?.rows ?? [], later?.rows ?? [], keyOf),
    [first.value, later],
  );
  const shown = useRef(rows);
  shown.current = rows;
  const more = useCallback(() => {
    const { signal } = reading.current;
    setAdding(true);
    setFailure(undefined);
    read(next, signal)
      .then((page) => {
        setLater({ rows: [...shown.current, ...page.rows], next: page.next });
      })
      .catch((error: unknown) => {
        if (!signal.aborted) setFailure(failureOf(error));
      })
      .finally(() => setAdding(false));
  }, [next, key]);
  return {
    rows,
    isLoading: first.isLoading || isAdding,
    failure: failure ?? first.failure,
    hasMore: next !== '' && rows.length < rowsMax,
    more,
    reload: first.reload,
  };
}

/** All of them, each once, at its first place. */
function merged<T>(first: readonly T[], later: readonly T[], keyOf: (row: T) => string): T[] {
  const fresh = new Set(first.map(keyOf));
  return [...first, ...later.filter((row) => !fresh.has(keyOf(row)))];
}
