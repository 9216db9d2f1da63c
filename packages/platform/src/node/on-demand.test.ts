import { expect, test } from 'vitest';
import { peerOf } from './on-demand.ts';

test('a request ends as broken where HTTPS cannot be loaded, and no rejection is left', async () => {
  const peer = peerOf(Promise.reject(new Error('the file is gone')));
  const request = { method: 'GET', path: '/redfish/v1/', headers: {} } as const;
  expect(await peer.request(request)).toEqual({
    kind: 'broken',
    message: 'HTTPS cannot be loaded: the file is gone',
    mayHaveArrived: false,
  });
  peer.close();
});
