/**
 * The whole agent, put together: session, operations, runners' door, boot path. It gets the
 * machine as platform interfaces; nothing here reads arguments or ends the process.
 *
 * 1. The runners' door is open before anything can boot.
 * 2. The boot path serves from memory before the control plane is reached.
 */
import type {
  Clock,
  CrashPoint,
  Disk,
  Exec,
  Http,
  HttpClient,
  Log,
  Random,
  Udp,
} from '@rackwright/platform';
import { createBmcDrivers } from './bmc-drivers.ts';
import { type BootServices, startBoot } from './boot/index.ts';
import type { AgentConfig } from './config.ts';
import { type AgentIdentity, IdentityFiles, IdentityRenewal, readKey } from './identity/index.ts';
import { Journal } from './journal/index.ts';
import { type NetbootSighting, NetbootWatch } from './netboot-watch.ts';
import { createExecutor } from './operations/index.ts';
import {
  type BootCertificate,
  defaultDeskLimits,
  defaultGatewayLimits,
  loadBootCertificate,
  RunnerDesk,
  RunnerGateway,
} from './runner-gateway/index.ts';
import { AgentSession, grpcTransport } from './session/index.ts';
import { agentVersion } from './version.ts';

/** The machine that the agent runs on. */
export interface Platform {
  readonly clock: Clock;
  readonly random: Random;
  readonly disk: Disk;
  readonly exec: Exec;
  readonly udp: Udp;
  readonly http: Http;
  readonly httpClient: HttpClient;
  readonly log: Log;
  readonly crashPoint: CrashPoint;
}

export interface RunningAgent {
  /** Where hosts reach it, for whoever let the system choose ports. */
  readonly ports: { readonly gateway: number; readonly http: number; readonly tftp: number };
  stop(): Promise<void>;
}

/** Starts everything; rejects with what is wrong and what would be right. */
export async function startAgent(config: AgentConfig, platform: Platform): Promise<RunningAgent> {
  const { clock, disk, log, random } = platform;
  const files = new IdentityFiles(disk, config.stateFolder);
  const identity = await files.load();
  if (identity === undefined) {
    throw new Error(`this agent has no identity in ${config.stateFolder}: join it first`);
  }
  const renewal = new IdentityRenewal({ clock, random, log, files }, identity);
  const session = await makeSession(config, platform, renewal);
  const desk = makeDesk(platform, session, identity);
  const { gateway, certificate } = await openGateway(config, platform, session, desk);
  const watch = watchNetboots(config, platform, session);
  const onNetboot = (sighting: NetbootSighting): void => {
    watch.observe(sighting);
    if (sighting.hostUid !== undefined) desk.sawNetboot(sighting.hostUid);
  };
  const boot = await startBootPath(config, platform, session, onNetboot, certificate, gateway.port);
  const drivers = createBmcDrivers(config.bmc, platform);
  await session.start(createExecutor({ drivers, orders: desk }));
  renewal.start();
  const ports = { gateway: gateway.port, http: boot.httpPort, tftp: boot.tftpPort };
  log.info({ rack: identity.rack, version: agentVersion, ...ports }, 'agent is up');
  return {
    ports,
    stop: async () => {
      renewal.stop();
      session.stop();
      watch.stop();
      await Promise.all([boot.close(), gateway.close()]);
    },
  };
}

async function makeSession(
  config: AgentConfig,
  { clock, crashPoint, disk, log, random }: Platform,
  renewal: IdentityRenewal,
): Promise<AgentSession> {
  const journalPath = `${config.stateFolder}/journal`;
  const journal = await Journal.open({ disk, path: journalPath, clock, random, log });
  const transport = grpcTransport(() => {
    const { agentEndpoint, caCertificatePem, certificatePem, privateKeyPem } = renewal.current();
    const own = { privateKeyPem, certificateChainPem: certificatePem };
    return { target: agentEndpoint, caPem: caCertificatePem, own };
  });
  const snapshotPath = `${config.stateFolder}/boot-snapshot`;
  const parts = { journal, disk, snapshotPath, clock, random, log, crashPoint, transport };
  return new AgentSession({ ...parts, agentVersion });
}

function makeDesk(
  { clock, log }: Platform,
  session: AgentSession,
  identity: AgentIdentity,
): RunnerDesk {
  return new RunnerDesk({
    clock,
    log,
    signer: readKey(identity.privateKeyPem),
    operationState: (id) => session.operationState(id),
    limits: defaultDeskLimits,
  });
}

async function openGateway(
  config: AgentConfig,
  { clock, disk, log, random }: Platform,
  session: AgentSession,
  desk: RunnerDesk,
) {
  const certificate = await loadBootCertificate(disk, random, `${config.stateFolder}/gateway.json`);
  const gateway = new RunnerGateway({
    clock,
    random,
    log,
    desk,
    grants: session.grants,
    facts: {
      runnerReady: (hostUid, runnerReady) => session.publishFacts(hostUid, { runnerReady }),
      runnerGone: (hostUid, runnerSession) => session.runnerGone(hostUid, runnerSession),
    },
    limits: defaultGatewayLimits,
  });
  const { address, port } = config.runner;
  return { certificate, gateway: await gateway.listen(address, port, certificate) };
}

function watchNetboots(
  { netboots: limits }: AgentConfig,
  { clock }: Platform,
  session: AgentSession,
): NetbootWatch {
  return new NetbootWatch({
    clock,
    memory: session.bootMemory,
    publish: (hostUid, unexpectedNetboot) => session.publishFacts(hostUid, { unexpectedNetboot }),
    limits,
  });
}

function startBootPath(
  config: AgentConfig,
  { clock, disk, http, log, udp }: Platform,
  session: AgentSession,
  onNetboot: (sighting: NetbootSighting) => void,
  certificate: BootCertificate,
  gatewayPort: number,
): Promise<BootServices> {
  const { serverAddress, tftp, loaders, loaderFiles, files, runner } = config;
  const leasesPath = `${config.stateFolder}/dhcp-leases`;
  const dhcp = config.dhcp.mode === 'reservation' ? { ...config.dhcp, leasesPath } : config.dhcp;
  const { kernel, initrd, kernelArguments } = runner;
  const agentEndpoint = `${serverAddress}:${gatewayPort}`;
  const { fingerprint } = certificate;
  return startBoot(
    {
      ...{ serverAddress, dhcp, tftp, http: config.http, loaders, loaderFiles, files },
      runner: { kernel, initrd, kernelArguments, agentEndpoint, fingerprint },
    },
    {
      ...{ udp, http, disk, clock, log, memory: session.bootMemory },
      onNetboot,
    },
  );
}
