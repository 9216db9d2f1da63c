/**
 * Names that a shell proposes.
 *
 * Invariant: a proposal never fails and never keeps a person waiting: without an answer in time
 * there is none. A proposal reads one page, for a fleet of any size.
 */
import {
  CredentialService,
  HostService,
  HostView,
  PoolService,
  RackService,
  TemplateService,
} from '@rackwright/messages';
import { type CallOptions, createClient } from '@rackwright/rpc';
import type { CommandIo } from '../../command-io.ts';
import type { Connection } from '../../settings.ts';
import { withConnection } from './calls.ts';

/** How long a shell waits, milliseconds. */
const patienceMs = 1_500;
/** Names that are proposed at once; more of them would not help. */
const proposedMost = 100;

interface NamedResource {
  readonly name: string;
}

type Ask = (
  connection: Connection,
  filter: string,
  options: CallOptions,
) => Promise<readonly NamedResource[]>;

const pageSize = proposedMost;

/** The requests for the names of each collection. */
const asks = {
  hosts: async ({ channel, defaults }, filter, options) => {
    const client = createClient(HostService, channel, defaults);
    return (await client.listHosts({ filter, pageSize, view: HostView.BASIC }, options)).hosts;
  },
  racks: async ({ channel, defaults }, filter, options) => {
    const client = createClient(RackService, channel, defaults);
    return (await client.listRacks({ filter, pageSize }, options)).racks;
  },
  pools: async ({ channel, defaults }, _filter, options) => {
    const client = createClient(PoolService, channel, defaults);
    return (await client.listPools({ pageSize }, options)).pools;
  },
  templates: async ({ channel, defaults }, _filter, options) => {
    const client = createClient(TemplateService, channel, defaults);
    return (await client.listTemplates({ pageSize }, options)).templates;
  },
  credentials: async ({ channel, defaults }, _filter, options) => {
    const client = createClient(CredentialService, channel, defaults);
    return (await client.listCredentials({ pageSize }, options)).credentials;
  },
} as const satisfies Record<string, Ask>;

export type NamedCollection = keyof typeof asks;

/** Ids of a collection that begin with `partial`. Never rejects. */
export async function proposeNames(
  io: CommandIo,
  collection: NamedCollection,
  partial: string,
): Promise<readonly string[]> {
  // Nothing else begins a name, and so nothing else gets into the filter.
  const prefix = `${collection}/`;
  const typed = partial.startsWith(prefix) ? partial.slice(prefix.length) : partial;
  if (!/^[a-z0-9-]*$/.test(typed)) return [];
  const shown = partial.startsWith(prefix) ? prefix : '';
  try {
    const deadlineMs = io.clock.nowMs() + patienceMs;
    const filter = typed === '' ? '' : `name = ${typed}*`;
    const ask: Ask = asks[collection];
    const named = await withConnection(io, {}, (connection) =>
      ask(connection, filter, { deadlineMs }),
    );
    return named
      .map(({ name }) => name.replace(prefix, ''))
      .filter((id) => id.startsWith(typed))
      .slice(0, proposedMost)
      .map((id) => `${shown}${id}`);
  } catch {
    // A completion must write no error into the line of a person.
    return [];
  }
}
