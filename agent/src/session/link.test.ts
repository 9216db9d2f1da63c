/** Moving from one session to the next: it opens first, and nothing comes twice or never. */
import { create } from '@bufbuild/protobuf';
import { VirtualClock } from '@rackwright/bmc/conformance';
import { agent, asAgentSessionId } from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { beforeEach, expect, test } from 'vitest';
import { defaultSessionLimits } from './limits.ts';
import { AgentLink } from './link.ts';
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
let link: AgentLink;
let hasWork: boolean;

beforeEach(() => {
  clock = new VirtualClock();
  streams = [];
  taken = [];
  welcomed = [];
  hasWork = false;
  link = new AgentLink({
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
    hasWork: () => hasWork,
    onHeartbeat: () => {},
  });
  link.start();
  say(0, {
    case: 'welcome',
    value: create(agent.WelcomeSchema, { sessionId: asAgentSessionId('s1') }),
  });
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
  value: create(agent.WelcomeSchema, { sessionId: asAgentSessionId('s2') }),
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

test('messages of the old session after the Hello are left to the next one, but for leases', () => {
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

test('the old session may end before the Welcome of the next one', () => {
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

test('a stop ends both sessions', () => {
  link.move('a new certificate');
  link.stop();
  expect(streams.map(({ open }) => open)).toEqual([false, false]);
  say(1, welcome);
  expect(link.status.kind).toBe('stopped');
});

/** Moves into a session that asks for such intervals; answers the heartbeats of that session. */
function paced(heartbeatIntervalMs: number, idleHeartbeatIntervalMs: number) {
  link.move('a new certificate');
  const asked = { sessionId: asAgentSessionId('s2'), heartbeatIntervalMs, idleHeartbeatIntervalMs };
  say(1, { case: 'welcome', value: create(agent.WelcomeSchema, asked) });
  return () =>
    at(1).sent.flatMap(({ message }) => (message.case === 'heartbeat' ? [message.value] : []));
}

function wait(ms: number): void {
  const endMs = clock.nowMs() + ms;
  clock.after(ms, () => say(1, lease));
  while (clock.nowMs() < endMs && clock.step());
}

test('an agent without work beats less often and says so, and with work as the lease needs', () => {
  const beats = paced(5_000, 20_000);
  wait(19_990);
  expect(beats()).toMatchObject([{ sequence: 1n, nextInMs: 20_000 }]);
  wait(20_020);
  expect(beats().map(({ nextInMs }) => nextInMs)).toEqual([20_000, 20_000, 20_000]);
  hasWork = true;
  wait(30_000);
  expect(beats().map(({ nextInMs }) => nextInMs)).toEqual([20_000, 20_000, 20_000, 0, 0, 0]);
});

test('work that comes is worth a heartbeat at once, and no two within the shorter interval', () => {
  const beats = paced(5_000, 20_000);
  wait(12_000);
  hasWork = true;
  link.workCame();
  link.workCame();
  wait(10);
  expect(beats()).toHaveLength(2);
  link.workCame();
  wait(4_980);
  expect(beats()).toHaveLength(2);
  hasWork = false;
  wait(20);
  expect(beats().at(-1)).toMatchObject({ sequence: 3n, nextInMs: 20_000 });
  wait(1_000);
  link.workCame();
  wait(3_980);
  expect(beats()).toHaveLength(3);
  wait(20);
  expect(beats()).toHaveLength(4);
});

test('a heartbeat’s interval is bounded, and work between sessions sends none', () => {
  const beats = paced(5_000, 4_000_000_000);
  expect(beats()).toMatchObject([{ nextInMs: defaultSessionLimits.heartbeatLongestMs }]);
  link.redial('again');
  link.workCame();
  expect(link.status.kind).toBe('waiting');
});

test('a control plane that names one interval gets no other', () => {
  const beats = paced(5_000, 0);
  wait(15_010);
  expect(beats().map(({ nextInMs }) => nextInMs)).toEqual([0, 0, 0, 0]);
});
