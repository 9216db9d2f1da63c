/**
 * The agent without its network listeners: session, operations, runner dispatcher, netboot watch,
 * wired together as they run in production and in the simulation alike.
 *
 * Must not: open a socket. `program.ts` does that around it.
 */
import type { Mac } from '@rackwright/dhcp';
import type { agent, DeploymentId, HostUid, OperationId } from '@rackwright/messages';
import type { Log } from '@rackwright/platform';
import { AgentBmcReads } from './bmc-reads.ts';
import {
  type BootEvent,
  type BootMemory,
  bootProfileOfHost,
  type DeployPages,
  type DhcpFault,
  unknownProfile,
} from './boot/index.ts';
import { BootTracer, defaultBootTracerLimits } from './boot-trace/index.ts';
import type { AgentConfig } from './config.ts';
import {
  BootConsoles,
  defaultBootConsoleLimits,
  type OpenConsole,
  SharedConsoles,
} from './console/index.ts';
import { RackConsoles } from './console-views.ts';
import { loadDeployKey, makeDeployPages, NetbootImages, Proofs } from './deploy/index.ts';
import { AgentDiscovery } from './discovery/index.ts';
import { type BmcPlatform, type CreateBmcDriver, createBmcDrivers } from './governed-bmcs.ts';
import {
  type CredentialOf,
  DetachedFetches,
  type HostImages,
  type Images,
  Prefetcher,
} from './images/index.ts';
import { Journal } from './journal/index.ts';
import { NetbootWatch, type WatchedNetboot } from './netboot-watch.ts';
import { AgentNetworkFaults, defaultNetworkFaultLimits } from './network-faults.ts';
import {
  type BmcDrivers,
  type BootFirmware,
  type BootMediumUrl,
  bmcEndpoint,
  type ExecutorParts,
} from './operations/index.ts';
import { PowerSync } from './power-sync.ts';
import {
  defaultDispatcherLimits,
  defaultGatewayLimits,
  type EvidenceSigner,
  type HandOffSession,
  RunnerDispatcher,
  RunnerGateway,
} from './runner-gateway/index.ts';
import {
  AgentSession,
  type Executor,
  type SessionObserver,
  type SessionOptions,
  type SessionTransport,
} from './session/index.ts';
import type { HostWork } from './work.ts';

export interface CoreParts
  extends BmcPlatform,
    Pick<SessionOptions, 'clock' | 'random' | 'disk' | 'crashPoint' | 'trust' | 'recordSpan'> {
  readonly log: Log;
  readonly config: Pick<AgentConfig, 'stateFolder' | 'bmc' | 'netboots'> &
    Partial<Pick<AgentConfig, 'bootProfiles'>>;
  readonly transport: SessionTransport;
  /** Called once, by `start`. */
  readonly loadWork: () => Promise<HostWork>;
  readonly signer: EvidenceSigner;
  readonly agentVersion: string;
  /** Absent: commands in images are not run here. */
  readonly images?: Pick<Images, 'fetch'>;
  /** Absent: no image is put onto a host here. */
  readonly hostImages?: Pick<
    HostImages,
    'begin' | 'pin' | 'prefetch' | 'prefer' | 'isHere' | 'hasRoom'
  >;
  /**
   * The processor of the hosts that boot here, unless their runner reports its own; unset: amd64.
   */
  readonly architecture?: AgentConfig['runner']['architecture'];
  /**
   * The agent's address for fetches of images, "host:port", by the local address that the runner
   * has dialled; absent or empty: none.
   */
  readonly imageEndpoint?: (localAddress: string) => string;
  /** Our addresses on the networks that hosts boot from; absent: no host is woken. */
  readonly wakeFrom?: readonly string[];
  /** Absent: no host boots from virtual media. */
  readonly bootMediumUrl?: BootMediumUrl;
  /** Called when a runner has bound the boot of an operation; must be quick. */
  readonly onBootArrived?: (operationId: OperationId) => void;
}

