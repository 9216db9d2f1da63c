/**
 * Two control planes as processes of their own on one bucket of a real NATS server, and a rack with
 * its agent at each. Agents are in this process: real sessions over real TLS streams.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TrustTiming } from '@rackwright/controlplane';
import { type Host, HostGoal, type RackId, RunPhase } from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { connect, operatorClients } from '@rackwright/rpc';
import { freePorts } from '@rackwright/sim/loopback';
import { NatsCluster } from '@rackwright/store/testing';
import { answeredPauseMs, Box, until } from './identity-site.ts';
import { shortPauses } from './pauses.ts';
import { programOf } from './programs.ts';

const address = '127.0.0.1';
export const bucket = 'rackwright';
const random = nodeRandom();

/** One of the two. */
export class Replica {
  readonly name: string;
  readonly folder: string;
  readonly ports: readonly number[];
  clients!: ReturnType<typeof operatorClients>;
  #close: () => void = () => undefined;
  #child: ChildProcess | undefined;
  #lives = 0;

  constructor(name: string, root: string, ports: readonly number[]) {
    this.name = name;
    this.ports = ports;
    this.folder = join(root, name);
    mkdirSync(this.folder, { mode: 0o700 });
  }

  get address(): string {
    return `${address}:${this.ports[0]}`;
  }

  /** Where it reads its secrets keys; each has a file of its own. */
  get keyFile(): string {
    return join(this.folder, 'keys');
  }

  writeKeys(...keys: readonly Uint8Array[]): void {
    const text = keys.map((key) => `${Buffer.from(key).toString('base64')}\n`).join('');
    writeFileSync(this.keyFile, text, { mode: 0o600 });
  }

  async start(): Promise<void> {
    this.#lives += 1;
    const logFile = join(this.folder, `log-${this.#lives}`);
    const log = openSync(logFile, 'a');
    const args = [
      programOf('replica'),
      join(this.folder, 'config.json'),
      join(this.folder, '../timing.json'),
    ];
    const child = spawn(process.execPath, args, { stdio: ['ignore', log, log] });
    this.#child = child;
    const ended = once(child, 'exit').then(() => {
      throw new Error(`replica ${this.name} has ended: ${readFileSync(logFile, 'utf8')}`);
    });
    const ready = until(`replica ${this.name} to be ready`, () => {
      return readFileSync(logFile, 'utf8').includes('ready\n') ? true : undefined;
    });
    ended.catch(() => {}); // at the end of its life nobody waits for it any more
    await Promise.race([ready, ended]);
    await this.connect();
  }

  /** As a person would: with the CA file that is there now, or another one. */
  async connect(caPem = readFileSync(join(this.folder, 'identity/ca.pem'), 'utf8')): Promise<void> {
    this.#close();
    const token = readFileSync(join(this.folder, 'identity/admin.token'), 'utf8').trim();
    const channel = connect({ target: this.address, caPem });
    this.#close = () => channel.close();
    this.clients = operatorClients(channel, token);
    await this.clients.racks.listRacks({});
  }

  /** A client with a token of its own. */
  clientsOf(token: string) {
    const caPem = readFileSync(join(this.folder, 'identity/ca.pem'), 'utf8');
    const channel = connect({ target: this.address, caPem });
    return { ...operatorClients(channel, token), close: () => channel.close() };
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.#close();
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }
}

/** Both, with NATS below them. */
export class ReplicaSite {
  readonly folder: string;
  readonly nats: NatsCluster;
  readonly a: Replica;
  readonly b: Replica;
  /** The agent of r1 is at a, that of r2 at b. */
  readonly boxes: Box[] = [];

  private constructor(folder: string, nats: NatsCluster, ports: readonly number[]) {
    this.folder = folder;
    this.nats = nats;
    this.a = new Replica('a', folder, ports.slice(0, 2));
    this.b = new Replica('b', folder, ports.slice(2));
  }

  /** `servers`: of NATS. */
  static async start(
    timing: Partial<TrustTiming>,
    key: Uint8Array,
    { servers = 1, racks = 2 }: { readonly servers?: 1 | 3; readonly racks?: 0 | 2 } = {},
  ): Promise<ReplicaSite> {
    const nats = await NatsCluster.start({ servers, syncAlways: true });
    const folder = await mkdtemp(join(tmpdir(), 'rackwright-replicas-'));
    const site = new ReplicaSite(folder, nats, await freePorts(4));
    try {
      await site.#prepare(timing, key, racks);
      return site;
    } catch (error) {
      await site.stop();
      throw error;
    }
  }

