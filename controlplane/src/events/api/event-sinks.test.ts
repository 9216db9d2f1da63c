/** Sinks through a whole control plane, with a receiver on loopback. */
import { createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { guardedWebClient } from '@rackwright/platform/node';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  specOf,
  startFixture,
  violatedFields,
} from '../../services/rpc.fixture.ts';

const key = Buffer.alloc(32, 7);
const secret = `whsec_${key.toString('base64')}`;

interface Request {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver with the test's responses. */
async function receiver() {
  const requests: Request[] = [];
  const waiting: (() => void)[] = [];
  let status = 204;
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (part: string) => {
      body += part;
    });
    request.on('end', () => {
      requests.push({ headers: request.headers, body });
      for (const wake of waiting.splice(0)) wake();
      response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    requests,
    url: `http://127.0.0.1:${port}/rackwright`,
    answer: (next: number) => {
      status = next;
    },
    /** Resolves once a request matches. */
    until: async (fits: (event: Record<string, unknown>) => boolean) => {
      for (;;) {
        const found = requests.find(({ body }) => fits(JSON.parse(body)));
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

let fixture: Fixture;
let there: Awaited<ReturnType<typeof receiver>>;

beforeEach(async () => {
  there = await receiver();
  fixture = await startFixture({ platform: { webClient: guardedWebClient() } });
  await addSurroundings(fixture);
  const credential = { username: 'signer', password: secret };
  await fixture.credentials.createCredential({ credentialId: 'signs', credential });
  const templates = { webhookUrls: [there.url] };
  await fixture.fleet.updateFleet({
    fleet: { spec: { templates } },
    updateMask: { paths: ['spec.templates'] },
  });
});

afterEach(async () => {
  await fixture.stop();
  await there.close();
});

const webhook = (changes: object = {}) => ({
  spec: {
    target: {
      case: 'webhook',
      value: { url: there.url, credential: 'credentials/signs', ...changes },
    } as const,
  },
});

const createSink = (changes: object = {}) =>
  fixture.eventSinks.createEventSink({ eventSinkId: 'alerts', eventSink: webhook(changes) });

const addHost = (id: string, n: number) =>
  fixture.hosts.createHost({ hostId: id, host: { spec: specOf(n) } });

const isType = (type: string) => (event: Record<string, unknown>) =>
  event['type'] === `rackwright.v1.${type}`;

test('a receiver gets a CloudEvent that is signed as Standard Webhooks say', async () => {
  await createSink();
  await addHost('h1', 1);
  const { headers, body } = await there.until(isType('HostCreated'));
  expect(headers['content-type']).toBe('application/cloudevents+json');
  const { data, time, id, sequence, ...event } = JSON.parse(body);
  expect(event).toEqual({
    specversion: '1.0',
    source: `/rackwright/stores/${fixture.store.incarnation}`,
    type: 'rackwright.v1.HostCreated',
    subject: 'hosts/h1',
    datacontenttype: 'application/json',
    dataschema: 'https://type.googleapis.com/rackwright.v1.HostCreated',
    partitionkey: 'hosts/h1',
    rack: 'racks/r1',
    actor: 'user:admin',
    cause: expect.any(String),
  });
  expect(data.uid).toMatch(/./);
  expect([Date.parse(time) > 0, typeof sequence]).toEqual([true, 'string']);
  expect(headers['webhook-id']).toBe(id);
  const at = headers['webhook-timestamp'];
  const signed = createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64');
  expect(headers['webhook-signature']).toBe(`v1,${signed}`);
  expect(body).not.toContain('calvin');
});

test('a refused event is shown, and delivered when it is asked for again', async () => {
  there.answer(422);
  await createSink();
  await addHost('h1', 1);
  const parent = 'eventSinks/alerts';
  const letters = async () => (await fixture.eventSinks.listDeadLetters({ parent })).deadLetters;
  await there.until(isType('HostCreated'));
  await expect.poll(letters, { timeout: 60_000 }).not.toEqual([]);
  const [letter] = await letters();
  expect(letter).toMatchObject({ attempts: 3, problem: expect.stringContaining('answered 422') });
  const { status } = await fixture.eventSinks.getEventSink({ name: parent });
  expect(status?.problem).toContain('answered 422');
  expect(status?.problemSince).toBeDefined();
  there.answer(204);
  const before = there.requests.length;
  const events = [letter?.event?.id ?? ''];
  expect((await fixture.eventSinks.replayDeadLetters({ name: parent, events })).count).toBe(1);
  const left = async () => (await letters()).map(({ name }) => name);
  await expect.poll(left, { timeout: 60_000 }).not.toContain(letter?.name);
  expect(there.requests.slice(before).map(({ headers }) => headers['webhook-id'])).toContain(
    events[0],
  );
});

test('a sink that is deleted gets nothing more, and leaves nothing', async () => {
  await createSink();
  await addHost('h1', 1);
  await there.until(isType('HostCreated'));
  await fixture.eventSinks.deleteEventSink({ name: 'eventSinks/alerts' });
  const before = there.requests.length;
  const other = await receiver();
  const templates = { webhookUrls: [there.url, other.url] };
  await fixture.fleet.updateFleet({
    fleet: { spec: { templates } },
    updateMask: { paths: ['spec.templates'] },
  });
  const eventSink = {
    spec: {
      target: {
        case: 'webhook',
        value: { url: other.url, credential: 'credentials/signs' },
      } as const,
      filter: 'type = host-created',
    },
  };
  await fixture.eventSinks.createEventSink({ eventSinkId: 'other', eventSink });
  await addHost('h2', 2);
  await other.until(isType('HostCreated'));
  await other.close();
  expect(there.requests.length).toBe(before);
});

describe('what would never arrive is refused by its field', () => {
  const field = (name: string) => `event_sink.spec.webhook.${name}`;

  test.each([
    ['a URL that the fleet does not allow', { url: 'https://elsewhere.example/x' }, field('url')],
    ['no URL', { url: '' }, field('url')],
    ['a credential that is none', { credential: 'signs' }, field('credential')],
    ['one that does not exist', { credential: 'credentials/no' }, field('credential')],
  ])('%s is refused', async (_, changes, wanted) => {
    expect(await violatedFields(createSink(changes))).toEqual([wanted]);
  });

  test('a sink without a target, or with a filter that is none, is refused', async () => {
    const { eventSinks } = fixture;
    const empty = eventSinks.createEventSink({ eventSinkId: 'a', eventSink: {} });
    expect(await violatedFields(empty)).toEqual(['event_sink.spec']);
    const { spec } = webhook();
    const eventSink = { spec: { ...spec, filter: 'colour = red' } };
    const filtered = eventSinks.createEventSink({ eventSinkId: 'a', eventSink });
    expect(await violatedFields(filtered)).toEqual(['filter']);
  });
});

test('a sink is updated by mask and etag; its signing credential cannot be deleted', async () => {
  const made = await createSink();
  const { eventSinks, credentials } = fixture;
  const paused = await eventSinks.updateEventSink({
    eventSink: { name: made.name, etag: made.etag, spec: { paused: true } },
    updateMask: { paths: ['spec.paused'] },
  });
  expect(paused.spec).toMatchObject({ paused: true, target: made.spec?.target });
  const stale = eventSinks.deleteEventSink({ name: made.name, etag: made.etag });
  expect((await failureOf(stale)).reason).toBe('ETAG_MISMATCH');
  const inUse = await failureOf(credentials.deleteCredential({ name: 'credentials/signs' }));
  expect(inUse.message).toContain('signs what is sent to eventSinks/alerts');
  expect((await failureOf(createSink())).kind).toBe('alreadyExists');
});
