import { createServer as createPlainServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { answering } from './answering.ts';
import { testCertificate } from './test-certificate.ts';

const timeoutMs = 60_000;
let server: Server;
const listen = async (one: Server) => {
  server = one;
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
};
afterEach(() => void server.close());

describe('a server of this process', () => {
  test('answers when it speaks HTTP, whatever it says', async () => {
    const port = await listen(createPlainServer((_, response) => response.writeHead(404).end()));
    expect(
      await answering({ address: '0.0.0.0', port, protocol: 'http' }, timeoutMs),
    ).toBeUndefined();
  });

  test('answers when it shakes hands', async () => {
    const port = await listen(createTlsServer(await testCertificate('own')));
    expect(
      await answering({ address: '127.0.0.1', port, protocol: 'tls' }, timeoutMs),
    ).toBeUndefined();
  });

  test.each(['tls', 'http'] as const)('does not by taking a connection: %s', async (protocol) => {
    const port = await listen(createServer(() => {}));
    const words = await answering({ address: '127.0.0.1', port, protocol }, 50);
    expect(words).toContain(`port ${port} of this program: no answer within 50 ms`);
  });

  test('does not when its port is closed', async () => {
    const port = await listen(createPlainServer());
    await new Promise((resolve) => server.close(resolve));
    const words = await answering({ address: '127.0.0.1', port, protocol: 'http' }, timeoutMs);
    expect(words).toContain('ECONNREFUSED');
  });
});
