/** The rows of the list of hosts that are on the screen, of however many there are. */

import { enumWord, type Host, isGivenUp, RunKindSchema, RunPhase } from '@rackwright/messages';
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { HostRows } from '../browser/host-rows.ts';
import type { Sorting } from '../logic/filter.ts';
import { idOf, shortImage } from '../logic/format.ts';
import { hostTone, stateTone, stateWord } from '../logic/host-tones.ts';
import { routeOf } from '../logic/route.ts';
import { scrollTo, windowOf } from '../logic/window.ts';
import { Badge, Mark, Resource, Time } from '../parts/basics.tsx';

/** As the style sheet has it. */
const rowPx = 34;

interface GridColumn {
  readonly title: string;
  /** The field of `order_by`; empty: it cannot be sorted by. */
  readonly field: string;
  readonly cell: (host: Host) => preact.ComponentChildren;
  readonly className: string;
}

const columns: readonly GridColumn[] = [
  {
    title: 'Name',
    field: 'name',
    className: 'c-name',
    cell: (host) => (
      <>
        <Mark tone={hostTone(host)} />
        <a href={routeOf(host.name)} tabIndex={-1}>
          {idOf(host.name)}
        </a>
      </>
    ),
  },
  {
    title: 'State',
    field: 'state',
    className: 'c-state',
    cell: ({ status }) => (
      <Badge tone={stateTone(status?.state ?? 0)}>{stateWord(status?.state ?? 0)}</Badge>
    ),
  },
  {
    title: 'Now',
    field: 'run',
    className: 'c-now',
    cell: ({ status }) => <span title={status?.display}>{nowOf(status)}</span>,
  },
  {
    title: 'Rack',
    field: 'rack',
    className: 'c-rack',
    cell: ({ spec }) => <Resource name={spec?.rack ?? ''} />,
  },
  {
    title: 'Power',
    field: 'power',
    className: 'c-power',
    cell: ({ status }) => powerWord(status?.poweredOn),
  },
  {
    title: 'Problem',
    field: 'failure',
    className: 'c-problem',
    cell: (host) => <span title={problemOf(host)}>{problemOf(host)}</span>,
  },
  {
    title: 'Image',
    field: 'image',
    className: 'c-image',
    cell: ({ status }) => <span title={status?.image}>{shortImage(status?.image ?? '')}</span>,
  },
  {
    title: 'Changed',
    field: 'update_time',
    className: 'c-changed',
    cell: ({ updateTime }) => <Time at={updateTime} />,
  },
];

function nowOf(status: Host['status']): string {
  const run = status?.run;
  if (run === undefined || run.phase === RunPhase.ENDED) return '';
  const kind = enumWord(RunKindSchema, run.kind) ?? '';
  if (run.phase === RunPhase.WAITING) return `${kind}: waits for ${run.waiting?.reason ?? ''}`;
  const percent = status?.progress?.percent ?? 0;
  return percent > 0 ? `${kind} ${percent} %` : kind;
}

export function powerWord(poweredOn: boolean | undefined): string {
  return poweredOn === undefined ? '–' : poweredOn ? 'on' : 'off';
}

function problemOf({ status }: Host): string {
  const [fault] = status?.faults ?? [];
  if (fault !== undefined) return fault.message;
  if (isGivenUp(status?.backoff)) return status?.backoff?.givenUpReason ?? '';
  const [hold] = status?.holds ?? [];
  return hold === undefined ? '' : `held: ${hold.reason}`;
}

interface HostGridProps {
  readonly rows: HostRows;
  readonly sorting: Sorting;
  readonly sort: (field: string) => void;
}

