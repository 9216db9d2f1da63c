/**
 * Spans to a collector: OTLP 1.x over HTTP, JSON (`POST …/v1/traces`).
 *
 * E1 Recording a span returns at once. It waits in a queue of at most `spansMax`; a span without
 *    room is dropped and counted.
 * E2 One request is under way at a time, given up after `answerTimeoutMs`. Spans that the collector
 *    did not accept are dropped and counted: a collector that hangs costs the queue and nothing
 *    else.
 */
import type { Cancel, Clock, Log, WebClient } from '@rackwright/platform';

export type SpanKind = 'internal' | 'server';

export interface Span {
  readonly name: string;
  readonly kind: SpanKind;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  /** Milliseconds since 1970. */
  readonly startMs: number;
  readonly endMs: number;
  /** Unset: it ended well. A type of failure, never a text. */
  readonly failure: string | undefined;
  readonly attributes: Readonly<Record<string, string | number>>;
}

/** Takes a span that is over. Returns at once, never throws. */
export type RecordSpan = (span: Span) => void;

/** The number of spans that the collector accepted so far, and of dropped ones. */
export interface SpanCounts {
  readonly sent: number;
  readonly dropped: number;
  readonly waiting: number;
}

export interface ExporterParts {
  /** "http://collector.example:4318/v1/traces" */
  readonly url: string;
  /** The name in collectors: "rackwright-agent". */
  readonly service: string;
  readonly version: string;
  readonly web: WebClient;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Pick<Log, 'warn' | 'info'>;
}

const spansMax = 2_048;
const batchSpansMax = 256;
const delayMs = 2_000;
const answerTimeoutMs = 10_000;
const limits = { answerTimeoutMs, silenceMs: answerTimeoutMs, headerBytesMax: 16_384 } as const;

export class SpanExporter {
  readonly #parts: ExporterParts;
  readonly #waiting: Span[] = [];
  #sent = 0;
  #dropped = 0;
  #cancel: Cancel | undefined;
  #isSending = false;
  /** The last request was not accepted: logged once, and once when it is over. */
  #isRefused = false;
  readonly #stopping = new AbortController();

  constructor(parts: ExporterParts) {
    this.#parts = parts;
  }

  get counts(): SpanCounts {
    return { sent: this.#sent, dropped: this.#dropped, waiting: this.#waiting.length };
  }

  /** E1 */
  record(span: Span): void {
    if (this.#waiting.length >= spansMax || this.#stopping.signal.aborted) {
      this.#dropped += 1;
      return;
    }
    this.#waiting.push(span);
    this.#sendLater();
  }

  /** Drops the waiting spans. */
  stop(): void {
    this.#stopping.abort();
    this.#cancel?.();
    this.#dropped += this.#waiting.splice(0).length;
  }

  #sendLater(): void {
    if (this.#isSending || this.#cancel !== undefined || this.#waiting.length === 0) return;
    const isFull = this.#waiting.length >= batchSpansMax;
    this.#cancel = this.#parts.clock.after(isFull ? 0 : delayMs, () => {
      this.#cancel = undefined;
      void this.#send();
    });
  }

  /** E2 */
  async #send(): Promise<void> {
    const { url, web } = this.#parts;
    const batch = this.#waiting.splice(0, batchSpansMax);
    this.#isSending = true;
    const body = new TextEncoder().encode(JSON.stringify(bodyOf(batch, this.#parts)));
    const headers = { 'content-type': 'application/json', 'user-agent': 'rackwright' };
    const request = { method: 'POST', url, headers, body } as const;
    const outcome = await web.send(request, limits, this.#stopping.signal);
    if (outcome.kind === 'answered') outcome.close();
    const isTaken = outcome.kind === 'answered' && outcome.status >= 200 && outcome.status < 300;
    if (isTaken) this.#sent += batch.length;
    else this.#dropped += batch.length;
    this.#tell(isTaken, outcome.kind === 'answered' ? `status ${outcome.status}` : outcome.kind);
    this.#isSending = false;
    if (!this.#stopping.signal.aborted) this.#sendLater();
  }

  #tell(isTaken: boolean, action: string): void {
    if (isTaken !== this.#isRefused) return;
    this.#isRefused = !isTaken;
    const { log, url } = this.#parts;
    if (isTaken) log.info({ url }, 'the collector takes spans again');
    else log.warn({ url, what: action }, 'the collector does not take spans; they are dropped');
  }
}

const kinds: Readonly<Record<SpanKind, number>> = { internal: 1, server: 2 };
/** Status codes of spans. */
const [unset, failed] = [0, 2];

function bodyOf(spans: readonly Span[], { service, version }: ExporterParts): object {
  const resource = { 'service.name': service, 'service.version': version };
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [{ scope: { name: 'rackwright', version }, spans: spans.map(wireOf) }],
      },
    ],
  };
}

function wireOf({ parentSpanId, failure, ...span }: Span): object {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    name: span.name,
    kind: kinds[span.kind],
    startTimeUnixNano: nanosecondsOf(span.startMs),
    endTimeUnixNano: nanosecondsOf(span.endMs),
    attributes: attributesOf(span.attributes),
    status: failure === undefined ? { code: unset } : { code: failed, message: failure },
  };
}

/** 64 bits are texts in the JSON of protobuf. */
function nanosecondsOf(ms: number): string {
  return String(BigInt(Math.round(ms)) * 1_000_000n);
}

function attributesOf(attributes: Span['attributes']): object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'string' ? { stringValue: value } : { intValue: String(value) },
  }));
}
