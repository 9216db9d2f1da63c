/**
 * The whole agent, put together: session, operations, runners' listener, boot path. It gets the
 * machine as platform interfaces; nothing here reads arguments or ends the process.
 *
 * 1. The runners' listener is open before a host gets a script that starts a runner.
 * 2. The boot path serves from memory before the control plane is reached. It gives addresses
 *    before gRPC is loaded, because that takes as long as the rest of a start, and before the code
 *    of operations, which is loaded before the agent counts as started.
 */
import { countSpans, type MetricsPage, serveMetrics } from '@rackwright/metrics';
import type {
  Clock,
  CrashPoint,
  Disk,
  Exec,
  Hashes,
  Http,
  HttpClient,
  LargeFiles,
  Log,
  Names,
  ProcessFigures,
  Random,
  Udp,
  WebClient,
} from '@rackwright/platform';
import { type Span, SpanExporter } from '@rackwright/trace';
import {
  addressAsked,
  answerWaiting,
  type BootMeter,
  type BootServices,
  startBoot,
} from './boot/index.ts';
import type { AgentConfig } from './config.ts';
import { type AgentCore, type CoreParts, openCore } from './core.ts';
import { type AgentIdentity, IdentityFiles, IdentityRenewal, readKey } from './identity/index.ts';
import {
  BlobCache,
  defaultAdmissionLimits,
  defaultRetryDelaysMs,
  HostImages,
  Images,
} from './images/index.ts';
import { type AgentInterface, bootInterfaces } from './interfaces.ts';
import { type AgentFigures, createAgentFigures, observeAgent } from './metrics/index.ts';
import { type BootCertificate, loadBootCertificate } from './runner-gateway/index.ts';
import { grpcTransport } from './session/index.ts';
import { agentVersion } from './version.ts';

/** The machine that the agent runs on. */
export interface AgentPlatform {
  readonly clock: Clock;
  readonly random: Random;
  readonly disk: Disk;
  readonly exec: Exec;
  readonly names?: Names;
  readonly udp: Udp;
  readonly http: Http;
  readonly httpClient: HttpClient;
  readonly webClient: WebClient;
  readonly largeFiles: LargeFiles;
  readonly hashes: Hashes;
  readonly log: Log;
  readonly crashPoint: CrashPoint;
  /** The client for the collector of spans; absent: no span is recorded. */
  readonly tracesWebClient?: WebClient;
  /** Absent: there are no figures of the process. */
  readonly processFigures?: () => ProcessFigures;
  /** Its IPv4 addresses by their interface, now. */
  readonly ownAddresses: () => ReadonlyMap<string, readonly string[]>;
}

export interface RunningAgent {
  /** The ports at which hosts reach it, for a caller that let the system choose them. */
  readonly ports: { readonly gateway: number; readonly http: number; readonly tftp: number };
  /** The port of the metrics; undefined while they cannot be scraped. */
  readonly metricsPort: number | undefined;
  /** Undefined when HTTP and runners are served. The control plane may be away meanwhile. */
  problem(timeoutMs: number): Promise<string | undefined>;
  stop(): Promise<void>;
}

const ownerOnlyFolder = 0o700;

/** The configuration, and the part of it that can be served now. */
export interface ServedConfig extends AgentConfig {
  /** The served ones of the listed interfaces; all of them unless given. */
  readonly served?: readonly AgentInterface[];
}