export interface AgentCore {
  readonly session: AgentSession;
  /** Not listening yet. */
  readonly gateway: RunnerGateway;
  /** The boot path's memory about hosts and about machines that are none. */
  bootMemory(): BootMemory;
  /** A boot for the inventory of a machine that is no host. */
  openDiscovery(mac: Mac): void;
  /** The proofs of hosts that they run the image that was deployed to them. */
  readonly proofs: Proofs;
  /** The boot path's pages for hosts of deployments. */
  readonly deploys: DeployPages;
  /** Receives every request to the boot services. */
  onNetboot(netboot: WatchedNetboot): void;
  /** Receives every step of a boot into the runner. */
  onBootEvent(event: BootEvent): void;
  /** Receives each fault that keeps hosts from their addresses, and the end of another server. */
  onDhcpFault(fault: DhcpFault): void;
  onDhcpServerGone(serverAddress: string): void;
  /** Receives every host whose system asks for an address. */
  onAddressAsked(hostUid: HostUid): void;
  /**
   * Loads what works on hosts, resumes the state of the last life and dials the control plane,
   * without end. Rejects when it cannot be loaded.
   */
  start(): Promise<void>;
  stop(): void;
}

/** The dispatcher's questions to the session before a host is handed to its own system. */
function handOffsOf(session: AgentSession): HandOffSession {
  return {
    stateOf: (operationId) => session.handOffState(operationId),
    ofBoot: (bootOperationId) => session.grants.byOperation(bootOperationId)?.handedOff,
    ofHost: (hostUid) => {
      const own = session.grants.all().filter((grant) => grant.hostUid === hostUid);
      return own.find(({ handedOff }) => handedOff !== undefined)?.handedOff;
    },
    isLeaseValid: () => session.isLeaseValid(),
    leaseLeftMs: () => session.leaseLeftMs(),
    noteLeaving: (hostUid, runnerSession) => session.noteRunnerGone(hostUid, runnerSession),
  };
}

/** Opens the journal and wires everything; nothing runs before `start`. */
export async function openCore(parts: CoreParts): Promise<AgentCore> {
  const { clock, config, disk, log, random, signer } = parts;
  const path = `${config.stateFolder}/journal`;
  const journal = await Journal.open({ disk, path, clock, random, log });
  const snapshotPath = `${config.stateFolder}/boot-snapshot`;
  const discovery = makeDiscovery(parts, () => ({ session, dispatcher }));
  const images = deploymentImages(parts, () => session);
  const consoles = new BootConsoles({ clock, log, limits: defaultBootConsoleLimits });
  const shared = new SharedConsoles((hostUid) => {
    const own = session.grants.all().filter((grant) => grant.hostUid === hostUid);
    return own.at(-1)?.bootToken;
  });
  const { tracer, faults, observer } = bootObservers(clock, () => session, consoles, shared);
  const { drivers, loadWork } = lateDrivers(parts);
  const views = new RackConsoles({ clock, log, drivers, consoles: shared, session: () => session });
  const session: AgentSession = new AgentSession({
    ...{ ...parts, journal, snapshotPath, discovery, observer },
    reads: new AgentBmcReads({ clock, log, drivers, session: () => session }),
    consoles: views,
    ...images?.receivers,
  });
  const dispatcher = new RunnerDispatcher({
    ...{ clock, log, signer, operationState: (id) => session.operationState(id) },
    handOffs: handOffsOf(session),
    reportLog: (log) => session.reportStepLog(log),
    limits: defaultDispatcherLimits,
  });
  const watch = new NetbootWatch({
    clock,
    memory: session.bootState,
    publish: (hostUid, unexpectedNetboot) => session.reportFacts(hostUid, { unexpectedNetboot }),
    limits: config.netboots,
  });
  const key = await loadDeployKey(disk, random, `${config.stateFolder}/deploy-key`);
  const proofs = new Proofs({ clock, log, journal, key });
  const power = new PowerSync({ clock, random, log, drivers, session, orders: dispatcher });
  return {
    session,
    gateway: makeGateway(parts, session, dispatcher, discovery, { tracer, consoles }),
    bootMemory: () => withDiscovery(session.bootState(), discovery),
    openDiscovery: (mac) => discovery.open(mac, journal.state.latestTimeMs),
    ...bootReceivers({ watch, power, dispatcher, proofs, tracer, faults }),
    proofs,
    deploys: makeDeployPages({
      proofs,
      images: images?.netboots ?? noNetboots,
      netbootOf: (hostUid) => session.netbootOf(hostUid),
    }),
    start: async () => {
      const work = await loadWork();
      const hearing = followConsoles(consoles, shared, drivers, session);
      const executor = makeExecutor(work, parts, drivers, dispatcher, proofs, session, hearing);
      await session.start(executor, power);
    },
    stop: () => {
      const all = [session, watch, tracer, consoles, views, faults, discovery, images];
      for (const part of all) part?.stop();
    },
  };
}

