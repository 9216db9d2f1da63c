/** Figures of this process, under the names that Prometheus' own clients give them. */
import type { ProcessFigures } from '@rackwright/platform';
import type { Registry } from './registry.ts';

/** Declares them; `version` is that of the program. */
export function countProcess(
  registry: Registry,
  read: () => ProcessFigures,
  about: { readonly version: string },
): void {
  const one = (value: number) => [{ labels: {}, value }];
  registry.gauge(
    'rackwright_build_info',
    'Always 1; the label names the version.',
    { version: [about.version] },
    () => [{ labels: about, value: 1 }],
  );
  registry.counts('process_cpu_seconds_total', 'Processor time, user and system.', {}, () =>
    one(read().cpuSeconds),
  );
  registry.gauge('process_resident_memory_bytes', 'Memory that is resident.', {}, () =>
    one(read().residentBytes),
  );
  registry.gauge('process_start_time_seconds', 'Start, seconds since 1970.', {}, () =>
    one(read().startSeconds),
  );
  registry.gauge('nodejs_heap_used_bytes', 'Heap of JavaScript in use.', {}, () =>
    one(read().heapUsedBytes),
  );
  registry.gauge(
    'nodejs_eventloop_lag_seconds',
    'How late the event loop was since the scrape before: mean, 99th percentile and most.',
    { figure: ['mean', 'p99', 'max'] },
    () => {
      const { mean, p99, max } = read().eventLoopLagSeconds;
      return [
        { labels: { figure: 'mean' }, value: mean },
        { labels: { figure: 'p99' }, value: p99 },
        { labels: { figure: 'max' }, value: max },
      ];
    },
  );
  registry.counts(
    'nodejs_eventloop_busy_seconds_total',
    'Time in which the event loop did something.',
    {},
    () => one(read().eventLoopBusySeconds),
  );
}
