/**
 * Real nats-servers on loopback for tests: one or three, killed and started again on their data.
 * The program is fetched by `npm run peers`; without it tests skip and say so.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePorts } from '@rackwright/sim/loopback';
import { SERVER_VERSION_FLOOR } from '../nats/server-version.ts';

/** The path at which `npm run peers` puts the program. */
export const NATS_PROGRAM = fileURLToPath(
  new URL('../../../../.cache/peers/nats-server', import.meta.url),
);
/**
 * How long a cluster may take to be healthy again, usually 5 s. All tries fit into a test's time.
 */
const READY_TIMEOUT_MS = 45_000;
const READY_POLL_MS = 50;
/** The length of each server's log that is shown when it is not. */
const LOG_LINES = 12;
/** How long a new cluster may take, usually half a second. */
const FORMING_TIMEOUT_MS = 15_000;
/** How often a cluster is tried. */
const ATTEMPTS_MAX = 4;
/** Why tests against servers cannot run here, or undefined. */
export function serverMissing(): string | undefined {
  if (existsSync(NATS_PROGRAM)) return undefined;
  return `peer missing: nats-server ${SERVER_VERSION_FLOOR}: run npm run peers`;
}

interface Server {
  readonly name: string;
  readonly port: number;
  readonly monitorPort: number;
  readonly configPath: string;
  process: ChildProcess | undefined;
}

export interface ClusterOptions {
  readonly servers: 1 | 3;
  /** Syncs before each acknowledgement, as production must. */
  readonly syncAlways: boolean;
  /** The program to run; the fetched one unless given. */
  readonly program?: string;
  /** The parent of the servers' folder; the folder for temporary files unless given. */
  readonly parent?: string;
}

/** The system account's user of every cluster here. */
export const SYSTEM_USER = { user: 'system', password: 'system' } as const;

export class NatsCluster {
  readonly #folder: string;
  readonly #servers: readonly Server[];
  readonly #program: string;
  /** The settings of one of the servers, by its place. */
  readonly #settings: (at: number, syncAlways: boolean) => string;

  private constructor(
    folder: string,
    servers: readonly Server[],
    program: string,
    settings: (at: number, syncAlways: boolean) => string,
  ) {
    this.#folder = folder;
    this.#servers = servers;
    this.#program = program;
    this.#settings = settings;
  }

  /**
   * Starts a new cluster. Servers that start together sometimes settle on a cluster of two, for
   * good (one start in fifteen, 2.10.27); such a cluster is given up for another.
   */
  static async start(options: ClusterOptions): Promise<NatsCluster> {
    for (let attempt = 1; ; attempt += 1) {
      const cluster = await NatsCluster.#make(options);
      try {
        await cluster.#startOnce(FORMING_TIMEOUT_MS);
        return cluster;
      } catch (error) {
        await cluster.dispose();
        if (attempt === ATTEMPTS_MAX) throw error;
      }
    }
  }

