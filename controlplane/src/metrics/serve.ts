/** The page of the metrics, if the platform has HTTP. */
import {
  type MetricsListen,
  type MetricsPage,
  type MetricsParts,
  type Registry,
  serveMetrics,
} from '@rackwright/metrics';
import type { ProcessFigures } from '@rackwright/platform';
import { type ExporterParts, SpanExporter, type TracesConfig } from '@rackwright/trace';
import type { TrustNow } from '../identity/index.ts';
import { controlPlaneVersion } from '../version.ts';
import { type ObservedParts, observe } from './observe.ts';

export interface FiguresPlatform extends Pick<MetricsParts, 'clock' | 'log'> {
  /** Absent: metrics cannot be scraped. */
  readonly metricsHttp?: MetricsParts['http'];
  /** Absent: there are no process metrics. */
  readonly processFigures?: () => ProcessFigures;
}

export interface FiguresSource extends Omit<ObservedParts, 'certificateEnds' | 'version'> {
  /** The presently trusted and shown certificates. */
  readonly trust: () => Pick<TrustNow, 'issuer' | 'server'>;
}

/** The destination of spans; undefined: none. */
export function openTraces(
  traces: TracesConfig | undefined,
  {
    clock,
    log,
    tracesWebClient: web,
  }: Pick<ExporterParts, 'clock' | 'log'> & { readonly tracesWebClient?: ExporterParts['web'] },
): SpanExporter | undefined {
  if (traces === undefined || web === undefined) return undefined;
  const about = { service: 'rackwright-controlplane', version: controlPlaneVersion };
  return new SpanExporter({ ...traces, ...about, web, clock, log });
}

/** Declares the metrics, and opens the port. Undefined: the platform has no HTTP. */
export async function serveFigures(
  listen: MetricsListen,
  { metricsHttp: http, clock, log, processFigures }: FiguresPlatform,
  registry: Registry,
  { trust, ...parts }: FiguresSource,
): Promise<MetricsPage | undefined> {
  if (http === undefined) return undefined;
  const certificateEnds = () => {
    const { issuer, server } = trust();
    return {
      authority: issuer.caCertificate.notAfter.getTime() / 1_000,
      server: server.certificate.notAfter.getTime() / 1_000,
    };
  };
  const version = controlPlaneVersion;
  const ofProcess = processFigures === undefined ? {} : { processFigures };
  observe(registry, { ...parts, ...ofProcess, certificateEnds, version });
  return serveMetrics(listen, { http, clock, log, registry });
}
