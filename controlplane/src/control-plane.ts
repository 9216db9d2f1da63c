/**
 * The whole control plane, wired: identity, store, host loop, agent sessions, two TLS ports.
 *
 * Invariants:
 * 1. An identity that was just made never meets a store that has state already: the agents,
 *    credentials and certificates in it belong to another identity.
 * 2. Ports open last: nobody is answered by a half-started control plane.
 * 3. Closing goes the other way round, and ends with the store.
 */
import {
  agent,
  type BoundService,
  bind,
  createHealthBoard,
  type KeyAndChain,
  type RpcServer,
  serve,
} from '@rackwright/api';
import { signBytes } from '@rackwright/erasure';
import {
  type Clock,
  type CrashPoint,
  type Disk,
  type Log,
  type Random,
  randomId,
  type WebClient,
} from '@rackwright/platform';
import type { StateStore } from '@rackwright/store';
import { createAgentService, createSessionRegistry, StepLogs } from './agents/index.ts';
import { type AuditTrail, auditedGuard, createAuditTrail, identified } from './audit/index.ts';
import type { ControlPlaneConfig } from './config.ts';
import { Discovery } from './discovery/index.ts';
import { Following } from './following/index.ts';
import { Hosts } from './host/index.ts';
import {
  createTokenGuard,
  type Identity,
  IdentityError,
  identifyAgent,
  openIdentity,
} from './identity/index.ts';
import { PlanSweeper } from './plan/index.ts';
import { startRetentionSweep } from './retention/index.ts';
import { createHost, createOperatorServices, type OperatorServices } from './rpc/index.ts';
import { createWebhookCaller, createWorkflowParts } from './workflow/index.ts';

/** The world as the control plane needs it. */
export interface Platform {
  readonly clock: Clock;
  readonly random: Random;
  readonly disk: Disk;
  readonly log: Log;
  readonly crashPoint: CrashPoint;
  /** Absent: the webhooks of templates are not called, and their steps fail. */
  readonly webClient?: WebClient;
  /** Opens the store that the configuration names. */
  readonly openStore: () => Promise<StateStore>;
}

export interface StartOptions {
  /** Lifts invariant 1, once: a person has decided that the old identity is lost. */
  readonly acceptNewIdentity?: boolean;
}

export interface ControlPlane {
  readonly operatorsPort: number;
  readonly agentsPort: number;
  readonly identity: Identity;
  readonly store: StateStore;
  readonly discovery: Discovery;
  close(): Promise<void>;
}

/** Folder of the identity's files below the data folder. */
export function identityFolder(config: Pick<ControlPlaneConfig, 'dataFolder'>): string {
  return `${config.dataFolder}/identity`;
}

/** Starts everything. Rejects with a sentence that a person can act on. */
export async function startControlPlane(
  config: ControlPlaneConfig,
  platform: Platform,
  options: StartOptions = {},
): Promise<ControlPlane> {
  const identity = await openIdentity({
    ...platform,
    folder: identityFolder(config),
    serverNames: config.names,
  });
  const store = await platform.openStore();
  try {
    await checkBelonging(config, identity, store, options);
    if (identity.isNew) await identity.complete();
    return await startServices(config, platform, identity, store);
  } catch (error) {
    await store.close();
    throw error;
  }
}

function callsWebhooks({ clock, log, webClient: web }: Platform) {
  return web === undefined ? {} : { callWebhook: createWebhookCaller({ web, clock, log }) };
}

/** What works by itself, and what serves it; nothing of it has started. */
function makeParts(
  config: ControlPlaneConfig,
  platform: Platform,
  identity: Identity,
  store: StateStore,
) {
  const registry = createSessionRegistry();
  // A store that one process owns has one replica, whatever restarted it.
  const replicaId = store.driver === 'nats' ? randomId(platform.random) : 'single';
  const audit = createAuditTrail({ ...platform, store });
  const { resyncIntervalMs, sessions: timing } = config;
  const { retryDelayMs } = config.engine;
  const following = new Following({ ...platform, store, retryDelayMs });
  const hosts = new Hosts({
    ...platform,
    store,
    following,
    audit,
    registry,
    replicaId,
    timing: config.engine,
    resyncIntervalMs,
    ...callsWebhooks(platform),
    signStatement: (statement) => signBytes(statement, identity.erasure.privateKeyPem),
    openCredential: (record) => identity.secrets.open(record),
  });
  const discovery = new Discovery({
    ...platform,
    store,
    audit,
    resyncIntervalMs,
    createHost: (request, from) => createHost({ ...platform, store, hosts }, request, from),
    reportHost: (hostId, report) => hosts.report(hostId, report),
  });
  const pace = { resyncIntervalMs, retryDelayMs, sweep: config.workflows };
  const runs = createWorkflowParts({ ...platform, ...pace, store, following, hosts });
  const plans = new PlanSweeper({ ...platform, store });
  const stepLogs = new StepLogs();
  const { workflows, batches } = runs;
  const operatorServices = createOperatorServices({
    ...platform,
    ...{ store, hosts, identity, discovery, workflows, batches, audit, stepLogs, replicaId },
    agentEndpoint: config.agents.advertise,
  });
  const agentService = createAgentService({
    ...platform,
    ...{ store, registry, hosts, discovery, stepLogs, replicaId, timing },
    identify: (context) => identified(() => identifyAgent(store, context), context, audit),
  });
  return { audit, following, hosts, discovery, runs, plans, operatorServices, agentService };
}