  async #prepare(timing: Partial<TrustTiming>, key: Uint8Array, racks: number): Promise<void> {
    writeFileSync(join(this.folder, 'timing.json'), JSON.stringify(timing));
    for (const replica of [this.a, this.b]) {
      this.#configure(replica);
      replica.writeKeys(key);
    }
    await this.a.start();
    // Whoever sets a replica up copies the identity.
    const identity = join(this.b.folder, 'identity');
    cpSync(join(this.a.folder, 'identity'), identity, { recursive: true });
    chmodSync(identity, 0o700);
    await this.b.start();
    const credential = { username: 'admin', password: 'secret' };
    await this.a.clients.credentials.createCredential({ credentialId: 'bmc', credential });
    for (const [at, replica] of [this.a, this.b].slice(0, racks).entries()) {
      const rackId = `r${at + 1}`;
      await replica.clients.racks.createRack({ rackId });
      const { token } = await replica.clients.racks.createJoinToken({ rack: `racks/${rackId}` });
      const box = new Box(rackId, join(this.folder, `box${at + 1}`));
      await box.join(replica.address, token);
      await box.start();
      this.boxes.push(box);
      await this.#addHost(rackId, at + 1);
    }
  }

  #configure({ folder, ports, keyFile }: Replica): void {
    const [operators = 0, agents = 0] = ports;
    const config = {
      dataFolder: folder,
      metrics: { port: 0 },
      operators: { address, port: operators },
      agents: { address, port: agents, advertise: `${address}:${agents}` },
      names: [address],
      store: {
        ...{ driver: 'nats', servers: this.nats.addresses, monitors: this.nats.monitors },
        ...{ bucket, replicas: this.nats.addresses.length },
      },
      secrets: { key: { file: keyFile } },
      engine: shortPauses,
      sessions: { heartbeatIntervalMs: 250, idleHeartbeatIntervalMs: 250, leaseDurationMs: 3_000 },
      resyncIntervalMs: 2_000,
    };
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  }

  async #addHost(rackId: RackId, index: number): Promise<void> {
    const spec = {
      rack: `racks/${rackId}`,
      bmc: { address: `192.0.2.${index}`, credential: 'credentials/bmc' },
      bootMacs: [`52:54:00:00:00:0${index}`],
      goal: HostGoal.MANAGEABLE,
    };
    await this.a.clients.hosts.createHost({ hostId: `${rackId}-h1`, host: { spec } });
  }

  /** The box of a rack. */
  box(rackId: RackId): Box {
    const box = this.boxes.find(({ rack }) => rack === rackId);
    if (box === undefined) throw new Error(`no box of ${rackId}`);
    return box;
  }

  /** Cleans each host again and again until `enough`; resolves with how each clean ended. */
  async work(names: readonly string[], enough: () => boolean): Promise<Host[]> {
    const ended: Host[] = [];
    const one = async (name: string): Promise<void> => {
      do ended.push(await this.#clean(name));
      while (!enough());
    };
    await Promise.all(names.map(one));
    return ended;
  }

  /** Asked of a, which may be away just then. */
  async #clean(name: string): Promise<Host> {
    const requestId = `clean-${random.fraction()}`;
    const asked = await until(`${name} to take its clean`, () =>
      this.a.clients.hosts.cleanHost({ name, requestId }),
    );
    const number = asked.status?.run?.number;
    const ended = async (): Promise<Host | undefined> => {
      const host = await this.a.clients.hosts.getHost({ name });
      const { run } = host.status ?? {};
      return run?.number === number && run?.phase === RunPhase.ENDED ? host : undefined;
    };
    return until(`${name} to end its clean`, ended, answeredPauseMs);
  }

  async stop(): Promise<void> {
    await Promise.all(this.boxes.map((box) => box.stop()));
    await Promise.all([this.a, this.b].map((replica) => replica.end('SIGKILL')));
    await this.nats.dispose();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}
