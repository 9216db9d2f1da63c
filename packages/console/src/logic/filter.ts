/** Filters of lists of hosts (AIP-160): from facets and from typed words. Pure. */

/** The fields by which one click narrows the list, each a field of the server's filter. */
export const facets = ['state', 'fault', 'rack', 'waiting', 'run', 'power', 'failure'] as const;
export type Facet = (typeof facets)[number];

export interface Search {
  /** A filter, or a word that is looked for. */
  readonly text: string;
  readonly chosen: Readonly<Partial<Record<Facet, string>>>;
}

/** A value as a filter takes it. */
export function quoted(value: string): string {
  if (/^[A-Za-z0-9_*][A-Za-z0-9_.:/*-]*$/.test(value) && !/^(AND|OR|NOT)$/.test(value))
    return value;
  return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

/** True for a word that is no filter of its own. */
export function isWord(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._:-]*$/.test(text) && !/^(AND|OR|NOT)$/.test(text);
}

/** Fields that a word is searched in: hosts' names, or addresses where it is one. */
function wordClause(word: string): string {
  if (/^([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$/i.test(word)) {
    return `boot_macs:${quoted(word.replaceAll('-', ':').toLowerCase())}`;
  }
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(word)) return `bmc.address = ${word}`;
  return `(name = ${quoted(`*${word}*`)} OR serial:${quoted(word)})`;
}

/** The filter of the request; empty: every host. */
export function filterOf({ text, chosen }: Search): string {
  const typed = text.trim();
  const own = typed === '' ? [] : [isWord(typed) ? wordClause(typed) : `(${typed})`];
  const picked = facets.flatMap((facet) => {
    const value = chosen[facet];
    return value === undefined ? [] : [facetClause(facet, value)];
  });
  return [...own, ...picked].join(' AND ');
}

/** "state = available"; `*`: the field is set; empty: it is not. */
export function facetClause(facet: Facet, value: string): string {
  if (value === '*') return `${facet}:*`;
  if (value === '') return `NOT ${facet}:*`;
  return facet === 'fault' ? `fault:${quoted(value)}` : `${facet} = ${quoted(value)}`;
}

export interface Sorting {
  readonly field: string;
  readonly descending: boolean;
}

/** In the form of `order_by`; by name none is needed, which costs the server least. */
export function orderByOf({ field, descending }: Sorting): string {
  if (field === 'name' && !descending) return '';
  return descending ? `${field} desc` : field;
}

/** After a click on a column's head: the other way round, or by that column. */
export function sortedBy(now: Sorting, field: string): Sorting {
  return { field, descending: now.field === field && !now.descending };
}

/** Rows that a sorted list can be scrolled to: the server leaves out no more (`skip`). */
export const sortedRowsMax = 10_000;
