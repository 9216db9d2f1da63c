/** Which hosts a command on many of them means. */
import { type Host, HostView } from '@rackwright/messages';
import { UsageError } from '../../failure.ts';
import { parseWhole, proposer, resourceName, textFlag } from '../../flags.ts';
import { allPages } from '../frame/calls.ts';
import type { HostClient } from './client.ts';

/** Hosts at once. */
const parallelMax = 64;

/** Flags that select hosts in place of a name, and those that confirm. */
export const selectionFlags = {
  filter: textFlag('Instead of HOST: all hosts that match, as in host list', 'filter'),
  rack: {
    ...textFlag('Instead of HOST: all hosts of this rack that match', 'rack'),
    proposeCompletions: proposer('racks'),
  },
  parallel: {
    kind: 'parsed',
    parse: parseParallel,
    default: '8',
    brief: `Number of hosts asked at once, 1 to ${parallelMax}; with --wait, number at work`,
    placeholder: 'number',
  },
  yes: { kind: 'boolean', default: false, withNegated: false, brief: 'Do not ask' },
} as const;

/** Values of `selectionFlags`. */
export interface SelectionFlags {
  readonly filter?: string;
  readonly rack?: string;
  readonly parallel: number;
  readonly yes: boolean;
}

/** Hosts at once. Throws for a number that is not allowed. */
export function parseParallel(text: string): number {
  const number = parseWhole(text);
  if (number >= 1 && number <= parallelMax) return number;
  throw new SyntaxError(`"${text}" is not allowed; it must be from 1 to ${parallelMax}`);
}

/** Whether the flags select hosts. */
export function isSelection({ filter, rack }: Pick<SelectionFlags, 'filter' | 'rack'>): boolean {
  return filter !== undefined || rack !== undefined;
}

/**
 * All selected hosts; with their inventories when the loss has to be shown. Throws `UsageError`
 * when there is none.
 */
export async function selectedHosts(
  hosts: HostClient,
  { filter = '', rack }: Pick<SelectionFlags, 'filter' | 'rack'>,
  losesData: boolean,
): Promise<readonly Host[]> {
  const query = {
    filter,
    rack: rack === undefined ? '' : resourceName('racks', rack),
    view: losesData ? HostView.FULL : HostView.BASIC,
  };
  const found = await allPages(
    (pageToken) => hosts.listHosts({ ...query, pageToken }),
    (page) => page.hosts,
  );
  if (found.length > 0) return found;
  throw new UsageError('no host matches; `rackwright host list` with the same flags shows them');
}
