import { expect, test } from 'vitest';
import type { HttpsPeer } from '../https-client.ts';
import type { WebClient } from '../web-client.ts';
import { clientOf, peerOf } from './on-demand.ts';

/** Fails once, as where the program's files are being replaced. */
function failingOnce<Opened>(opened: Opened): () => Promise<Opened> {
  let calls = 0;
  return async () => {
    calls += 1;
    if (calls === 1) throw new Error('the file is gone');
    return opened;
  };
}

const message = 'HTTP cannot be loaded: the file is gone';

test('a request ends as broken where its peer cannot be loaded, until it can', async () => {
  const cancelled = { kind: 'cancelled' } as const;
  const opened: HttpsPeer = { request: async () => cancelled, close: () => {} };
  const peer = peerOf(failingOnce(opened));
  const request = { method: 'GET', path: '/redfish/v1/', headers: {} } as const;
  const broken = { kind: 'broken', message, mayHaveArrived: false };
  expect(await peer.request(request)).toEqual(broken);
  expect(await peer.request(request)).toEqual(cancelled);
  peer.close();
});

test('a request ends as unreachable where HTTP cannot be loaded, until it can', async () => {
  const cancelled = { kind: 'cancelled' } as const;
  const opened: WebClient = { send: async () => cancelled };
  const client = clientOf(failingOnce(opened));
  const request = { method: 'GET', url: 'https://registry.example/v2/', headers: {} } as const;
  const limits = { answerTimeoutMs: 1_000, silenceMs: 1_000, headerBytesMax: 1_000 };
  const unreachable = { kind: 'unreachable', message, mayHaveArrived: false };
  expect(await client.send(request, limits)).toEqual(unreachable);
  expect(await client.send(request, limits)).toEqual(cancelled);
});