/** Starts everything; rejects with what is wrong and what would be right. */
export async function startAgent(
  config: ServedConfig,
  platform: AgentPlatform,
): Promise<RunningAgent> {
  const { clock, disk, log, random } = platform;
  const files = new IdentityFiles(disk, config.stateFolder);
  const identity = await files.load();
  if (identity === undefined) {
    throw new Error(`this agent has no identity in ${config.stateFolder}: join it first`);
  }
  const renewal = new IdentityRenewal({ clock, random, log, files }, identity);
  const served: ServedAddresses = { port: config.http.port, mediumUrl: undefined };
  const images = await openImages(config, platform);
  const figures = createAgentFigures(clock);
  const traces = openTraces(config, platform);
  if (traces !== undefined) countSpans(figures.registry, () => traces.counts);
  const metered = {
    ...{ onBmcCall: figures.onBmcCall, onBootArrived: figures.bootArrived },
    ...(traces === undefined ? {} : { recordSpan: (span: Span) => traces.record(span) }),
  };
  const parts = { ...platform, ...metered };
  const core = await openAgentCore(config, parts, renewal, identity, images, served);
  const certificate = await loadBootCertificate(disk, random, `${config.stateFolder}/gateway.json`);
  const { address, port } = config.runner;
  const whole = { ...platform, meter: figures.boot };
  const gatewayPort = Promise.withResolvers<number>();
  const boot = await startBootPath(config, whole, core, certificate, gatewayPort.promise, images);
  served.port = boot.httpPort;
  served.mediumUrl = boot.mediumUrl;
  await answerWaiting(clock);
  const gateway = await core.gateway.listen(address, port, certificate);
  gatewayPort.resolve(gateway.port);
  renewal.onRenewed(() => core.session.move('a new certificate'));
  await core.start();
  renewal.start();
  const metrics = await serveFigures(config, platform, figures, { core, boot, renewal });
  const ports = { gateway: gateway.port, http: boot.httpPort, tftp: boot.tftpPort };
  log.info(
    { rack: identity.rack, version: agentVersion, ...ports, metrics: metrics.port },
    'agent is up',
  );
  return {
    ports,
    get metricsPort() {
      return metrics.port;
    },
    problem: async (timeoutMs) =>
      (await boot.problem(timeoutMs)) ?? (await gateway.problem(timeoutMs)),
    stop: async () => {
      renewal.stop();
      core.stop();
      figures.stop();
      traces?.stop();
      await Promise.all([boot.close(), gateway.close(), metrics.close()]);
    },
  };
}

interface FigureParts {
  readonly core: Pick<AgentCore, 'session'>;
  readonly boot: Pick<BootServices, 'transfers'>;
  readonly renewal: Pick<IdentityRenewal, 'current'>;
}

/** A failure here does not stop the agent. */
function serveFigures(
  { metrics }: AgentConfig,
  { http, clock, log, processFigures }: AgentPlatform,
  { registry }: AgentFigures,
  { core: { session }, boot, renewal }: FigureParts,
): Promise<MetricsPage> {
  observeAgent(registry, {
    status: () => session.status(),
    leaseLeftMs: () => session.leaseLeftMs(),
    unanswered: () => session.unanswered,
    transfers: () => boot.transfers(),
    certificateEndMs: () => renewal.current().expiresAtMs,
    ...(processFigures === undefined ? {} : { processFigures }),
  });
  return serveMetrics(metrics, { http, clock, log, registry });
}

/** What the core reports to the metrics. */
type MeteredPlatform = AgentPlatform &
  Pick<CoreParts, 'onBmcCall' | 'onBootArrived' | 'recordSpan'>;

/** The exporter of spans; undefined: spans are not exported. */
function openTraces(
  { traces }: AgentConfig,
  { clock, log, tracesWebClient: web }: AgentPlatform,
): SpanExporter | undefined {
  if (traces === undefined || web === undefined) return undefined;
  const about = { service: 'rackwright-agent', version: agentVersion };
  return new SpanExporter({ ...traces, ...about, web, clock, log });
}

