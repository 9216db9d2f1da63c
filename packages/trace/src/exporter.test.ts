/** The collector may refuse, be away or hang: spans are dropped and counted, nobody waits. */
import type { WebOutcome, WebRequest } from '@rackwright/platform';
import { afterMicrotasks } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { type Span, SpanExporter } from './index.ts';

const span: Span = {
  ...{ name: 'clean', kind: 'internal', traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) },
  ...{ parentSpanId: undefined, startMs: 1_000, endMs: 3_500.4, failure: undefined },
  attributes: { 'rackwright.host': 'hosts/h1', 'rackwright.run': 3 },
};

function exporterOn(answer: () => Promise<WebOutcome>) {
  const due: (() => void)[] = [];
  const sent: WebRequest[] = [];
  const lines: string[] = [];
  const say = (_fields: object, message: string) => void lines.push(message);
  const exporter = new SpanExporter({
    ...{ url: 'http://127.0.0.1:4318/v1/traces', service: 'rackwright-agent', version: '1' },
    web: {
      send: (request) => {
        sent.push(request);
        return answer();
      },
    },
    clock: {
      after: (_ms, run) => {
        due.push(run);
        return () => void due.splice(0);
      },
    },
    log: { warn: say, info: say },
  });
  /** Runs the due callbacks, and lets their awaited work settle. */
  const pass = async () => {
    for (const run of due.splice(0)) run();
    await afterMicrotasks(10);
  };
  return { exporter, sent, lines, pass };
}

const taken: WebOutcome = {
  ...{ kind: 'answered', status: 200, headers: {}, close: () => undefined },
  body: (async function* () {})(),
};
const away: WebOutcome = { kind: 'unreachable', message: '', mayHaveArrived: false };

test('spans go out together, as OTLP in JSON has them', async () => {
  const { exporter, sent, pass } = exporterOn(async () => taken);
  exporter.record(span);
  exporter.record({ ...span, parentSpanId: 'c'.repeat(16), failure: 'ioError', kind: 'server' });
  await pass();
  expect(sent).toHaveLength(1);
  const body = JSON.parse(new TextDecoder().decode(sent[0]?.body));
  const [{ resource, scopeSpans }] = body.resourceSpans;
  expect(resource.attributes[0]).toEqual({
    key: 'service.name',
    value: { stringValue: 'rackwright-agent' },
  });
  const [first, second] = scopeSpans[0].spans;
  expect(first).toEqual({
    ...{ traceId: span.traceId, spanId: span.spanId, name: 'clean', kind: 1 },
    ...{ startTimeUnixNano: '1000000000', endTimeUnixNano: '3500000000', status: { code: 0 } },
    attributes: [
      { key: 'rackwright.host', value: { stringValue: 'hosts/h1' } },
      { key: 'rackwright.run', value: { intValue: '3' } },
    ],
  });
  expect(second).toMatchObject({
    ...{ parentSpanId: 'c'.repeat(16), kind: 2, status: { code: 2, message: 'ioError' } },
  });
  expect(exporter.counts).toEqual({ sent: 2, dropped: 0, waiting: 0 });
});

test('a collector that hangs costs the queue, and what has no room is counted', async () => {
  const { exporter, sent, pass } = exporterOn(() => new Promise(() => undefined));
  for (let at = 0; at < 10_000; at += 1) exporter.record(span);
  await pass();
  for (let at = 0; at < 10_000; at += 1) exporter.record(span);
  await pass();
  expect(sent).toHaveLength(1);
  const { waiting, dropped } = exporter.counts;
  expect(waiting).toBe(2_048);
  expect(dropped + waiting + 256).toBe(20_000);
});

test('rejected spans are dropped and counted, and logged once', async () => {
  const answers = [away, away, { ...taken, status: 503 }, taken, taken];
  const { exporter, lines, pass } = exporterOn(async () => answers.shift() ?? taken);
  for (let at = 0; at < 5; at += 1) {
    exporter.record(span);
    await pass();
  }
  expect(exporter.counts).toEqual({ sent: 2, dropped: 3, waiting: 0 });
  expect(lines).toEqual([
    'the collector does not take spans; they are dropped',
    'the collector takes spans again',
  ]);
});

test('an exporter that is stopped sends no more', async () => {
  const { exporter, sent, pass } = exporterOn(async () => taken);
  exporter.record(span);
  exporter.stop();
  exporter.record(span);
  await pass();
  expect(sent).toHaveLength(0);
  expect(exporter.counts).toEqual({ sent: 0, dropped: 2, waiting: 0 });
});
