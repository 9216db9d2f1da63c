/**
 * Families as text: Prometheus' text format 0.0.4 and OpenMetrics 1.0.0, by the request's Accept
 * header. Pure.
 */
import type { Family, Series } from './registry.ts';

export type Format = 'prometheus' | 'openMetrics';

export const contentTypes: Readonly<Record<Format, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openMetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

/**
 * The format that an Accept header (RFC 9110 §12.5.1) likes best; Prometheus' own when it names
 * neither. Of OpenMetrics only version 1.0.0, or none in particular, counts.
 */
export function formatFor(accept: string | undefined): Format {
  let best: { readonly format: Format; readonly weight: number } | undefined;
  for (const part of (accept ?? '').split(',')) {
    const [type = '', ...parameters] = part.split(';').map((each) => each.trim().toLowerCase());
    const valueOf = (name: string): string | undefined =>
      parameters.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);
    const format = formatOf(type, valueOf('version'));
    const weight = Number(valueOf('q') ?? 1);
    if (format === undefined || !(weight > (best?.weight ?? 0))) continue;
    best = { format, weight };
  }
  return best?.format ?? 'prometheus';
}

function formatOf(type: string, version: string | undefined): Format | undefined {
  switch (type) {
    case 'application/openmetrics-text':
      return version === undefined || version.replaceAll('"', '') === '1.0.0'
        ? 'openMetrics'
        : undefined;
    case 'text/plain':
    case 'text/*':
    case '*/*':
      return 'prometheus';
    default:
      return undefined;
  }
}

/** The text of an answer. */
export function expose(families: readonly Family[], format: Format): string {
  const lines = families.flatMap((family) => linesOf(family, format));
  if (format === 'openMetrics') lines.push('# EOF');
  return `${lines.join('\n')}\n`;
}

function linesOf(family: Family, format: Format): string[] {
  const { name, kind, help, series } = family;
  // OpenMetrics §5.1: a counter's family has no suffix, its samples have.
  const shown = format === 'openMetrics' && kind === 'counter' ? withoutTotal(name) : name;
  return [
    `# HELP ${shown} ${escaped(help)}`,
    `# TYPE ${shown} ${kind}`,
    ...series.flatMap((each) => samplesOf(family, each)),
  ];
}

function samplesOf({ name, kind, labelNames, bounds }: Family, series: Series): string[] {
  const labels = labelNames.map((label, at) => pair(label, series.values[at] ?? ''));
  if (kind !== 'histogram') return [`${name}${braced(labels)} ${numberText(series.value)}`];
  const { buckets = [] } = series;
  const lines = buckets.map((count, at) => {
    const bound = bounds[at];
    const le = pair('le', bound === undefined ? '+Inf' : boundText(bound));
    return `${name}_bucket${braced([...labels, le])} ${numberText(count)}`;
  });
  const count = numberText(buckets.at(-1) ?? 0);
  return [
    ...lines,
    `${name}_sum${braced(labels)} ${numberText(series.value)}`,
    `${name}_count${braced(labels)} ${count}`,
  ];
}

function withoutTotal(name: string): string {
  return name.replace(/_total$/, '');
}

function pair(name: string, value: string): string {
  return `${name}="${escaped(value)}"`;
}

function braced(pairs: readonly string[]): string {
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}

/** OpenMetrics wants floats there; both formats get the same, for they are one series. */
function boundText(bound: number): string {
  return Number.isInteger(bound) ? `${bound}.0` : String(bound);
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  return String(value);
}
