/**
 * A whole site in this process, for tests of identity under load: the real control plane on its
 * store, agents of the real session over real TLS streams, and machines that answer soon. What each
 * agent was told to do, and how often, is counted.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AgentIdentity,
  AgentSession,
  grpcTransport,
  IdentityFiles,
  IdentityRenewal,
  Journal,
  join as joinRack,
  readKey,
} from '@rackwright/agent';
import {
  type ControlPlane,
  parseConfig,
  startControlPlane,
  type TrustTiming,
} from '@rackwright/controlplane';
import {
  type agent,
  type Host,
  HostGoal,
  type RackId,
  RunOutcome,
  RunPhase,
} from '@rackwright/messages';
import type { Log, LogFields } from '@rackwright/platform';
import { nodeClock, nodeDisk, nodeRandom } from '@rackwright/platform/node';
import { recordingLog } from '@rackwright/platform/testing';
import { connect, operatorClients } from '@rackwright/rpc';
import { freePorts } from '@rackwright/sim/loopback';
import { openSqliteStore, RETENTION_DEFAULT } from '@rackwright/store';
import { instantExecutor } from '../instant/machines.ts';
import { shortPauses } from './pauses.ts';

const clock = nodeClock();
const random = nodeRandom();
const disk = nodeDisk();
/** How long each operation takes, unless an option says so. */
const operationUsualMs = 60;
const waitMs = 300_000;
/** From one question to the next where each of them costs both sides a call. */
export const answeredPauseMs = 500;

export interface SiteOptions {
  readonly racks: number;
  readonly hostsPerRack: number;
  /** Lives that no configuration may ask for. */
  readonly trustTiming?: Partial<TrustTiming>;
  /** How long each operation takes: in a test of a minute, the shortest ones cost most. */
  readonly operationMs?: number;
  /** What the control plane's clock is ahead of everybody else's. */
  readonly clockAheadMs?: number;
}

export interface Line {
  readonly fields: LogFields;
  readonly message: string;
}

/** What of a box is not as usual. */
export interface BoxOptions {
  /** Where it dials now; unset: as its certificate came with. */
  readonly endpoint?: () => string;
  /** What its machines do for an operation, before it is answered; unset: they take a moment. */
  readonly machines?: (operation: agent.Operation) => Promise<void>;
  /** Steps of the agent's own. */
  readonly steps?: readonly agent.StepDescription[];
}

/** One rack box: its disk, and the life of the agent on it. */
export class Box {
  readonly rack: string;
  readonly folder: string;
  readonly lines: Line[] = [];
  /** How often each operation was carried out, by id. */
  readonly executed = new Map<string, number>();
  session: AgentSession | undefined;
  renewal: IdentityRenewal | undefined;
  readonly #runners = new Map<string, string>();
  readonly #options: BoxOptions;
  #journal: Journal | undefined;

  constructor(rack: string, folder: string, options: BoxOptions = {}) {
    this.rack = rack;
    this.folder = folder;
    this.#options = options;
  }

  get files(): IdentityFiles {
    return new IdentityFiles(disk, this.folder);
  }

  async join(address: string, token: string): Promise<AgentIdentity> {
    const identity = await joinRack({ clock, random }, await this.files.key(), address, token);
    await this.files.save(identity);
    return identity;
  }