/** The drivers of a rack's BMCs, which only work on hosts asks for. */
function lateDrivers(parts: CoreParts) {
  let loaded: HostWork | undefined;
  // Hosts and their BMCs are named by the session, which begins when this is over.
  const loadWork = async (): Promise<HostWork> => {
    loaded = await parts.loadWork();
    return loaded;
  };
  const createDriver: CreateBmcDriver = (...args) => {
    if (loaded === undefined) throw new Error('a BMC is called before the agent has started');
    return loaded.createBmcDriver(...args);
  };
  const drivers = createBmcDrivers(parts.config.bmc, parts, createDriver, parts.wakeFrom);
  return { drivers, loadWork };
}

/** The parts that follow boots and their network, for people. */
function bootObservers(
  clock: CoreParts['clock'],
  session: () => AgentSession,
  consoles: BootConsoles,
  shared: SharedConsoles,
) {
  const faults = new AgentNetworkFaults({
    clock,
    report: (list) => session().reportNetworkFaults(list),
    limits: defaultNetworkFaultLimits,
  });
  const tracer = new BootTracer({
    clock,
    grantOf: (operationId) => session().grants.byOperation(operationId),
    tell: (hostUid, bootTrace) => session().reportFacts(hostUid, { bootTrace }),
    screenOf: (operationId) => consoles.lastScreen(operationId),
    onUnseen: (grant) => faults.unseen(grant),
    limits: defaultBootTracerLimits,
  });
  const observer: SessionObserver = {
    bootOpened: (grant) => tracer.beginTrace(grant),
    hostForgotten: (hostUid) => {
      tracer.forgetHost(hostUid);
      consoles.forgetHost(hostUid);
      shared.forgetHost(hostUid);
      faults.forgetHost(hostUid);
    },
    sessionOpened: () => faults.sessionOpened(),
  };
  return { tracer, faults, observer };
}

/**
 * Hears the console of each host that is switched on to boot. The operation that switched it has
 * just verified the identity of its BMC.
 */
function followConsoles(
  consoles: BootConsoles,
  shared: SharedConsoles,
  drivers: BmcDrivers,
  session: AgentSession,
): ExecutorParts['onSwitchedOn'] {
  return (operation, { bmc, expectedIdentity }) => {
    const grant = session.grants.byOperation(operation.id);
    if (grant === undefined || bmc === undefined) return;
    const open: OpenConsole = (hear, signal) => {
      const credential = session.credential(bmc.credential, bmc.credentialVersion);
      if (credential === undefined) return undefined;
      const endpoint = bmcEndpoint(bmc, credential, expectedIdentity);
      if (endpoint === undefined) return undefined;
      const breakOff = new AbortController();
      const driver = drivers.driver(endpoint, { preempt: () => breakOff.abort() });
      return driver.openConsole?.(hear, AbortSignal.any([signal, breakOff.signal]));
    };
    const { hostUid } = grant;
    shared.bootBegins(hostUid);
    consoles.follow(grant, (hear, signal) => shared.hear(hostUid, open, hear, signal));
  };
}

interface BootReceiverParts {
  readonly watch: NetbootWatch;
  readonly power: PowerSync;
  readonly dispatcher: RunnerDispatcher;
  readonly proofs: Proofs;
  readonly tracer: BootTracer;
  readonly faults: AgentNetworkFaults;
}

/** The receivers of what the boot path sees. */
function bootReceivers({ watch, power, dispatcher, proofs, tracer, faults }: BootReceiverParts) {
  return {
    onNetboot: (netboot: WatchedNetboot): void => {
      watch.observe(netboot);
      faults.noteBootRequest(netboot);
      const { hostUid, stage, permitted } = netboot;
      if (hostUid === undefined) return;
      if (!permitted) power.readNow(hostUid);
      dispatcher.noteNetboot(hostUid);
      proofs.noteNetboot(hostUid, stage);
    },
    onBootEvent: (event: BootEvent): void => tracer.addEvent(event),
    onDhcpFault: (fault: DhcpFault): void => faults.dhcp(fault),
    onDhcpServerGone: (address: string): void => faults.serverGone(address),
    onAddressAsked: (hostUid: HostUid): void => proofs.noteAddressAsked(hostUid),
  };
}

function makeDiscovery(
  { clock, random, log }: CoreParts,
  wired: () => { readonly session: AgentSession; readonly dispatcher: RunnerDispatcher },
): AgentDiscovery {
  return new AgentDiscovery({
    ...{ clock, random, log },
    report: (finding) => wired().session.reportDiscovered(finding),
    onHostFound: (hostUid, foundMs) => wired().dispatcher.noteBootedElsewhere(hostUid, foundMs),
  });
}

