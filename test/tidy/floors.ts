/**
 * Folders of one workspace that stand in an order: each imports only those below it, so that a
 * reader can take them one after the other.
 */
import { posix } from 'node:path';
import { importsOf } from './imports.ts';
import { type Finding, isTestCode, type SourceFile } from './sources.ts';

interface FolderFloors {
  readonly folder: string;
  /** Lowest first. A file stands on a floor by its name; `.`: the other files of the folder. */
  readonly floors: readonly string[];
}

const host: FolderFloors = {
  folder: 'controlplane/src/host',
  floors: [
    'pass',
    'bmc',
    'hardware',
    'deployment',
    'operation',
    'erasure',
    'fleet',
    'run/steps',
    'run',
    'life',
    'deletion',
    'power',
    'explain',
    'events',
    'request',
    'foresee',
    '.',
    'shell',
    'spec',
    'api',
  ],
};

const pool: FolderFloors = {
  folder: 'controlplane/src/pool',
  floors: ['policy', 'facts', 'ledger', 'decide', 'shell', 'show', '.', 'api'],
};

const agents: FolderFloors = {
  folder: 'controlplane/src/agents',
  floors: ['base', 'hello', 'reports', 'push', 'stream', '.'],
};

const controlPlane: FolderFloors = {
  folder: 'controlplane/src',
  floors: [
    'version.ts',
    'filter',
    'records',
    'audit',
    'following',
    'fleet-view',
    'loop',
    'steps',
    'secrets',
    'images',
    'host',
    'plan',
    'workflow',
    'pool',
    'discovery',
    'events',
    'access',
    'agents',
    'identity',
    'metrics',
    'retention',
    'config.ts',
    'backup',
    // The calls of each resource stand above all resources.
    'call',
    'host/spec',
    'audit/api',
    'history',
    'workflow/api',
    'pool/api',
    'rack',
    'host/api',
    'access/api',
    'secrets/api',
    'identity/api',
    'discovery/api',
    'events/api',
    'services',
    'web',
    '.',
  ],
};

const agent: FolderFloors = {
  folder: 'agent/src',
  floors: [
    'version.ts',
    'rpc.ts',
    'journal',
    'images',
    'boot',
    'boot-trace',
    'console',
    'session',
    'deploy',
    'discovery',
    'identity',
    'runner-gateway',
    'operations',
    'metrics',
    '.',
  ],
};

const rpcPackage: FolderFloors = {
  folder: 'packages/rpc/src',
  floors: ['bounds', 'wire', 'probe', 'client', 'connections', 'server', 'http', 'standard', '.'],
};

const houses = [controlPlane, host, pool, agents, agent, rpcPackage];

/** Imports of one file that lead up to a higher floor of a house, or to one that has no place. */
export function findStairs(file: SourceFile): Finding[] {
  if (isTestCode(file.path)) return [];
  const around = houses.filter(({ folder }) => file.path.startsWith(`${folder}/`));
  return around.flatMap((house) => stairsIn(house, file));
}

function stairsIn(house: FolderFloors, file: SourceFile): Finding[] {
  const own = floorOf(house, file.path);
  if (own === undefined) {
    const message = `the folder has no floor among those of ${house.folder}`;
    return [{ path: file.path, line: 1, message }];
  }
  // An index names what others may use, on whatever floor it stands.
  if (file.path === `${house.folder}/index.ts`) return [];
  return importsOf(file.text).flatMap(({ specifier, line }) => {
    const target = posix.join(posix.dirname(file.path), specifier);
    if (!specifier.startsWith('.') || !target.startsWith(`${house.folder}/`)) return [];
    if ((floorOf(house, target) ?? Number.POSITIVE_INFINITY) <= own) return [];
    const message = `"${specifier}" stands above what imports it (test/tidy/floors.ts)`;
    return [{ path: file.path, line, message }];
  });
}

/** Undefined when the folder has no place in the order. */
function floorOf({ folder, floors }: FolderFloors, path: string): number | undefined {
  const [first = '', ...deeper] = posix.relative(folder, path).split('/');
  const within = floors.indexOf(`${first}/${deeper[0]}`);
  const place = within >= 0 ? within : floors.indexOf(first);
  if (place >= 0) return place;
  return deeper.length > 0 ? undefined : floors.indexOf('.');
}