  async start(): Promise<void> {
    const identity = await this.files.load();
    if (identity === undefined) throw new Error('join first');
    const log = logInto(this.lines);
    const path = `${this.folder}/journal`;
    const journal = await Journal.open({ disk, path, clock, random, log });
    const renewal = new IdentityRenewal({ clock, random, log, files: this.files }, identity);
    const session = new AgentSession({
      ...{ journal, disk, clock, random, log, trust: renewal },
      snapshotPath: `${this.folder}/boot-snapshot`,
      crashPoint: () => {},
      agentVersion: 'test',
      limits: { reconnectFirstMs: 100, reconnectLongestMs: 1_000 },
      transport: grpcTransport(() => {
        const { agentEndpoint, caCertificatePem, certificatePem, privateKeyPem } =
          renewal.current();
        const own = { privateKeyPem, certificateChainPem: certificatePem };
        const target = this.#options.endpoint?.() ?? agentEndpoint;
        return { target, caPem: caCertificatePem, own };
      }),
    });
    const key = readKey(identity.privateKeyPem);
    const { machines: act, steps } = this.#options;
    const machines = {
      ...{ session: () => session, clock, key, runners: this.#runners },
      ...(steps === undefined ? {} : { steps }),
    };
    const before = async (operation: agent.Operation): Promise<void> => {
      this.executed.set(operation.id, (this.executed.get(operation.id) ?? 0) + 1);
      await (act === undefined ? sleep(operationUsualMs) : act(operation));
    };
    await session.start(instantExecutor({ ...machines, before }));
    renewal.onRenewed(() => session.move('a new certificate'));
    renewal.start();
    this.session = session;
    this.renewal = renewal;
    this.#journal = journal;
  }

  /** Like a process that ends: what runs is forgotten, what is on the disk stays. */
  async stop(): Promise<void> {
    this.renewal?.stop();
    this.session?.stop();
    const journal = this.#journal;
    this.#journal = undefined;
    await journal?.close();
  }

  /** Lines whose message holds the words. */
  said(text: string): Line[] {
    return this.lines.filter(({ message, fields }) => {
      return `${message} ${JSON.stringify(fields)}`.includes(text);
    });
  }
}

/** The control plane, its racks and their boxes. */
export class Site {
  readonly folder: string;
  readonly boxes: Box[] = [];
  readonly lines: Line[] = [];
  controlPlane!: ControlPlane;
  clients!: ReturnType<typeof operatorClients>;
  readonly #options: SiteOptions;
  #ports: readonly number[] = [];
  #close: () => void = () => undefined;

  private constructor(options: SiteOptions, folder: string) {
    this.#options = options;
    this.folder = folder;
  }

  static async start(options: SiteOptions): Promise<Site> {
    const site = new Site(options, await mkdtemp(join(tmpdir(), 'rackwright-identity-')));
    site.#ports = await freePorts(2);
    await site.startControlPlane();
    const credential = { username: 'admin', password: 'secret' };
    if (options.racks > 0) {
      await site.clients.credentials.createCredential({ credentialId: 'bmc', credential });
    }
    for (let rack = 1; rack <= options.racks; rack += 1) await site.#addRack(`r${rack}`);
    return site;
  }

  get address(): string {
    return `127.0.0.1:${this.#ports[0]}`;
  }

