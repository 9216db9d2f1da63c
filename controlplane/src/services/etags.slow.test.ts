/**
 * Every method whose request has an etag, on a resource that has changed since: each refuses. A new
 * method is included automatically.
 */
import type { DescMethod } from '@bufbuild/protobuf';
import { Role } from '@rackwright/messages';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatPosition } from '../call/position.ts';
import { idOf } from '../records/index.ts';
import { addSide, type Names, tokenFor } from './access.fixture.ts';
import { callOf, methods, pathOf, requestOf } from './every-method.fixture.ts';
import { type Fixture, startFixture } from './rpc.fixture.ts';

const token = 'tokens/etags';
const template = 'templates/etags';
const sink = 'eventSinks/etags';
const url = 'https://hooks.example.org/events';
const source = 'steps:\n  - name: look\n    script: date\n';
/** Resources that are built in, or not created in the tables of others. */
const named: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  UpdateTemplate: { template: { name: template } },
  DeleteTemplate: { name: template },
  DeleteToken: { name: token },
  UpdateEventSink: { eventSink: { name: sink } },
  DeleteEventSink: { name: sink },
};

let fixture: Fixture;
let names: Names;

beforeAll(async () => {
  fixture = await startFixture();
  names = await addSide(fixture, 'aa');
  await tokenFor(fixture, idOf(token), Role.VIEWER);
  await fixture.templates.createTemplate({ templateId: idOf(template), template: { source } });
  await fixture.fleet.updateFleet({ fleet: { spec: { templates: { webhookUrls: [url] } } } });
  const target = { case: 'webhook', value: { url, credential: names.credential } } as const;
  const eventSink = { spec: { target } };
  await fixture.eventSinks.createEventSink({ eventSinkId: idOf(sink), eventSink });
});

afterAll(() => fixture.stop());

/** The resource whose etag an update has; undefined: the request itself has one, or none. */
function resourceOf({ input, name }: DescMethod): string | undefined {
  if (!name.startsWith('Update')) return undefined;
  const field = input.fields.find(({ message }) => message?.field['etag'] !== undefined);
  return field?.localName;
}

const bearing = methods.filter((method) => {
  return method.input.field['etag'] !== undefined || resourceOf(method) !== undefined;
});

/** The request for each, with an etag of an old revision that no resource has. */
function staleRequest(method: DescMethod): Readonly<Record<string, unknown>> {
  const etag = formatPosition(fixture.store, 0);
  const {
    validateOnly: _,
    requestId: _id,
    ...request
  } = {
    ...requestOf(method, 'aa', names),
    ...named[method.name],
  };
  const resource = resourceOf(method);
  if (resource === undefined) return { ...request, reason: 'tried out', etag };
  const given = request[resource] as Readonly<Record<string, unknown>> | undefined;
  return { ...request, reason: 'tried out', [resource]: { ...given, etag } };
}

test('the methods that bear an etag are those that change or remove one resource', () => {
  expect(bearing.length).toBeGreaterThan(15);
});

test.each(bearing.map((method) => [pathOf(method), method] as const))(
  '%s refuses an etag of before a change',
  async (_, method) => {
    const { reason } = await callOf(fixture.channel, method, staleRequest(method), fixture.token);
    expect(reason).toBe('ETAG_MISMATCH');
  },
);
