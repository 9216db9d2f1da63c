/** rackwright host list and host find: hosts by their properties. */
import { create } from '@bufbuild/protobuf';
import {
  type Host,
  HostState,
  HostView,
  type ListHostsResponse,
  ListHostsResponseSchema,
} from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { proposer, resourceName, type SharedFlags, textFlag } from '../../flags.ts';
import { enumName, enumValue } from '../../output/enum-name.ts';
import { allHostColumns } from '../../output/host.ts';
import { isForPrograms, printAs, printLines, printTable } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';
import { allPages } from '../frame/calls.ts';
import { readFreezes } from '../frame/freezes.ts';
import { type HostClient, hostAliases, hostFlags, withHosts } from './client.ts';

/** A value in quotation marks, in which nothing has a meaning of its own. */
export function quoted(text: string): string {
  return `"${text.replace(/["\\*]/g, '\\$&')}"`;
}

/** The search that the flags of `host list` ask for. */
export interface HostSearchFlags {
  readonly state?: readonly string[];
  readonly label?: readonly string[];
  readonly filter?: string;
}

/** The filter that the flags make together. Throws `UsageError`. */
export function filterFrom({ state = [], label = [], filter = '' }: HostSearchFlags): string {
  const states = state.map((text) => `state = ${stateNamed(text)}`);
  const parts = [
    ...(states.length > 1 ? [`(${states.join(' OR ')})`] : states),
    ...label.map(labelFilter),
  ];
  if (filter.trim() === '') return parts.join(' AND ');
  return parts.length === 0 ? filter : [...parts, `(${filter})`].join(' AND ');
}

function stateNamed(text: string): string {
  if (enumValue('HostState', text) !== undefined) return text;
  const numbers = Object.values(HostState).filter((each) => typeof each === 'number');
  const names = numbers.map((each) => enumName('HostState', each)).filter(Boolean);
  throw new UsageError(`--state is "${text}"; it must be one of ${names.join(', ')}`);
}

/** "site=fra1": has that value; "site": has the label; "site!=fra1": has not that value. */
function labelFilter(text: string): string {
  const [, key, comparator, value = ''] = /^([^=!]+)(?:(!?=)(.*))?$/s.exec(text) ?? [];
  if (key === undefined || !/^[A-Za-z0-9._/-]+$/.test(key)) {
    throw new UsageError(`--label is "${text}"; it must be KEY=VALUE, KEY!=VALUE or KEY`);
  }
  return comparator === undefined
    ? `labels:${quoted(key)}`
    : `labels.${key} ${comparator} ${quoted(value)}`;
}

const many = { kind: 'parsed', parse: String, variadic: true, optional: true } as const;

interface ListFlags extends SharedFlags, HostSearchFlags {
  readonly rack?: string;
  readonly sort?: string;
  readonly columns?: string;
}

export const listHosts = buildCommand({
  docs: {
    brief: 'List hosts',
    fullDescription:
      'Flags are joined: a host is listed when all match. A filter compares fields, as in ' +
      '--filter \'failure:* AND NOT labels.site = fra1\': = != < <= > >= and ":" (has), AND, OR, ' +
      'NOT, parentheses, and * at the end of a value. The reference of ListHosts names the fields.',
  },
  parameters: {
    flags: {
      ...hostFlags,
      rack: { ...textFlag('Only of this rack', 'id'), proposeCompletions: proposer('racks') },
      state: { ...many, brief: 'Only in this state; may be repeated', placeholder: 'state' },
      label: {
        ...many,
        brief: 'Only with this label: KEY=VALUE, KEY!=VALUE or KEY; may be repeated',
        placeholder: 'label',
      },
      filter: textFlag('Only what matches, as failure:* or create_time < 2026-01-31', 'filter'),
      sort: textFlag('Fields to sort by, as state,create_time desc', 'fields'),
      columns: textFlag('Columns to show, as name,state,labels.site', 'names'),
    },
    aliases: hostAliases,
  },
  async func(this: CliContext, flags: ListFlags) {
    const { io } = this;
    const columns = flags.columns === undefined ? undefined : columnsNamed(io, flags.columns);
    const rack = flags.rack === undefined ? '' : resourceName('racks', flags.rack);
    const search = { rack, filter: filterFrom(flags), orderBy: flags.sort ?? '' };
    const found = await withHosts(io, flags, (client) => allHosts(client, flags, search));
    await showHosts(io, flags, found, columns);
  },
});