async function startServices(
  config: ControlPlaneConfig,
  platform: Platform,
  identity: Identity,
  store: StateStore,
): Promise<ControlPlane> {
  const parts = makeParts(config, platform, identity, store);
  const { audit, following, hosts, discovery, runs, plans, operatorServices } = parts;
  const agentHealth = createHealthBoard([agent.AgentService.typeName]);
  const agentServices = [bind(agent.AgentService, parts.agentService), agentHealth.service];
  // Before anything is asked for: what a process before this one has left without an end.
  audit.start(store.driver !== 'nats');
  await hosts.start();
  discovery.start();
  await runs.start();
  plans.start();
  const stop = () => [plans, runs, discovery, hosts, following].forEach((part) => part.stop());
  const closing: (() => Promise<void> | void)[] = [() => store.close(), () => audit.close(), stop];
  try {
    const operators = await serveOperators(config, platform, identity, operatorServices, audit);
    closing.push(() => operators.close());
    const agents = await serveAgents(config, platform, identity, agentServices);
    closing.push(() => agents.close());
    const cancelRenewal = identity.keepServerFresh((next: KeyAndChain) => {
      operators.replaceCertificate(next);
      agents.replaceCertificate(next);
      platform.log.info({}, 'the server certificate was renewed');
    });
    closing.push(cancelRenewal);
    const resolvedDays = config.retention.historyDays;
    closing.push(startRetentionSweep({ ...platform, store, resolvedDays }));
    const boards = [operatorServices.health, agentHealth];
    for (const board of boards) board.setAll(true);
    closing.push(() => boards.forEach((board) => board.setAll(false)));
    return {
      operatorsPort: operators.port,
      agentsPort: agents.port,
      identity,
      store,
      discovery,
      close: () => closeAll(closing),
    };
  } catch (error) {
    stop();
    throw error;
  }
}

function serveOperators(
  config: ControlPlaneConfig,
  platform: Platform,
  identity: Identity,
  { services, openServices }: OperatorServices,
  audit: AuditTrail,
): Promise<RpcServer> {
  return serve({
    ...platform,
    ...config.operators,
    tls: identity.server,
    services,
    openServices,
    guard: auditedGuard(createTokenGuard(identity.adminTokenSha256), audit),
  });
}

function serveAgents(
  config: ControlPlaneConfig,
  platform: Platform,
  identity: Identity,
  services: readonly BoundService[],
): Promise<RpcServer> {
  return serve({
    ...platform,
    address: config.agents.address,
    port: config.agents.port,
    tls: { ...identity.server, clientCaPem: identity.caCertificatePem },
    services,
  });
}

/** Invariant 1. */
async function checkBelonging(
  config: ControlPlaneConfig,
  identity: Identity,
  store: StateStore,
  { acceptNewIdentity = false }: StartOptions,
): Promise<void> {
  if (!identity.isNew || acceptNewIdentity) return;
  // Not by revisions: a driver may have written marks of its own.
  if ((await store.list('')).entries.length === 0) return;
  throw new IdentityError(
    `${identityFolder(config)} was empty, but the ${store.driver} store has state that belongs ` +
      'to another identity. Restore that folder from its backup. If it is lost for good, start ' +
      'once with --accept-new-identity: every agent then needs a new join token, and every ' +
      'credential must be set again.',
  );
}

async function closeAll(closing: (() => Promise<void> | void)[]): Promise<void> {
  for (const close of closing.splice(0).reverse()) await close();
}
