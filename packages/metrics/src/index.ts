/** Figures of a program, counted through narrow handles and scraped as text. */
export { contentTypes, expose, type Format, formatFor } from './expose.ts';
export type { LabelSpec, LabelsOf, LabelValues } from './labels.ts';
export { combinationsMax, otherValue } from './labels.ts';
export {
  answers,
  type MetricsListen,
  type MetricsPage,
  type MetricsParts,
  serveMetrics,
} from './page.ts';
export { countProcess } from './process.ts';
export {
  type Counter,
  callBounds,
  type Durations,
  type Family,
  Registry,
  type Sample,
  workBounds,
} from './registry.ts';
export { countSpans } from './spans.ts';
