/** The list of hosts: filtered and sorted by the server, and read where it is looked at. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useConsole } from '../browser/console.ts';
import { useRoute, useTopic } from '../browser/hooks.ts';
import { useHostRows } from '../browser/host-rows.ts';
import {
  type Facet,
  facets,
  filterOf,
  type Search,
  type Sorting,
  sortedBy,
} from '../logic/filter.ts';
import { grouped, spaced } from '../logic/format.ts';
import { formatRoute, type Route } from '../logic/route.ts';
import { PageHead } from '../parts/basics.tsx';
import { FailureBox } from '../parts/errors.tsx';
import { HostGrid } from './host-grid.tsx';

/** What a person types is asked for when they pause. */
const typingPauseMs = 300;
/** In the address: the field is not set. */
const none = 'none';

export function HostsPage() {
  const route = useRoute();
  const search = useMemo(() => searchOf(route), [route]);
  const sorting = useMemo(() => sortingOf(route), [route]);
  const filter = filterOf(search);
  useTopic({ kind: 'hosts', filter });
  const rows = useHostRows(filter, sorting);
  const go = (next: Search, by: Sorting) => {
    const chosen = Object.entries(next.chosen).map(([facet, value]) => [facet, value || none]);
    const query = {
      q: next.text,
      ...Object.fromEntries(chosen),
      sort:
        by.field === 'name' && !by.descending ? '' : `${by.field}${by.descending ? ' desc' : ''}`,
    };
    history.replaceState(null, '', formatRoute(['hosts'], query));
    dispatchEvent(new HashChangeEvent('hashchange'));
  };
  const { total, failure } = rows;
  return (
    <div class="fill-page">
      <PageHead title="Hosts">
        <FilterBar search={search} go={(next) => go(next, sorting)} />
        <p class="quiet" role="status">
          {total === undefined
            ? 'Counting …'
            : `${grouped(total)} ${total === 1 ? 'host' : 'hosts'}`}
          {rows.reach !== undefined &&
            ` · the first ${grouped(rows.reach)} of this order are shown; a filter finds others`}
        </p>
      </PageHead>
      {failure !== undefined && (
        <FailureBox subject="The hosts cannot be listed" failure={failure} retry={rows.reload} />
      )}
      <HostGrid
        rows={rows}
        sorting={sorting}
        sort={(field) => go(search, sortedBy(sorting, field))}
      />
    </div>
  );
}

interface FilterBarProps {
  readonly search: Search;
  readonly go: (search: Search) => void;
}

const stateChoices = ['new', 'manageable', 'available', 'provisioned', 'external'];

/** Facets that have a list of their own to choose from. */
const choices = [
  { label: 'State', facet: 'state', values: stateChoices },
  { label: 'Fault', facet: 'fault', values: ['*', ''] },
  { label: 'Power', facet: 'power', values: ['true', 'false'] },
] as const;

function FilterBar({ search, go }: FilterBarProps) {
  const { clock } = useConsole();
  const [text, setText] = useState(search.text);
  const asked = useRef(search.text);
  useEffect(() => {
    // What was typed since is newer than what our own typing has led to.
    if (search.text !== asked.current) setText(search.text);
    asked.current = search.text;
  }, [search.text]);
  const latest = useRef(search);
  latest.current = search;
  const ask = (next: Search) => {
    asked.current = next.text;
    go(next);
  };
  useEffect(() => {
    if (text === search.text) return undefined;
    return clock.after(typingPauseMs, () => ask({ ...latest.current, text }));
  }, [text, search.text]);
  const choose = (facet: Facet, value: string | undefined) => {
    const { [facet]: _, ...others } = search.chosen;
    ask({ text, chosen: value === undefined ? others : { ...others, [facet]: value } });
  };
  const chosen = facets.filter((facet) => search.chosen[facet] !== undefined);
  return (
    <form class="filter-bar" role="search" onSubmit={(event) => event.preventDefault()}>
      <label class="grow">
        <span class="unseen">Filter</span>
        <input
          type="search"
          name="filter"
          value={text}
          placeholder="Name, MAC, serial, or a filter: labels.site = fra1 AND dirty = true"
          spellcheck={false}
          autoComplete="off"
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      {choices.map(({ label, facet, values }) => (
        <Choice
          key={facet}
          label={label}
          value={search.chosen[facet]}
          values={values}
          choose={(value) => choose(facet, value)}
        />
      ))}
      {chosen.map((facet) => (
        <button
          key={facet}
          type="button"
          class="chip"
          aria-label={`Remove ${facet} ${search.chosen[facet]}`}
          onClick={() => choose(facet, undefined)}
        >
          {facet} {chipWord(facet, search.chosen[facet] ?? '')} ✕
        </button>
      ))}
    </form>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly values: readonly string[];
  readonly choose: (value: string | undefined) => void;
}

/** Stands for "no choice": an empty value is one. */
const anything = 'any';

function Choice({ label, value, values, choose }: ChoiceProps) {
  const all = value === undefined || values.includes(value) ? values : [...values, value];
  return (
    <label>
      <span class="unseen">{label}</span>
      <select
        value={value ?? anything}
        onChange={(event) => {
          const picked = event.currentTarget.value;
          choose(picked === anything ? undefined : picked);
        }}
      >
        <option value={anything}>{`${label}: ${anything}`}</option>
        {all.map((each) => (
          <option key={each} value={each}>
            {label}: {chipWord(label.toLowerCase(), each)}
          </option>
        ))}
      </select>
    </label>
  );
}

function chipWord(facet: string, value: string): string {
  if (value === '*') return 'some';
  if (value === '') return 'none';
  if (facet === 'power') return value === 'true' ? 'on' : 'off';
  return spaced(value);
}

function searchOf({ query }: Route): Search {
  const entries = facets.flatMap((facet) => {
    const value = query[facet];
    return value === undefined ? [] : [[facet, value === none ? '' : value] as const];
  });
  return { text: query['q'] ?? '', chosen: Object.fromEntries(entries) };
}

function sortingOf({ query }: Route): Sorting {
  const [field = 'name', direction] = (query['sort'] ?? 'name').split(' ');
  return { field, descending: direction === 'desc' };
}
