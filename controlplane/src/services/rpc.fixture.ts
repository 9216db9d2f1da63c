/** A whole control plane on loopback ports with a store in memory, for this folder's tests. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiFailure, agent } from '@rackwright/messages';
import type { Log, LogFields } from '@rackwright/platform';
import { nodeClock, nodeDisk, nodeRandom } from '@rackwright/platform/node';
import { quietLog, recordingLog } from '@rackwright/platform/testing';
import { type Channel, connect, createClient, operatorClients } from '@rackwright/rpc';
import {
  type MemoryDisk,
  openMemoryStore,
  RETENTION_DEFAULT,
  type StateStore,
} from '@rackwright/store';
import { parseConfig } from '../config.ts';
import { type ControlPlane, type Platform, startControlPlane } from '../control-plane.ts';

const random = nodeRandom();
/**
 * Both ends are in one process. Work that blocks the process would delay the answer to a ping, and
 * the connection would end during calls: "Stream refused by server".
 */
const inOneProcess = { keepaliveAfterMs: 3_600_000, keepaliveTimeoutMs: 3_600_000 };
const retention = { ...RETENTION_DEFAULT, historyPrefixes: ['hosts', 'facts'] };

export type Fixture = Awaited<ReturnType<typeof startFixture>>;

/** Deviations from the defaults. */
export interface Extras {
  readonly config?: object;
  readonly platform?: Partial<Platform>;
  /** The disk of the store in memory. */
  readonly disk?: MemoryDisk;
}

/** Waits until no write has happened for a while: then all loops have handled the new records. */
export async function settled(store: StateStore): Promise<void> {
  for (let seen = -1; ; ) {
    const latest = await store.latestRevision();
    if (latest === seen) return;
    seen = latest;
    await new Promise<void>((resolve) => nodeClock().after(300, resolve));
  }
}

/** Starts it with new folders and an empty store. */
export async function startFixture(extras: Extras = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-rpc-'));
  const lines: { fields: LogFields; message: string }[] = [];
  const log = recordingLog(({ fields, message }) => void lines.push({ fields, message }));
  const { disk } = extras;
  const kept = { random, clock: nodeClock(), retention };
  const store = await openMemoryStore(disk === undefined ? kept : { ...kept, disk });
  const controlPlane = await startOn(folder, store, log, extras);
  const token = (await readFile(join(folder, 'identity/admin.token'), 'utf8')).trim();
  const channel = connect({
    target: `127.0.0.1:${controlPlane.operatorsPort}`,
    caPem: controlPlane.identity.caCertificatePem,
    limits: inOneProcess,
  });
  return {
    controlPlane,
    store,
    channel,
    token,
    lines,
    ...clientsOf(channel, token),
    stop: async () => {
      channel.close();
      await controlPlane.close();
      await rm(folder, { recursive: true });
    },
  };
}

/** Starts a control plane on loopback ports with these parts. */
export function startOn(
  folder: string,
  store: StateStore,
  log: Log = quietLog,
  extras: Extras = {},
): Promise<ControlPlane> {
  const { operators, agents, ...config } = parseConfig(
    JSON.stringify({
      dataFolder: folder,
      operators: { address: '127.0.0.1', port: 0 },
      agents: { address: '127.0.0.1', port: 0, advertise: 'cp.example:7441' },
      ...extras.config,
    }),
  );
  const patient = {
    ...config,
    // On a busy machine a test may take longer than an agent may be away.
    engine: { ...config.engine, contactDeadlineMs: 3_600_000 },
    operators: { ...operators, limits: { ...operators.limits, ...inOneProcess } },
    agents: { ...agents, limits: { ...agents.limits, ...inOneProcess } },
  };
  return startControlPlane(patient, {
    clock: nodeClock(),
    random,
    disk: nodeDisk(),
    log,
    crashPoint: () => undefined,
    openStore: async () => store,
    ...extras.platform,
  });
}

function clientsOf(channel: Channel, token: string) {
  return {
    ...operatorClients(channel, token),
    enrolment: createClient(agent.EnrolmentService, channel),
  };
}

/** The resources that a host needs: a rack and a credential. */
export async function addSurroundings({
  racks,
  credentials,
}: Pick<Fixture, 'racks' | 'credentials'>): Promise<void> {
  await racks.createRack({ rackId: 'r1' });
  const credential = { username: 'root', password: 'calvin' };
  await credentials.createCredential({ credentialId: 'bmc', credential });
}

/** A valid spec with addresses unique to `n`. */
export function specOf(n: number) {
  const hex = n.toString(16).padStart(2, '0');
  return {
    rack: 'racks/r1',
    bmc: { address: `192.0.2.${n}`, credential: 'credentials/bmc' },
    bootMacs: [`52:54:00:00:00:${hex}`],
  };
}

/** The error of a failed call. */
export async function failureOf(call: Promise<unknown>): Promise<ApiFailure['error']> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof ApiFailure) return error.error;
  throw new Error(`expected an ApiFailure, got ${String(error)}`);
}

/** The fields of all violations of a failed call. */
export async function violatedFields(call: Promise<unknown>): Promise<string[]> {
  const error = await failureOf(call);
  if (!('violations' in error)) throw new Error(`expected violations, got ${error.message}`);
  return error.violations.map(({ field }) => field);
}
