import { expect, test } from 'vitest';
import { peerOf } from './on-demand.ts';

test('a request is answered as broken where HTTPS cannot be loaded', async () => {
  const peer = peerOf(Promise.reject(new Error('the file is gone')));
  const request = { method: 'GET', path: '/redfish/v1/', headers: {} } as const;
  expect(await peer.request(request)).toEqual({
    kind: 'broken',
    message: 'HTTPS cannot be loaded: the file is gone',
    mayHaveArrived: false,
  });
  peer.close();
});
