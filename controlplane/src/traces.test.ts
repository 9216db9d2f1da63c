/** A trace goes from its call to the run that it starts, and is exported to the collector. */
import type { WebClient } from '@rackwright/platform';
import { parseTraceparent, runTrace } from '@rackwright/trace';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { addSurroundings, type Fixture, specOf, startFixture } from './services/rpc.fixture.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-01` };

interface WireSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
}

let fixture: Fixture;
let spans: WireSpan[];
const waiting: { readonly what: () => boolean; readonly go: () => void }[] = [];

/** Accepts spans, like a collector. */
const tracesWebClient: WebClient = {
  send: async ({ body }) => {
    const { resourceSpans } = JSON.parse(new TextDecoder().decode(body));
    spans.push(...resourceSpans[0].scopeSpans[0].spans);
    for (const { what, go } of waiting) if (what()) go();
    return { kind: 'answered', status: 200, headers: {}, body: empty(), close: () => undefined };
  },
};

async function* empty(): AsyncGenerator<Uint8Array> {}

function until(what: () => boolean): Promise<void> {
  return new Promise((go) => {
    if (what()) go();
    else waiting.push({ what, go });
  });
}

beforeEach(async () => {
  spans = [];
  const config = { traces: { url: 'http://127.0.0.1:4318/v1/traces' } };
  fixture = await startFixture({ config, platform: { tracesWebClient } });
  await addSurroundings(fixture);
  await fixture.hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) } });
  await fixture.hosts.abortRun({ name: 'hosts/h1', reason: 'not yet' });
});
afterEach(() => fixture.stop());

test('a call, its run and its lines are found by the trace of the caller', async () => {
  const { hosts, lines } = fixture;
  await hosts.verifyHost({ name: 'hosts/h1' }, { headers });
  const run = (await hosts.getHost({ name: 'hosts/h1' })).status?.run;
  const context = parseTraceparent(run?.traceParent);
  expect(context?.traceId).toBe(traceId);
  expect(lines.some(({ fields }) => fields['trace'] === traceId)).toBe(true);
  await hosts.abortRun({ name: 'hosts/h1', reason: 'seen' });
  await until(() =>
    spans.some(({ name, ...span }) => name === 'verify' && span.traceId === traceId),
  );
  const call = spans.find(({ name }) => name === 'HostService.VerifyHost');
  expect(call).toMatchObject({ traceId, parentSpanId: '00f067aa0ba902b7' });
  expect(context?.spanId).toBe(call?.spanId);
  const ofRun = spans.find((span) => span.name === 'verify' && span.traceId === traceId);
  expect(ofRun?.parentSpanId).toBe(call?.spanId);
});

test('a run that nobody called for has a trace of its own', async () => {
  const { uid } = await fixture.hosts.getHost({ name: 'hosts/h1' });
  const own = runTrace(uid, 1n, '').traceId;
  await until(() => spans.some((span) => span.name === 'verify' && span.traceId === own));
});