export function HostGrid({ rows, sorting, sort }: HostGridProps) {
  const frame = useRef<HTMLDivElement>(null);
  const { scrollPx, heightPx } = useScroll(frame);
  const [active, setActive] = useState(0);
  const count = Math.min(rows.total ?? 0, rows.reach ?? Number.POSITIVE_INFINITY);
  const viewport = { scrollPx, heightPx, rowPx, rows: count };
  const shown = windowOf(viewport);
  useEffect(() => rows.show(shown), [shown.first, shown.end, rows.show]);
  const move = (event: KeyboardEvent) => {
    const to = target(event.key, active, count, Math.max(1, Math.floor(heightPx / rowPx) - 2));
    if (to !== undefined) {
      event.preventDefault();
      setActive(to);
      if (frame.current !== null) frame.current.scrollTop = scrollTo(to, viewport);
    } else if (event.key === 'Enter' && event.target === frame.current) {
      const host = rows.rowAt(active);
      if (host !== undefined) location.hash = routeOf(host.name);
    }
  };
  const indexes = Array.from({ length: shown.end - shown.first }, (_, at) => shown.first + at);
  return (
    <div class="grid" role="table" aria-label="Hosts" aria-rowcount={count + 1}>
      <div class="grid-head" role="rowgroup">
        <div class="grid-row" role="row" aria-rowindex={1}>
          {columns.map((column) => (
            <Head key={column.title} column={column} sorting={sorting} sort={sort} />
          ))}
        </div>
      </div>
      <div
        class="grid-frame"
        role="rowgroup"
        aria-label="Hosts: arrow keys move, Enter opens"
        tabIndex={0}
        ref={frame}
        onKeyDown={move}
      >
        <div class="grid-spacer" style={{ height: `${shown.spacerPx}px` }}>
          {indexes.map((index) => (
            <Row
              key={index}
              index={index}
              host={rows.rowAt(index)}
              topPx={shown.topPx + (index - shown.first) * rowPx}
              isActive={index === active}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

interface HeadProps {
  readonly column: GridColumn;
  readonly sorting: Sorting;
  readonly sort: (field: string) => void;
}

function Head({ column, sorting, sort }: HeadProps) {
  const { title, field, className } = column;
  const isSorted = sorting.field === field;
  const direction = sorting.descending ? 'descending' : 'ascending';
  return (
    <div role="columnheader" class={className} aria-sort={isSorted ? direction : 'none'}>
      <button type="button" class="plain" onClick={() => sort(field)}>
        {title}
        <span aria-hidden="true">{isSorted ? (sorting.descending ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </div>
  );
}

interface RowProps {
  readonly index: number;
  readonly host: Host | undefined;
  readonly topPx: number;
  readonly isActive: boolean;
}

function Row({ index, host, topPx, isActive }: RowProps) {
  return (
    <div
      class={`grid-row${isActive ? ' active' : ''}`}
      role="row"
      aria-rowindex={index + 2}
      style={{ transform: `translateY(${topPx}px)` }}
    >
      {host === undefined ? (
        <div role="cell" class="c-name quiet">
          …
        </div>
      ) : (
        columns.map(({ title, className, cell }) => (
          <div key={title} role="cell" class={className}>
            {cell(host)}
          </div>
        ))
      )}
    </div>
  );
}

/** The row that a key leads to; undefined: it leads nowhere. */
function target(key: string, from: number, count: number, page: number): number | undefined {
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: from + 1,
    ArrowUp: from - 1,
    PageDown: from + page,
    PageUp: from - page,
    Home: 0,
    End: count - 1,
  };
  const to = steps[key];
  return to === undefined ? undefined : Math.max(0, Math.min(count - 1, to));
}

function useScroll(frame: RefObject<HTMLDivElement | null>) {
  const [scroll, setScroll] = useState({ scrollPx: 0, heightPx: 600 });
  useLayoutEffect(() => {
    const element = frame.current;
    if (element === null) return undefined;
    let isAsked = false;
    const read = () => {
      isAsked = false;
      setScroll({ scrollPx: element.scrollTop, heightPx: element.clientHeight });
    };
    const ask = () => {
      if (!isAsked) requestAnimationFrame(read);
      isAsked = true;
    };
    read();
    const sized = new ResizeObserver(ask);
    sized.observe(element);
    element.addEventListener('scroll', ask, { passive: true });
    return () => {
      sized.disconnect();
      element.removeEventListener('scroll', ask);
    };
  }, []);
  return scroll;
}
