/** A bare grpc-js server that echoes, with the TLS of the agents' port: echo-server.ts FOLDER. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';

const [folder = ''] = process.argv.slice(2);
const read = (name: string) => readFileSync(join(folder, name));
const server = new Server({ 'grpc.keepalive_time_ms': 10_000, 'grpc.keepalive_timeout_ms': 5_000 });
const asIs = (bytes: Buffer) => bytes;
server.register(
  '/rackwright.agent.v1.AgentService/Session',
  (call: ServerDuplexStream<Buffer, Buffer>) => {
    call.on('data', (bytes: Buffer) => call.write(bytes));
    call.on('end', () => call.end());
    call.on('error', () => undefined);
  },
  asIs,
  asIs,
  'bidi',
);
const pair = { private_key: read('key.pem'), cert_chain: read('chain.pem') };
const credentials = ServerCredentials.createSsl(read('ca.pem'), [pair], true);
server.bindAsync('127.0.0.1:0', credentials, (error, port) => {
  if (error !== null) throw error;
  process.send?.({ port });
});
process.on('disconnect', () => process.exit(0));
