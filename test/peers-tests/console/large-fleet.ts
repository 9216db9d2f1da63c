/**
 * A control plane of a hundred thousand hosts that is none: it speaks the real protocol, knows of
 * it what the list of hosts asks, and serves the console's files as they were built. It counts what
 * it is asked for.
 */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import type { ConnectRouter } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import {
  AccessService,
  BootStepKind,
  enumWord,
  FleetService,
  type Host,
  HostSchema,
  HostService,
  HostState,
  HostStateSchema,
  WatchHostsResponse_Kind as Kind,
  RackService,
  Role,
} from '@rackwright/messages';

export interface LargeFleet {
  /** "http://localhost:PORT": secure enough for a browser to have cryptography. */
  readonly address: string;
  /** Hosts that lists have answered. */
  readonly listed: () => number;
  /** The filters that lists were asked with. */
  readonly filters: ReadonlySet<string>;
  /** Sends so many changes to whoever watches; resolves once all are on their way. */
  readonly change: (events: number) => Promise<void>;
  readonly close: () => Promise<void>;
}

const rackHosts = 200;
const states = [
  HostState.AVAILABLE,
  HostState.PROVISIONED,
  HostState.PROVISIONED,
  HostState.MANAGEABLE,
];
const types: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript',
  css: 'text/css',
  svg: 'image/svg+xml',
};
/** That of the control plane: what would break it shows here, too. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
  "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

function hostOf(index: number, round = 0): Host {
  const id = `h${String(index).padStart(6, '0')}`;
  return create(HostSchema, {
    name: `hosts/${id}`,
    uid: `uid-${index}`,
    spec: { rack: `racks/r${Math.floor(index / rackHosts)}`, bootMacs: ['52:54:00:00:00:01'] },
    status: {
      state: states[index % states.length] ?? HostState.NEW,
      display: `round ${round}`,
      poweredOn: (index + round) % 2 === 0,
      agentConnected: true,
    },
  });
}

/** What the serial console of a host shows whose boot stands still: no markup, whatever it says. */
export const lastScreen = ['BdsDxe: failed to start Boot0001', '<b>Access Denied</b>'];
const stalledHost = create(HostSchema, {
  spec: { rack: 'racks/r0' },
  status: {
    display: 'booting',
    boots: [{ operationId: 'u/1/1/1', missing: BootStepKind.SCRIPT, lastScreen }],
  },
});

/** Of filters the console's own for a state and for a word: as much as the test asks. */
function matcherOf(filter: string): (index: number) => boolean {
  const state = /\bstate = (\w+)/.exec(filter)?.[1];
  const word = /name = \*([^*]+)\*/.exec(filter)?.[1];
  return (index) => {
    const { name, status } = hostOf(index);
    const isState = state === undefined || enumWord(HostStateSchema, status?.state ?? 0) === state;
    return isState && (word === undefined || name.includes(word));
  };
}

export async function startLargeFleet(hosts: number, folder: string): Promise<LargeFleet> {
  const filters = new Set<string>();
  const matching = new Map<string, readonly number[]>();
  const watchers = new Set<(event: Host) => Promise<void>>();
  let listed = 0;
  const indexes = (filter: string): readonly number[] => {
    const all = matching.get(filter) ?? allOf(hosts).filter(matcherOf(filter));
    matching.set(filter, all);
    return all;
  };
  const routes = (router: ConnectRouter) => {
    router.service(AccessService, {
      whoAmI: () => ({ actor: 'user:test', role: Role.ADMIN }),
    });
    router.service(FleetService, { getFleet: () => ({ name: 'fleet' }) });
    router.service(RackService, { listRacks: () => ({ racks: [] }) });
    router.service(HostService, {
      getHost: ({ name }) => ({ ...stalledHost, name }),
      explainHost: ({ name }) => ({
        ...{ subject: name, headline: 'it waits for its runner', lastScreen },
        unblock: ['sign its loader'],
      }),
      countHosts: ({ filter }) => ({ total: indexes(filter).length }),
      listHosts: ({ filter, orderBy, skip = 0, pageSize = 100 }) => {
        filters.add(filter);
        const all = indexes(filter);
        const sorted = orderBy === 'name desc' ? all.toReversed() : all;
        const page = sorted.slice(skip, skip + pageSize);
        listed += page.length;
        return { hosts: page.map((index) => hostOf(index)) };
      },
      watchHosts: async function* (_, { signal }) {
        yield { kind: Kind.SYNCED, position: '1' };
        const queue: Host[] = [];
        let wake = () => {};
        const put = async (host: Host) => {
          queue.push(host);
          wake();
          if (queue.length > 100) await new Promise((resolve) => setTimeout(resolve, 1));
        };
        watchers.add(put);
        signal.addEventListener('abort', () => wake());
        while (!signal.aborted) {
          const host = queue.shift();
          if (host !== undefined) yield { kind: Kind.UPDATED, host, position: '2' };
          else await new Promise<void>((resolve) => (wake = resolve));
        }
        watchers.delete(put);
      },
    });
  };
  const adapter = connectNodeAdapter({ routes });
  const files = filesOf(folder);
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname;
    const file = files.get(path === '/' ? '/index.html' : path);
    if (file === undefined) {
      adapter(request, response);
      return;
    }
    const type = types[path.split('.').at(-1) ?? ''] ?? types['html'] ?? '';
    response.writeHead(200, { 'content-type': type, 'content-security-policy': policy });
    response.end(file);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `http://localhost:${(server.address() as AddressInfo).port}`,
    listed: () => listed,
    filters,
    change: async (events) => {
      for (let event = 0; event < events; event += 1) {
        const host = hostOf((event * 7) % hosts, event);
        await Promise.all([...watchers].map((put) => put(host)));
      }
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function allOf(hosts: number): number[] {
  return Array.from({ length: hosts }, (_, index) => index);
}

function filesOf(folder: string): Map<string, Buffer> {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = found
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name));
  return new Map(files.map((file) => [file.slice(folder.length), readFileSync(file)]));
}