function openAgentCore(
  config: AgentConfig,
  platform: MeteredPlatform,
  renewal: IdentityRenewal,
  identity: AgentIdentity,
  { images, hostImages }: KeptImages,
  served: Readonly<ServedAddresses>,
): Promise<AgentCore> {
  const transport = grpcTransport(() => {
    const { agentEndpoint, caCertificatePem, certificatePem, privateKeyPem } = renewal.current();
    const own = { privateKeyPem, certificateChainPem: certificatePem };
    return { target: agentEndpoint, caPem: caCertificatePem, own };
  });
  const signer = readKey(identity.privateKeyPem);
  const addresses = addressesOf(config);
  const imageEndpoint = (localAddress: string): string => {
    const address = addressAsked(addresses, localAddress);
    return served.port === 0 || address === undefined ? '' : `${address}:${served.port}`;
  };
  return openCore({
    ...platform,
    ...{ config, transport, signer, agentVersion, images, hostImages, imageEndpoint },
    wakeFrom: addresses,
    ...{ trust: renewal, architecture: config.runner.architecture },
    bootMediumUrl: () => served.mediumUrl,
    loadWork: async () => (await import('./work.ts')).work,
  });
}

/** Its addresses, as far as they are known. */
interface ServedAddresses {
  /** 0 until it is known. */
  port: number;
  mediumUrl: string | undefined;
}

interface KeptImages {
  readonly images: Images;
  readonly hostImages: HostImages;
}

/** Both are of one cache: its limit is that of all. */
async function openImages(
  { stateFolder, imageCacheBytesMax: bytesMax, imagesAtOnceMax, runner }: AgentConfig,
  { clock, disk, hashes, largeFiles: files, log, webClient: web }: AgentPlatform,
): Promise<KeptImages> {
  const folder = `${stateFolder}/images`;
  const prepare = () => disk.makeFolder(folder, ownerOnlyFolder);
  const cache = await BlobCache.open({ files, hashes, clock, log, folder, prepare, bytesMax });
  const admission = { ...defaultAdmissionLimits, atOnceMax: imagesAtOnceMax };
  const retryDelaysMs = defaultRetryDelaysMs;
  return {
    images: new Images({ cache, web, architecture: runner.architecture }),
    hostImages: new HostImages({ cache, web, admission, retryDelaysMs }),
  };
}

/** All addresses that hosts may be given, whether or not their interfaces are served now. */
function addressesOf(config: AgentConfig): readonly string[] {
  return bootInterfaces(config, config.stateFolder).map(({ serverAddress }) => serverAddress);
}

function startBootPath(
  config: ServedConfig,
  {
    clock,
    disk,
    http,
    log,
    udp,
    ownAddresses,
    meter,
  }: AgentPlatform & { readonly meter: BootMeter },
  core: AgentCore,
  certificate: BootCertificate,
  gatewayPort: Promise<number>,
  { images }: KeptImages,
): Promise<BootServices> {
  const {
    tftp,
    loaders,
    bootProfiles,
    loaderFiles,
    loaderBytesMax,
    files,
    virtualMedia,
    raspberryPi,
    runner,
    served = config.interfaces,
  } = config;
  const interfaces = bootInterfaces({ ...config, interfaces: served }, config.stateFolder);
  const addresses = addressesOf(config);
  const { kernel, initrd, kernelArguments } = runner;
  const { fingerprint } = certificate;
  return startBoot(
    {
      ...{ interfaces, addresses, tftp, http: config.http, loaders, loaderFiles, files },
      ...{ bootProfiles, loaderBytesMax },
      ...(virtualMedia === undefined ? {} : { virtualMedia }),
      ...(raspberryPi === undefined ? {} : { raspberryPi }),
      runner: { kernel, initrd, kernelArguments, agentPort: gatewayPort, fingerprint },
    },
    {
      ...{ udp, http, disk, clock, log, meter, memory: core.bootMemory, deploys: core.deploys },
      ownAddresses,
      imageBlob: (hex) => images.served(hex),
      openDiscovery: (mac) => core.openDiscovery(mac),
      onNetboot: (netboot) => core.onNetboot(netboot),
      onBootEvent: (event) => core.onBootEvent(event),
      onDhcpFault: (fault) => core.onDhcpFault(fault),
      onDhcpServerGone: (address) => core.onDhcpServerGone(address),
      onAddressAsked: (hostUid) => core.onAddressAsked(hostUid),
    },
  );
}
