/** A Redfish service of answers by path, without sockets. */
import type { HttpClient, HttpsOutcome, HttpsRequest } from '@rackwright/platform';
import type { BmcResult } from '../driver.ts';
import { driverFor } from './rig.fixture.ts';
import type { ExpectedSystem } from './system.ts';

export const readBack = { windowMs: 0, pollMs: 0 };

export interface CannedAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Answers by "METHOD path"; any other is 404. */
export function serviceOf(answers: Readonly<Record<string, CannedAnswer>>): {
  readonly client: HttpClient;
  readonly requests: HttpsRequest[];
} {
  const requests: HttpsRequest[] = [];
  const answer = (request: HttpsRequest): HttpsOutcome => {
    requests.push(request);
    const given = answers[`${request.method} ${request.path}`] ?? { status: 404, body: {} };
    const { status = 200, headers = {}, body } = given;
    const text = typeof body === 'string' ? body : JSON.stringify(body ?? {});
    const bytes = new TextEncoder().encode(text);
    return { kind: 'answered', status, headers, body: bytes, certificateSha256: '00'.repeat(32) };
  };
  const request = async (one: HttpsRequest) => answer(one);
  return { client: { peer: () => ({ request, close: () => {} }) }, requests };
}

export function systemAt(path: string, UUID: string, SerialNumber: string) {
  return { [`GET ${path}`]: { body: { UUID, SerialNumber, PowerState: 'On' } } };
}

export const token = 'token-that-hides';
export const basics: Readonly<Record<string, CannedAnswer>> = {
  'GET /redfish/v1/': {
    body: {
      RedfishVersion: '1.6.0',
      Systems: { '@odata.id': '/s' },
      Links: { Sessions: { '@odata.id': '/redfish/v1/SessionService/Sessions' } },
    },
  },
  'POST /redfish/v1/SessionService/Sessions': {
    status: 201,
    headers: { 'x-auth-token': token, location: '/session/1' },
  },
  'DELETE /session/1': { status: 204 },
  'GET /s': { body: { Members: [{ '@odata.id': '/s/1' }] } },
  ...systemAt('/s/1', '00000000-0000-0000-0000-000000000001', 'ONE'),
};

export function driverOf(
  answers: Readonly<Record<string, CannedAnswer>>,
  expected?: ExpectedSystem,
) {
  const { client, requests } = serviceOf({ ...basics, ...answers });
  // Over at the first reading.
  const restart = { beginsWithinMs: -1, backWithinMs: 0, pollMs: 0 };
  const parts = { client, readBack, restart, ...(expected === undefined ? {} : { expected }) };
  return { driver: driverFor({ address: '192.0.2.1', port: 443 }, { parts }), requests };
}

export function kindOf(result: BmcResult<unknown>): string {
  if (result.kind === 'failed') return result.type;
  return result.kind === 'transient' ? result.reason : 'ok';
}
