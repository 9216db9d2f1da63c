/** Traces: their ids, the header that carries them, and spans on their way to a collector. */
export { readTraces, type TracesConfig } from './config.ts';
export {
  type OperationTrace,
  operationTrace,
  parseTraceparent,
  type RunTrace,
  runTrace,
  type TraceContext,
  traceparentOf,
} from './context.ts';
export {
  type ExporterParts,
  type RecordSpan,
  type Span,
  type SpanCounts,
  SpanExporter,
  type SpanKind,
} from './exporter.ts';