const noNetboots: Pick<NetbootImages, 'find'> = {
  find: () => ({ kind: 'waiting', text: 'no images are kept here' }),
};

/** Images that are fetched without an operation: those of netboots, and those to prefetch. */
function deploymentImages(
  { clock, log, hostImages, architecture = 'amd64' }: CoreParts,
  session: () => AgentSession,
) {
  if (hostImages === undefined) return undefined;
  const credential: CredentialOf = async (...args) => session().credential(...args);
  const shared = { clock, log, images: hostImages, credential };
  const netboots = new NetbootImages({ ...shared, architecture });
  const report = (image: agent.ImagePrefetched): void => session().reportPrefetched(image);
  const prefetch = new Prefetcher({ ...shared, report });
  const onNetboots: SessionOptions['onNetboots'] = (all) => netboots.want([...all.values()]);
  const stop = (): void => {
    netboots.stop();
    prefetch.stop();
  };
  return { netboots, receivers: { prefetch, onNetboots }, stop };
}

function makeExecutor(
  { createExecutor }: HostWork,
  { clock, log, config, images, hostImages, architecture = 'amd64', bootMediumUrl }: CoreParts,
  drivers: BmcDrivers,
  orders: RunnerDispatcher,
  proofs: Proofs,
  { bootState }: Pick<AgentSession, 'bootState'>,
  onSwitchedOn: ExecutorParts['onSwitchedOn'],
): Executor {
  const { bootProfiles = [] } = config;
  const bootFirmware: BootFirmware = (hostUid) => {
    const name = bootProfileOfHost(bootState(), hostUid);
    if (name === undefined) return { firmware: config.bmc.firmware };
    const found = bootProfiles.find((one) => one.name === name);
    return found ?? { problem: unknownProfile(name, bootProfiles) };
  };
  const phoneHomePath = (deploymentId: DeploymentId) => proofs.phoneHomePath(deploymentId);
  const carriedOn = new DetachedFetches();
  return createExecutor({
    ...{ drivers, orders, clock, log, bootFirmware },
    ...(bootMediumUrl === undefined ? {} : { bootMediumUrl }),
    ...(onSwitchedOn === undefined ? {} : { onSwitchedOn }),
    ...(images === undefined ? {} : { images: { images, clock } }),
    ...(hostImages === undefined
      ? {}
      : { hostImages: { images: hostImages, clock, architecture, phoneHomePath, carriedOn } }),
    awaitImage: { proofs, clock },
    forgetDeployments: (hostUid) => proofs.forgetHost(hostUid),
  });
}

function withDiscovery(memory: BootMemory, discovery: AgentDiscovery): BootMemory {
  const known = discovery.memory();
  return known === undefined ? memory : { ...memory, discovery: known };
}

function makeGateway(
  { clock, log, random, imageEndpoint, onBootArrived }: CoreParts,
  session: AgentSession,
  dispatcher: RunnerDispatcher,
  discovery: AgentDiscovery,
  { tracer, consoles }: { readonly tracer: BootTracer; readonly consoles: BootConsoles },
): RunnerGateway {
  const { grants } = session;
  return new RunnerGateway({
    ...{ clock, random, log, dispatcher },
    strangers: discovery,
    grants: {
      byToken: (token) => grants.byToken(token) ?? discovery.byToken(token),
      bind: async (operationId, publicKey) => {
        const outcome =
          grants.byOperation(operationId) === undefined
            ? discovery.bind(operationId, publicKey)
            : await grants.bind(operationId, publicKey);
        if (outcome === 'bound') onBootArrived?.(operationId);
        return outcome;
      },
      close: (operationId) => grants.close(operationId),
    },
    facts: {
      runnerReady: (hostUid, runnerReady) => {
        const bootOperationId = runnerReady.bootOperationId ?? '';
        const bootTrace = tracer.finish(bootOperationId);
        consoles.over(bootOperationId);
        const traced = bootTrace === undefined ? {} : { bootTrace };
        session.reportFacts(hostUid, { runnerReady, ...traced });
      },
      runnerGone: (hostUid, runnerSession) => session.noteRunnerGone(hostUid, runnerSession),
      runnerRefused: (hostUid, operationId, message) => {
        tracer.addRefusal(operationId, message);
        session.reportRunnerRefused(hostUid, operationId, message);
      },
    },
    ...(imageEndpoint === undefined ? {} : { imageEndpoint }),
    limits: defaultGatewayLimits,
  });
}
