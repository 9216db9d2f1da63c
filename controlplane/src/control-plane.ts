/**
 * The whole control plane, assembled: identity, store, host loop, agent sessions, two TLS ports.
 *
 * Invariants:
 * 1. A newly made identity never meets a store that already has state: the agents, credentials and
 *    certificates in it belong to another identity.
 * 2. Ports open last: a half-started control plane answers no call.
 * 3. Closing goes in the reverse order, and ends with the store.
 */
import { signBytes } from '@rackwright/erasure';
import { actors, agent, asReplicaId, type BoundService, bind } from '@rackwright/messages';
import { type Disk, randomId } from '@rackwright/platform';
import {
  createHealthBoard,
  type HealthBoard,
  overHttp,
  type RpcServer,
  serve,
} from '@rackwright/rpc';
import type { StateStore } from '@rackwright/store';
import { type Access, openAccess } from './access/index.ts';
import {
  BmcReads,
  ConsoleViews,
  createAgentService,
  PrefetchProgress,
  ReadPaces,
  StepLogs,
} from './agents/index.ts';
import { type AuditTrail, auditedGuard, createAuditTrail, identifyAudited } from './audit/index.ts';
import { openCopyService } from './backup/index.ts';
import type { ControlPlaneConfig } from './config.ts';
import { Discovery, type DiscoveryDependencies } from './discovery/index.ts';
import { EventSinks } from './events/index.ts';
import { FleetView } from './fleet-view/index.ts';
import { StoreFollower } from './following/index.ts';
import { createSessionRegistry, Hosts, readFleet } from './host/index.ts';
import {
  createSessionTrust,
  defaultTrustTiming,
  type Identity,
  IdentityError,
  identifyAgent,
  type OwnIdentity,
  openAuthorities,
  openIdentity,
  RackKeys,
  type TrustTiming,
  withAuthorities,
} from './identity/index.ts';
import { askNobody, askRegistries, type ResolveImage, resolveWith } from './images/index.ts';
import {
  CountedRacks,
  createFigures,
  type Figures,
  measuredStore,
  openTraces,
  serveFigures,
} from './metrics/index.ts';
import { PlanSweeper } from './plan/index.ts';
import type { Platform } from './platform.ts';
import { Pools } from './pool/index.ts';
import { startRetentionSweep } from './retention/index.ts';
import { openKeySource, openNamed, SecretsKeeper, secretsForCalls } from './secrets/index.ts';
import { createHost, createOperatorServices, type OperatorServices } from './services/index.ts';
import { controlPlaneVersion } from './version.ts';
import { createPages } from './web/index.ts';
import { createWebhookCaller, createWorkflowParts } from './workflow/index.ts';

export type { Platform } from './platform.ts';

export interface StartOptions {
  /** For tests: lifetimes of certificates and authorities that no configuration may set. */
  readonly trustTiming?: Partial<TrustTiming>;
  /** Lifts invariant 1 once: a person has decided that the old identity is lost. */
  readonly acceptNewIdentity?: boolean;
  /** Makes a new first token, for an operator without any token. */
  readonly newAdminToken?: boolean;
}