  async startControlPlane(): Promise<void> {
    const [operators = 0, agents = 0] = this.#ports;
    const address = '127.0.0.1';
    const config = parseConfig(
      JSON.stringify({
        dataFolder: join(this.folder, 'cp'),
        metrics: { port: 0 },
        operators: { address, port: operators },
        agents: { address, port: agents, advertise: `${address}:${agents}` },
        names: [address],
        engine: shortPauses,
        sessions: {
          heartbeatIntervalMs: 750,
          idleHeartbeatIntervalMs: 750,
          leaseDurationMs: 8_000,
        },
        resyncIntervalMs: 2_000,
      }),
    );
    const path = join(this.folder, 'cp/state.db');
    const retention = { ...RETENTION_DEFAULT, historyPrefixes: ['hosts', 'facts'] };
    await disk.makeFolder(join(this.folder, 'cp'), 0o700);
    this.controlPlane = await startControlPlane(
      config,
      {
        ...{ random, disk },
        clock: { ...clock, nowMs: () => clock.nowMs() + (this.#options.clockAheadMs ?? 0) },
        log: logInto(this.lines),
        crashPoint: () => undefined,
        openStore: () => openSqliteStore({ path, random, clock, retention }),
      },
      this.#options.trustTiming === undefined ? {} : { trustTiming: this.#options.trustTiming },
    );
    await this.connect();
  }

  /** As a person would: with the CA file that is there now. */
  async connect(): Promise<void> {
    this.#close();
    const identity = join(this.folder, 'cp/identity');
    const caPem = await readFile(join(identity, 'ca.pem'), 'utf8');
    const token = (await readFile(join(identity, 'admin.token'), 'utf8')).trim();
    const channel = connect({ target: this.address, caPem });
    this.#close = () => channel.close();
    this.clients = operatorClients(channel, token);
  }

  async #addRack(rackId: RackId): Promise<void> {
    const { racks, hosts } = this.clients;
    await racks.createRack({ rackId });
    const { token } = await racks.createJoinToken({ rack: `racks/${rackId}` });
    const box = await this.addBox(rackId, token);
    await box.start();
    const index = this.boxes.length;
    for (let host = 1; host <= this.#options.hostsPerRack; host += 1) {
      await hosts.createHost({
        hostId: `${rackId}-h${host}`,
        host: {
          spec: {
            rack: `racks/${rackId}`,
            bmc: { address: `192.0.2.${index * 16 + host}`, credential: 'credentials/bmc' },
            bootMacs: [`52:54:00:00:0${index}:0${host}`],
            goal: HostGoal.MANAGEABLE,
          },
        },
      });
    }
  }

  /** Another box for the rack, joined and not started. */
  async addBox(rackId: RackId, token: string): Promise<Box> {
    const { operationMs } = this.#options;
    const box = new Box(rackId, join(this.folder, `box${this.boxes.length + 1}`), {
      ...(operationMs === undefined ? {} : { machines: () => sleep(operationMs) }),
    });
    await box.join(this.address, token);
    this.boxes.push(box);
    return box;
  }

  /** All hosts are there and proved. */
  async ready(): Promise<string[]> {
    const { racks, hostsPerRack } = this.#options;
    return until('every host to be verified', async () => {
      const { hosts } = await this.clients.hosts.listHosts({});
      const ended = hosts.filter(({ status }) => status?.run?.phase === RunPhase.ENDED);
      return ended.length === racks * hostsPerRack ? hosts.map(({ name }) => name) : undefined;
    });
  }

  /**
   * Cleans each host again and again until so many ended cleans are `enough`; resolves with how
   * each of them ended.
   */
  async work(names: readonly string[], enough: (ended: number) => boolean): Promise<Host[]> {
    const ended: Host[] = [];
    const one = async (name: string): Promise<void> => {
      do ended.push(await this.clean(name));
      while (!enough(ended.length));
    };
    await Promise.all(names.map(one));
    return ended;
  }

  /** One clean, to its end. The control plane may be away meanwhile. */
  async clean(name: string): Promise<Host> {
    const requestId = `clean-${random.fraction()}`;
    const asked = await until(`${name} to take its clean`, () =>
      this.clients.hosts.cleanHost({ name, requestId }),
    );
    const number = asked.status?.run?.number;
    const ended = async (): Promise<Host | undefined> => {
      const host = await this.clients.hosts.getHost({ name });
      const { run } = host.status ?? {};
      return run?.number === number && run?.phase === RunPhase.ENDED ? host : undefined;
    };
    return until(`${name} to end its clean`, ended, answeredPauseMs);
  }

  async stop(): Promise<void> {
    await Promise.all(this.boxes.map((box) => box.stop()));
    this.#close();
    await this.controlPlane.close();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

/** What is not as it has to be after `cleans`: each succeeded at the first attempt of each step. */
export function troubleIn(cleans: readonly Host[]): string[] {
  return cleans.flatMap(({ name, status }) => {
    const run = status?.run;
    const steps = run?.steps.filter(({ attempt }) => attempt > 1) ?? [];
    if (run?.outcome === RunOutcome.SUCCEEDED && steps.length === 0) return [];
    const repeated = steps.map(({ name: step, attempt }) => `${step} ${attempt} times`).join(', ');
    return [`${name}: ${run?.outcome} ${run?.error?.message ?? ''} ${repeated}`];
  });
}

/** Operations that a box carried out more than once. */
export function executedTwice(boxes: readonly Box[]): string[] {
  return boxes.flatMap(({ executed }) =>
    [...executed].filter(([, times]) => times > 1).map(([id]) => id),
  );
}

/** What `look` gives once it gives something; it may fail until then. */
export async function until<T>(
  what: string,
  look: () => T | undefined | Promise<T | undefined>,
  pauseMs = 100,
): Promise<T> {
  const endMs = clock.nowMs() + waitMs;
  let last: unknown = 'nothing';
  while (clock.nowMs() < endMs) {
    try {
      const found = await look();
      if (found !== undefined) return found;
    } catch (error) {
      last = error;
    }
    await sleep(pauseMs);
  }
  throw new Error(`waited in vain for ${what}; last: ${String(last)}`);
}

function logInto(lines: Line[]): Log {
  return recordingLog(({ level, fields, message }) => {
    if (level !== 'debug') lines.push({ fields, message });
  });
}
