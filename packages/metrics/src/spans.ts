/** The counts of spans. */
import type { Registry } from './registry.ts';

/** Declares it; `read` gives the counts so far, and the number of waiting spans. */
export function countSpans(
  registry: Registry,
  read: () => { readonly sent: number; readonly dropped: number; readonly waiting: number },
): void {
  registry.counts(
    'rackwright_spans_total',
    'Spans that the collector took, and those that were dropped.',
    { result: ['sent', 'dropped'] },
    () => {
      const { sent, dropped } = read();
      return [
        { labels: { result: 'sent' }, value: sent },
        { labels: { result: 'dropped' }, value: dropped },
      ];
    },
  );
  registry.gauge('rackwright_spans_waiting', 'Spans that wait for the collector.', {}, () => [
    { labels: {}, value: read().waiting },
  ]);
}