export interface ControlPlane {
  readonly operatorsPort: number;
  readonly agentsPort: number;
  /** Undefined while metrics cannot be scraped. */
  readonly metricsPort: number | undefined;
  readonly identity: Identity;
  readonly store: StateStore;
  readonly discovery: Discovery;
  /** Undefined when operators and agents are served, whether or not any are connected. */
  problem(timeoutMs: number): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Folder of the identity's files below the data folder. */
export function identityFolder(config: Pick<ControlPlaneConfig, 'dataFolder'>): string {
  return `${config.dataFolder}/identity`;
}

/** Starts everything. Rejects with an error message that a person can act on. */
export async function startControlPlane(
  config: ControlPlaneConfig,
  platform: Platform,
  options: StartOptions = {},
): Promise<ControlPlane> {
  const timing = { ...trustTimingOf(config), ...options.trustTiming };
  const own = await openIdentity({
    ...platform,
    folder: identityFolder(config),
    newAdminToken: options.newAdminToken ?? false,
    caLifetimeMs: timing.caLifetimeMs,
    ...keySourceOf(config, platform),
  });
  const figures = createFigures(openTraces(config.traces, platform));
  const { clock, elapsedMs = () => clock.suspendAwareMs() } = platform;
  const store = measuredStore(await platform.openStore(), elapsedMs, figures.onStoreCall);
  try {
    await checkBelonging(config, own, store, options);
    if (own.isNew) await own.complete();
    const authorities = await openAuthorities({
      ...{ ...platform, ...own, store, timing },
      sealer: own.secrets,
      serverNames: config.names,
    });
    const identity = withAuthorities(own, authorities);
    return await startServices(config, platform, identity, store, figures);
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** The endpoints of agents; they enrol at the operators' port. */
function endpointsOf({ agents, operators }: ControlPlaneConfig) {
  const agentEndpoint = agents.advertise;
  if (operators.port === 0) return { agentEndpoint };
  const enrolmentEndpoint = agentEndpoint.replace(/:\d+$/, `:${operators.port}`);
  return { agentEndpoint, enrolmentEndpoint };
}

function trustTimingOf({ identity }: ControlPlaneConfig): TrustTiming {
  const agentCertificateMs = identity.agentCertificateHours * 3_600_000;
  return { ...defaultTrustTiming, agentCertificateMs };
}

function keySourceOf({ secrets }: ControlPlaneConfig, platform: Platform) {
  return secrets === undefined ? {} : { secretsKeySource: openKeySource(secrets.key, platform) };
}

function callsWebhooks(
  { clock, log, webClient: web }: Platform,
  { secrets }: Identity,
  store: StateStore,
  audit: AuditTrail,
) {
  if (web === undefined) return {};
  const opener = { store, openCredential: secrets.open.bind(secrets) };
  const openCredential = secretsForCalls(opener, audit);
  const internalAddresses = async () =>
    (await readFleet(store))?.fleet?.spec?.internalAddresses ?? [];
  const parts = { web, clock, log, openCredential, internalAddresses };
  return { callWebhook: createWebhookCaller(parts) };
}

/** Event sinks. The signing secret is used here, and never returned. */
function makeEventSinks(
  platform: Platform,
  { secrets }: Identity,
  shared: Pick<
    ConstructorParameters<typeof EventSinks>[0],
    'store' | 'following' | 'replicaId' | 'retryDelayMs' | 'meter'
  >,
): EventSinks {
  const { webClient: web, clock } = platform;
  const { store } = shared;
  const opener = { store, openCredential: secrets.open.bind(secrets) };
  const webhooks = web && {
    ...{ web, clock, incarnation: store.incarnation },
    fleet: async () => (await readFleet(store))?.fleet,
    secretOf: async (name: string) => (await openNamed(opener, name, { rack: '' }))?.password,
  };
  return new EventSinks({ ...platform, ...shared, webhooks });
}

/** Tags are resolved if the platform has an outgoing client. */
function resolveTags(
  { clock, webClient: web }: Platform,
  { secrets }: Identity,
  store: StateStore,
  audit: AuditTrail,
): ResolveImage {
  if (web === undefined) return resolveWith(askNobody);
  const openCredential = secrets.open.bind(secrets);
  const fleet = () => readFleet(store);
  return resolveWith(askRegistries({ store, clock, web, audit, openCredential, fleet }));
}

function openAccessFor(
  { oidc, operators }: ControlPlaneConfig,
  platform: Platform,
  { adminTokenSha256, secrets }: Identity,
  store: StateStore,
  following: StoreFollower,
  audit: AuditTrail,
): Access {
  const web = platform.oidcWebClient;
  return openAccess({
    ...platform,
    store,
    following,
    audit,
    firstTokenSha256: adminTokenSha256,
    ...{ secrets, oidc, web },
    clientSecret: () => readClientSecret(oidc?.browser?.clientSecretFile, platform.disk),
    signInMs: operators.sessionHours * 3_600_000,
  });
}

/** Read each time: a replaced file needs no restart. */
async function readClientSecret(path: string | undefined, disk: Disk): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const bytes = await disk.read(path);
  if (bytes === undefined) throw new Error(`oidc.browser.clientSecretFile: ${path} is not there`);
  return Buffer.from(bytes).toString('utf8').trim();
}

/** Unknown machines that the system itself accepts as hosts. */
function makeDiscovery(
  { resyncIntervalMs }: ControlPlaneConfig,
  platform: Platform,
  shared: Pick<DiscoveryDependencies, 'store' | 'fleetView'> & { audit: AuditTrail; hosts: Hosts },
): Discovery {
  const { hosts } = shared;
  return new Discovery({
    ...{ ...platform, ...shared, resyncIntervalMs },
    createHost: (request, from) =>
      createHost({ ...platform, ...shared, actor: actors.system }, request, from),
    reportHost: (hostId, report) => hosts.report(hostId, report),
  });
}

/** A store that one process owns always has the same single replica, also after a restart. */
function replicaIdOf({ isShared }: StateStore, { random }: Platform) {
  return asReplicaId(isShared ? randomId(random) : 'single');
}

/** The background work and the services; nothing is started yet. */
function makeParts(
  config: ControlPlaneConfig,
  platform: Platform,
  identity: Identity,
  store: StateStore,
  { onRunEnded, onAcknowledged, onEvent, onCall, recordSpan }: Figures,
) {
  const registry = createSessionRegistry();
  const replicaId = replicaIdOf(store, platform);
  const audit = createAuditTrail({ ...platform, store });
  const { resyncIntervalMs, sessions: timing } = config;
  const { retryDelayMs } = config.engine;
  const following = new StoreFollower({ ...platform, store, retryDelayMs });
  const secretsKeeper = new SecretsKeeper({
    ...{ ...platform, store, following, replicaId, isShared: store.isShared, resyncIntervalMs },
    ...{ secrets: identity.secrets, source: identity.secretsKeySource },
  });
  const webhooks = callsWebhooks(platform, identity, store, audit);
  const fleetView = new FleetView({ ...platform, store, retryDelayMs });
  const openCredential = identity.secrets.open.bind(identity.secrets);
  const hosts = new Hosts({
    ...{ ...platform, openCredential, resyncIntervalMs },
    ...{ store, following, fleetView, audit, registry, replicaId },
    timing: config.engine,
    software: platform.software ?? { version: controlPlaneVersion },
    ...webhooks,
    onRunEnded,
    signStatement: (statement) => signBytes(statement, identity.erasure.privateKeyPem),
  });
  const discovery = makeDiscovery(config, platform, { store, fleetView, audit, hosts });
  const many = { ...platform, store, following, fleetView, hosts, resyncIntervalMs, retryDelayMs };
  const runs = createWorkflowParts({ ...many, sweep: config.workflows });
  const resolve = resolveTags(platform, identity, store, audit);
  const pools = new Pools({ ...many, ...webhooks, replicaId, resolve });
  const eventSinks = makeEventSinks(platform, identity, { ...many, replicaId, meter: onEvent });
  const access = openAccessFor(config, platform, identity, store, following, audit);
  const rackKeys = new RackKeys({ ...platform, store, following });
  const throughAgents = { ...platform, store, registry, audit, openCredential };
  const shared = {
    ...platform,
    ...{ store, hosts, identity, rackKeys, discovery, ...runs, pools, audit, replicaId },
    ...{ fleetView, secretsKeeper, resolve, onCall },
    ...{ stepLogs: new StepLogs(), prefetched: new PrefetchProgress() },
    ...{ bmcReads: new BmcReads(throughAgents), consoles: new ConsoleViews(throughAgents) },
    ...(recordSpan === undefined ? {} : { recordSpan }),
    ...endpointsOf(config),
    ...{ trustFaults: () => identity.authorities.faults(), otherAdmins: access.otherAdmins },
  };
  const operatorServices = createOperatorServices(shared, access.signIn);
  const agentService = createAgentService({
    ...{ ...shared, registry, timing, onAcknowledged },
    limits: config.agents.limits,
    trust: createSessionTrust({ ...identity, rackKeys, clock: platform.clock }),
    identify: (context) => identifyAudited(() => identifyAgent(store, context), context, audit),
  });
  const countedRacks = new CountedRacks({ store, following });
  const runners = { hosts, discovery, runs, pools, plans: new PlanSweeper({ ...platform, store }) };
  const works = { access, secretsKeeper, rackKeys, countedRacks, eventSinks, ...runners };
  return { registry, audit, following, fleetView, ...works, operatorServices, agentService };
}

/** Each part starts before the parts that need it. */
async function startWorks(
  parts: ReturnType<typeof makeParts>,
  authorities: Identity['authorities'],
  store: StateStore,
): Promise<void> {
  const { audit, following, hosts, discovery, runs, pools, plans } = parts;
  const { access, secretsKeeper, rackKeys, countedRacks, eventSinks } = parts;
  // First of all: finds calls that an earlier process has left without a final record.
  audit.start(!store.isShared);
  await secretsKeeper.start();
  await rackKeys.start();
  rackKeys.onChange(() => authorities.checkSoon());
  await authorities.start(following, () => rackKeys.trusts());
  await hosts.start();
  discovery.start();
  await runs.start();
  await pools.start();
  plans.start();
  await access.start();
  await countedRacks.start();
  await eventSinks.start();
}

/** All background work, in the order in which it stops. */
function worksOf(parts: ReturnType<typeof makeParts>, authorities: Identity['authorities']) {
  const { countedRacks, eventSinks, access, plans, pools, runs, discovery, hosts } = parts;
  const { fleetView, following, rackKeys, secretsKeeper } = parts;
  const loops = [eventSinks, countedRacks, access, plans, pools, runs, discovery, hosts];
  return [...loops, fleetView, following, authorities, rackKeys, secretsKeeper];
}

async function startServices(
  config: ControlPlaneConfig,
  platform: Platform,
  identity: Identity,
  store: StateStore,
  figures: Figures,
): Promise<ControlPlane> {
  const parts = makeParts(config, platform, identity, store, figures);
  const { audit, discovery, fleetView, secretsKeeper, operatorServices } = parts;
  const agentHealth = createHealthBoard([agent.AgentService.typeName]);
  const agentServices = [bind(agent.AgentService, parts.agentService), agentHealth.service];
  const { authorities } = identity;
  await startWorks(parts, authorities, store);
  const works = worksOf(parts, authorities);
  const stop = () => works.forEach((part) => part.stop());
  const closing: (() => Promise<void> | void)[] = [() => store.close(), () => audit.close()];
  closing.push(
    () => secretsKeeper.leave(),
    () => parts.eventSinks.ended(),
    stop,
  );
  try {
    const operators = await serveOperators(config, platform, identity, parts);
    closing.push(() => operators.close());
    const agents = await serveAgents(config, platform, identity, agentServices);
    closing.push(() => agents.close());
    const servers = { operators, agents };
    const metrics = await serveFigures(config.metrics, platform, figures.registry, {
      ...{ ...parts, servers },
      ...{ queues: parts.agentService.queues, trust: () => authorities.now },
    });
    closing.push(() => metrics?.close(), figures.stop);
    authorities.onChange((now) => {
      operators.replaceCertificate(now.server.tls);
      agents.replaceCertificate(authorities.tls);
    });
    const resolvedDays = config.retention.historyDays;
    closing.push(startRetentionSweep({ ...platform, store, fleetView, resolvedDays }));
    const copyService = await openCopyServiceAt(config, platform, store, identity.secrets);
    closing.push(() => copyService?.close());
    closing.push(showHealth([operatorServices.health, agentHealth], secretsKeeper));
    return {
      operatorsPort: operators.port,
      agentsPort: agents.port,
      get metricsPort() {
        return metrics?.port;
      },
      identity,
      store,
      discovery,
      problem: async (timeoutMs) =>
        (await operators.problem(timeoutMs)) ?? (await agents.problem(timeoutMs)),
      close: () => closeAll(closing),
    };
  } catch (error) {
    // The function that opened the store closes it. The first error is the one that is thrown.
    await closeAll(closing.slice(1)).catch(() => undefined);
    throw error;
  }
}

/**
 * Healthy means: the ports are open and secrets can be opened. The returned function is called on
 * close.
 */
function showHealth(
  boards: readonly Pick<HealthBoard, 'setAll'>[],
  secrets: Pick<SecretsKeeper, 'isFit' | 'onFitness'>,
): () => void {
  let isOpen = true;
  const show = () => boards.forEach((board) => board.setAll(isOpen && secrets.isFit));
  show();
  secrets.onFitness(show);
  return () => {
    isOpen = false;
    show();
  };
}

/** Opens the socket for backups, if the platform has large files and local calls. */
function openCopyServiceAt(
  { dataFolder: folder, secrets: apart }: ControlPlaneConfig,
  platform: Platform,
  store: StateStore,
  secrets: Identity['secrets'],
) {
  const { largeFiles: files, localCalls } = platform;
  if (files === undefined || localCalls === undefined) return undefined;
  const sealing = apart === undefined ? {} : { secrets };
  return openCopyService({ ...platform, ...sealing, store, files, folder }, localCalls);
}

interface OperatorParts {
  readonly operatorServices: OperatorServices;
  readonly access: Access;
  readonly audit: AuditTrail;
}

function serveOperators(
  config: ControlPlaneConfig,
  platform: Platform,
  identity: Identity,
  { operatorServices, access, audit }: OperatorParts,
): Promise<RpcServer> {
  return serve({
    ...platform,
    ...config.operators,
    tls: identity.authorities.now.server.tls,
    ...operatorServices,
    guard: auditedGuard(access.signIn.guard, audit),
    http: overHttp(
      createPages({
        ...{ browsers: access.browsers, audit, nowMs: () => platform.clock.nowMs() },
        ...{ isReady: () => operatorServices.health.isServing(''), version: controlPlaneVersion },
        consoleFiles: platform.consoleFiles ?? new Map(),
      }),
    ),
  });
}

function serveAgents(
  config: ControlPlaneConfig,
  platform: Platform,
  identity: Identity,
  services: readonly BoundService[],
): Promise<RpcServer> {
  const quotas = new ReadPaces(config.agents.limits, platform.clock);
  return serve({
    ...platform,
    ...config.agents,
    pace: (context) => quotas.paceOf(context),
    tls: identity.authorities.tls,
    services,
  });
}

/** Invariant 1. */
async function checkBelonging(
  config: ControlPlaneConfig,
  identity: OwnIdentity,
  store: StateStore,
  { acceptNewIdentity = false }: StartOptions,
): Promise<void> {
  if (!identity.isNew || acceptNewIdentity) return;
  // Not by revisions: a driver may have written records of its own.
  if ((await store.list('', { limit: 1 })).entries.length === 0) return;
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
