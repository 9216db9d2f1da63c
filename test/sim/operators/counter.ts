/**
 * Where operators ask: the production services of one replica, called in process, and the
 * production command over the same services.
 */

import { type CommandIo, runCli } from '@rackwright/cli';
import { createOperatorServices, trustedSignIn } from '@rackwright/controlplane';
import {
  AbandonedResourceService,
  type ApiError,
  ApiFailure,
  asReplicaId,
  CredentialService,
  DiscoveryService,
  FleetService,
  HostService,
  PoolService,
  RackService,
  TemplateService,
  WorkflowBatchService,
  WorkflowService,
} from '@rackwright/messages';
import { type Channel, createClient, localChannel } from '@rackwright/rpc';
import type { Replica, WorldView } from '../view.ts';
import { simSecrets } from './secrets.ts';

/** A caller that hears nothing for so long no longer waits. */
const patienceMs = 60_000;

export type Answer<T> =
  | { readonly kind: 'accepted'; readonly value: T }
  | { readonly kind: 'refused'; readonly error: ApiError }
  /** The control plane died meanwhile, or takes too long. */
  | { readonly kind: 'unknown' };

export type Counter = ReturnType<typeof openCounter>;

/** What a command line came to. */
export interface Typed {
  readonly code: number;
  readonly output: string;
}

const counters = new WeakMap<Replica, Counter>();

/** The counter of a replica; the same one for as long as it lives. */
export function counterOf(view: WorldView, replica: Replica): Counter {
  const known = counters.get(replica) ?? openCounter(view, replica);
  counters.set(replica, known);
  return known;
}

function openCounter(view: WorldView, replica: Replica) {
  const { store, process, fleetView } = replica;
  const { clock } = process;
  const log = view.log(replica.name);
  const { services } = createOperatorServices(
    {
      ...{ store, clock, random: view.random, log, fleetView },
      hosts: replica.hosts,
      workflows: replica.parts?.workflows ?? {
        reconcile: async () => undefined,
        oneAtATime: async (_id, work) => await work(),
      },
      pools: replica.pools ?? { reconcile: async () => undefined, known: () => new Map() },
      batches: replica.parts?.batches ?? { reconcile: async () => undefined, openIds: () => [] },
      discovery: replica.discovery ?? {
        accept: async () => undefined,
        listedIn: () => 0,
        remarksOf: () => [],
        wake: () => undefined,
        wakeRack: () => undefined,
      },
      identity: { secrets: simSecrets(view.random) } as never,
      rackKeys: { rackOf: () => undefined, noteWritten: () => undefined },
      stepLogs: { read: () => [], onChange: () => () => undefined },
      replicaId: asReplicaId(replica.name),
      onCall: () => undefined,
      agentEndpoint: 'sim:7441',
    },
    trustedSignIn,
  );
  const channel = localChannel(services);
  return {
    hosts: createClient(HostService, channel),
    racks: createClient(RackService, channel),
    credentials: createClient(CredentialService, channel),
    discovery: createClient(DiscoveryService, channel),
    fleet: createClient(FleetService, channel),
    pools: createClient(PoolService, channel),
    abandoned: createClient(AbandonedResourceService, channel),
    templates: createClient(TemplateService, channel),
    batches: createClient(WorkflowBatchService, channel),
    workflows: createClient(WorkflowService, channel),
    /** Types a command line, with what is asked for on standard input. */
    type: (line: readonly string[], input: string) => type(replica, channel, line, input),
  };
}

async function type(
  { process }: Replica,
  channel: Channel,
  line: readonly string[],
  input: string,
): Promise<Typed> {
  let output = '';
  const write = (text: string) => {
    output += text;
  };
  const world: CommandIo = {
    environment: {
      RACKWRIGHT_SERVER: 'sim:7440',
      RACKWRIGHT_TOKEN_FILE: '/token',
      RACKWRIGHT_CA_FILE: '/ca',
    },
    homeFolder: '/home/operator',
    clock: process.clock,
    random: { fraction: () => 0.5 },
    readFile: async (path) =>
      path.startsWith('/home') ? undefined : new TextEncoder().encode('text'),
    writeFile: async () => undefined,
    writePrivateFile: async () => undefined,
    removeFile: async () => undefined,
    readInput: async () => input,
    askHidden: async () => input,
    ask: async () => 'y',
    connect: () => channel,
    out: { write, columns: 100 },
    err: { write, columns: 100 },
    signal: new AbortController().signal,
  };
  const code = await runCli(line, world);
  return { code, output };
}

/** Waits for an answer as long as somebody can still give it. */
export function ask<T>({ heap }: WorldView, call: () => Promise<T>): Promise<Answer<T>> {
  return new Promise((resolve, reject) => {
    const cancel = heap.after(patienceMs, () => resolve({ kind: 'unknown' }));
    call().then(
      (value) => {
        cancel();
        resolve({ kind: 'accepted', value });
      },
      (error: unknown) => {
        cancel();
        if (error instanceof ApiFailure) resolve({ kind: 'refused', error: error.error });
        else reject(error);
      },
    );
  });
}