export const findHosts = buildCommand({
  docs: {
    brief: 'Find a host by its name, MAC address, BMC address, serial or uid',
    fullDescription:
      'Serials are those that the BMC reports: of the product, the chassis and the board. A MAC ' +
      'address may be written with colons, dashes or dots.',
  },
  parameters: {
    flags: hostFlags,
    positional: {
      kind: 'tuple',
      parameters: [{ parse: String, brief: 'What is known of it', placeholder: 'text' }],
    },
    aliases: hostAliases,
  },
  async func(this: CliContext, flags: SharedFlags, text: string) {
    const { io } = this;
    const search = { filter: findFilter(text) };
    const found = await withHosts(io, flags, (client) => allHosts(client, flags, search));
    if (found.hosts.length === 0 && !isForPrograms(flags.output)) {
      throw new UsageError(`no host has "${text}" as its name, MAC or BMC address, serial or uid`);
    }
    await showHosts(io, flags, found);
  },
});

/** The filter for hosts with this text as name, uid, BMC address, serial or boot MAC. */
export function findFilter(text: string): string {
  const value = quoted(text.trim());
  const name = quoted(text.trim().replace(/^hosts\//, ''));
  const parts = [
    ...(name.includes('/') ? [] : [`name = ${name}`]),
    ...[`uid = ${value}`, `bmc.address = ${value}`, `serial:${value}`],
  ];
  const digits = text.replace(/[:.\s-]/g, '').toLowerCase();
  if (/^[0-9a-f]{12}$/.test(digits)) {
    parts.push(`boot_macs:${quoted((digits.match(/../g) ?? []).join(':'))}`);
  }
  return parts.join(' OR ');
}

interface HostListOptions {
  readonly rack?: string;
  readonly filter: string;
  readonly orderBy?: string;
}

type FoundHosts = Pick<ListHostsResponse, 'hosts' | 'unreadable'>;

/** A table needs no inventory; output for programs has every field. */
async function allHosts(
  client: HostClient,
  { output }: SharedFlags,
  options: HostListOptions,
): Promise<FoundHosts> {
  const view = isForPrograms(output) ? HostView.FULL : HostView.BASIC;
  const unreadable: ListHostsResponse['unreadable'] = [];
  const hosts = await allPages(
    (pageToken) => client.listHosts({ ...options, pageToken, view }),
    (page) => {
      unreadable.push(...page.unreadable);
      return page.hosts;
    },
  );
  return { hosts, unreadable };
}

async function showHosts(
  io: CommandIo,
  flags: SharedFlags,
  found: FoundHosts,
  columns?: readonly TextColumn<Host>[],
): Promise<void> {
  if (isForPrograms(flags.output)) {
    printAs(io, flags.output, ListHostsResponseSchema, create(ListHostsResponseSchema, found));
    return;
  }
  const { ofHost } = await readFreezes(io, flags);
  printTable(io, flags.output, columns ?? allHostColumns(io.clock, ofHost), found.hosts);
  const lines = found.unreadable.map(({ name, reason }) => `${name} cannot be read: ${reason}`);
  printLines(io, lines);
}

/** Throws `UsageError` for a name that is no column. */
function columnsNamed({ clock }: CommandIo, names: string): TextColumn<Host>[] {
  const known = allHostColumns(clock);
  return names.split(',').map((each) => {
    const name = each.trim();
    const [, key] = /^labels\.(.+)$/.exec(name) ?? [];
    if (key !== undefined) return { title: name, value: ({ labels }) => labels[key] ?? '' };
    const found = known.find(({ title }) => title.toLowerCase() === name.toLowerCase());
    if (found === undefined) {
      const right = known.map(({ title }) => title.toLowerCase()).join(', ');
      throw new UsageError(`--columns names "${name}"; columns are ${right}, labels.KEY`);
    }
    const { dropOrder: _, wideOnly: __, ...always } = found;
    return always;
  });
}