  static async #make(options: ClusterOptions): Promise<NatsCluster> {
    const folder = await mkdtemp(join(options.parent ?? tmpdir(), 'rackwright-nats-'));
    const ports = await freePorts(options.servers * 3);
    const routes = ports.slice(options.servers * 2);
    const servers: Server[] = [];
    for (let at = 0; at < options.servers; at += 1) {
      const server: Server = {
        name: `n${at + 1}`,
        port: ports[at] as number,
        monitorPort: ports[options.servers + at] as number,
        configPath: join(folder, `n${at + 1}.conf`),
        process: undefined,
      };
      servers.push(server);
    }
    const settings = (at: number, syncAlways: boolean): string =>
      configuration(servers[at] as Server, folder, routes, at, syncAlways);
    for (const [at, { configPath }] of servers.entries()) {
      await writeFile(configPath, settings(at, options.syncAlways));
    }
    return new NatsCluster(folder, servers, options.program ?? NATS_PROGRAM, settings);
  }

  /** `host:port` of each server. */
  get addresses(): string[] {
    return this.#servers.map((server) => `127.0.0.1:${server.port}`);
  }

  get monitors(): string[] {
    return this.#servers.map((server) => `http://127.0.0.1:${server.monitorPort}`);
  }

  get names(): string[] {
    return this.#servers.map((server) => server.name);
  }

  /**
   * Starts the servers that do not run and waits until all are healthy and one leads all. A server
   * that stays behind for good after a kill (seen on 2.10.27 under load) is killed again, with all.
   */
  async startAll(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#startOnce(READY_TIMEOUT_MS);
        return;
      } catch (error) {
        if (attempt === ATTEMPTS_MAX) throw error;
        await this.kill();
      }
    }
  }

  /** Changes when a server syncs, from its next start on. */
  async setSyncAlways(name: string, syncAlways: boolean): Promise<void> {
    const at = this.#servers.findIndex((server) => server.name === name);
    const server = this.#servers[at];
    if (server === undefined) throw new Error(`no server is called ${name}`);
    await writeFile(server.configPath, this.#settings(at, syncAlways));
  }

  async #startOnce(withinMs: number): Promise<void> {
    for (const server of this.#servers) {
      server.process ??= spawn(this.#program, ['-c', server.configPath], { stdio: 'ignore' });
    }
    const until = performance.now() + withinMs;
    while (!(await this.#isReady())) {
      if (performance.now() > until) throw new Error(await this.#whyNotReady());
      await delay(READY_POLL_MS);
    }
  }

  async #whyNotReady(): Promise<string> {
    const ends = this.#servers.map(async (server) => {
      const log = await readFile(`${server.configPath}.log`, 'utf8');
      const code = server.process?.exitCode ?? 'none, it runs';
      const monitor = `http://127.0.0.1:${server.monitorPort}`;
      const health = await said(monitor, '/healthz');
      const meta = await said(monitor, '/jsz');
      const lines = log.split('\n').slice(-LOG_LINES).join('\n');
      return `${server.name}, exit code ${code}, ${health}, ${meta}:\n${lines}`;
    });
    return `the servers do not get ready; ${(await Promise.all(ends)).join('\n')}`;
  }

  async #isReady(): Promise<boolean> {
    for (const monitor of this.monitors) if (!(await isHealthy(monitor))) return false;
    if (this.#servers.length === 1) return true;
    for (const monitor of this.monitors) {
      if (await leadsAll(monitor, this.#servers.length)) return true;
    }
    return false;
  }

  /** SIGKILL to the named servers, all at once, and their end awaited. */
  async kill(names: readonly string[] = this.names): Promise<void> {
    const ends: Promise<unknown>[] = [];
    for (const server of this.#servers) {
      const { process } = server;
      if (!names.includes(server.name) || process === undefined) continue;
      server.process = undefined;
      if (process.exitCode !== null || process.signalCode !== null) continue;
      ends.push(once(process, 'exit'));
      process.kill('SIGKILL');
    }
    await Promise.all(ends);
  }

  async dispose(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

function configuration(
  server: Server,
  folder: string,
  routes: readonly number[],
  at: number,
  syncAlways: boolean,
): string {
  const sync = syncAlways ? 'sync_interval: always' : '';
  const others = routes.filter((_, each) => each !== at);
  const peers = others.map((port) => `nats://127.0.0.1:${port}`).join(', ');
  const own = `name: rackwright, host: 127.0.0.1, port: ${routes[at]}`;
  const cluster = `cluster { ${own}, routes: [${peers}] }`;
  return `
    host: 127.0.0.1
    port: ${server.port}
    http: 127.0.0.1:${server.monitorPort}
    server_name: ${server.name}
    log_file: "${server.configPath}.log"
    jetstream { store_dir: "${join(folder, server.name)}", ${sync} }
    accounts {
      SYS { users: [{ user: ${SYSTEM_USER.user}, password: ${SYSTEM_USER.password} }] }
      STORE { jetstream: enabled, users: [{ user: store, password: store }] }
    }
    system_account: SYS
    no_auth_user: store
    ${routes.length > 1 ? cluster : ''}
  `;
}

async function isHealthy(monitor: string): Promise<boolean> {
  try {
    const answer = await fetch(new URL('/healthz', monitor), {
      signal: AbortSignal.timeout(1_000),
    });
    return answer.ok;
  } catch {
    return false;
  }
}

/** What a monitor says, for a person. */
async function said(monitor: string, path: string): Promise<string> {
  try {
    const answer = await fetch(new URL(path, monitor), { signal: AbortSignal.timeout(1_000) });
    return await answer.text();
  } catch (error) {
    return `${path} failed: ${String(error)}`;
  }
}

/** Whether the server leads a cluster of that many, none of which it holds for lost. */
async function leadsAll(monitor: string, servers: number): Promise<boolean> {
  const answer = await fetch(new URL('/jsz', monitor), { signal: AbortSignal.timeout(1_000) });
  const { meta_cluster: meta } = (await answer.json()) as {
    meta_cluster?: { replicas?: { offline?: boolean }[] };
  };
  return meta?.replicas?.filter((each) => each.offline !== true).length === servers - 1;
}
