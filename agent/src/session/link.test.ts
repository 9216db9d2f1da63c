/** Moving from one session to the next: it opens first, and nothing comes twice or never. */
import { create } from '@bufbuild/protobuf';
import { VirtualClock } from '@rackwright/bmc/conformance';
import { agent } from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { beforeEach, expect, test } from 'vitest';
import { quietLog } from '../runner-gateway/testing.ts';
import { defaultSessionLimits } from './limits.ts';
import { Link } from './link.ts';
import type { TransportHandlers } from './transport.ts';

interface Stream {
  readonly handlers: TransportHandlers;
  readonly sent: agent.SessionRequest[];
  open: boolean;
}

let clock: VirtualClock;
let streams: Stream[];
let taken: agent.SessionResponse['message'][];
let welcomed: string[];
let link: Link;

beforeEach(() => {
  clock = new VirtualClock();
  streams = [];
  taken = [];
  welcomed = [];
  link = new Link({
    clock,
    random: nodeRandom(),
    log: quietLog,
    limits: defaultSessionLimits,
    transport: {
      connect: (handlers) => {
        const stream: Stream = { handlers, sent: [], open: true };
        streams.push(stream);
        return {
          send: (message) => void (stream.open && stream.sent.push(message)),
          close: () => {
            stream.open = false;
          },
        };
      },
    },
    hello: () => ({ agentVersion: 'test' }),
    onWelcome: ({ sessionId }) => void welcomed.push(sessionId),
    onMessage: (message) => void taken.push(message),
    onHeartbeat: () => {},
  });
  link.start();
  say(0, { case: 'welcome', value: create(agent.WelcomeSchema, { sessionId: 's1' }) });
});

function say(stream: number, message: agent.SessionResponse['message']): void {
  const { handlers } = at(stream);
  handlers.onMessage(create(agent.SessionResponseSchema, { message }));
}

function at(stream: number): Stream {
  const found = streams[stream];
  if (found === undefined) throw new Error(`no stream ${stream}`);
  return found;
}

const operation = (id: string) =>
  ({ case: 'operation', value: create(agent.OperationSchema, { id }) }) as const;
const lease = { case: 'leaseRenewal', value: create(agent.LeaseRenewalSchema) } as const;
const welcome = {
  case: 'welcome',
  value: create(agent.WelcomeSchema, { sessionId: 's2' }),
} as const;
const refused = { case: 'refused', value: create(agent.RefusedSchema, { reason: 'no' }) } as const;

test('the next session says which one it follows, and that one goes on meanwhile', () => {
  link.move('a new certificate');
  const [first] = at(1).sent;
  expect(first?.message.value).toMatchObject({ replacesSessionId: 's1', agentVersion: 'test' });
  expect(at(0).open).toBe(true);
  link.send({ case: 'snapshotApplied', value: create(agent.SnapshotAppliedSchema) });
  expect(at(0).sent.at(-1)?.message.case).toBe('snapshotApplied');
  expect(link.session).toBe(1);
  // Said again, it does not move twice.
  link.move('again');
  expect(streams).toHaveLength(2);
});

test('what the old one brings after the Hello is left to the next one, but for leases', () => {
  link.move('a new certificate');
  say(0, operation('h1/1/1/1'));
  say(0, lease);
  expect(taken).toEqual([lease]);
  say(1, welcome);
  expect(at(0).open).toBe(false);
  expect(welcomed).toEqual(['s1', 's2']);
  expect(link.status).toEqual({ kind: 'connected', sessionId: 's2' });
  say(1, operation('h1/1/1/1'));
  say(0, operation('h9/1/1/1'));
  expect(taken.map((message) => message.case)).toEqual(['leaseRenewal', 'operation']);
});

test('a next session that is refused, or never welcomed, leaves everything as it was', () => {
  link.move('a new certificate');
  say(0, operation('h1/1/1/1'));
  say(1, refused);
  expect(at(1).open).toBe(false);
  expect(taken).toEqual([operation('h1/1/1/1')]);
  link.move('once more');
  say(0, operation('h2/1/1/1'));
  // Heartbeats need an answer, or the old one is silent.
  const endMs = clock.nowMs() + 31_000;
  while (clock.nowMs() < endMs && clock.step()) say(0, lease);
  expect(at(2).open).toBe(false);
  expect(taken.filter((message) => message.case === 'operation')).toHaveLength(2);
  expect(link.status).toEqual({ kind: 'connected', sessionId: 's1' });
});

test('the old one may end before the Welcome that it ends for', () => {
  link.move('a new certificate');
  say(0, operation('h1/1/1/1'));
  at(0).handlers.onClosed('the control plane ended the stream');
  expect(link.status.kind).toBe('connected');
  say(1, welcome);
  expect(taken).toEqual([]);
  expect(link.status).toEqual({ kind: 'connected', sessionId: 's2' });
  // The same, and nothing follows: then it dials like after any other loss.
  link.move('once more');
  at(1).handlers.onClosed('broken');
  at(2).handlers.onClosed('broken');
  expect(link.status.kind).toBe('waiting');
});

test('stopping ends both', () => {
  link.move('a new certificate');
  link.stop();
  expect(streams.map(({ open }) => open)).toEqual([false, false]);
  say(1, welcome);
  expect(link.status.kind).toBe('stopped');
});
