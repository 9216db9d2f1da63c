import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ByteSource, readFrom } from '@rackwright/disk-image';
import { nodeWebClient } from '@rackwright/platform/node';
import { afterEach, expect, test } from 'vitest';
import { noise } from './provision.fixture.ts';
import { webSource } from './web-source.ts';

const content = noise(600_000);
let server: Server | undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

interface WebRequest {
  readonly range: string | undefined;
  readonly ifRange: string | undefined;
  readonly token: string | undefined;
}

/** A server of one answer after another; the last one stays. */
async function serve(...answers: ((request: IncomingMessage, response: ServerResponse) => void)[]) {
  const asked: WebRequest[] = [];
  server = createServer((request, response) => {
    const { range, 'if-range': ifRange, authorization: token } = request.headers;
    asked.push({ range, ifRange: ifRange as string | undefined, token });
    answers[Math.min(asked.length, answers.length) - 1]?.(request, response);
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/image`;
  return { source: webSource(nodeWebClient(), url, { authorization: 'Bearer t' }), asked };
}

async function read(source: ByteSource, sizeBytes?: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of readFrom(source, 0, sizeBytes, new AbortController().signal)) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Up to `bytes`, and then the connection breaks. */
function breaksAfter(bytes: number) {
  return (_: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(200, { 'content-length': content.length, etag: '"one"' });
    response.write(content.subarray(0, bytes), () => response.destroy());
  };
}

function ranged(request: IncomingMessage, response: ServerResponse): void {
  const from = Number(/\d+/.exec(request.headers.range ?? '')?.[0]);
  const range = `bytes ${from}-${content.length - 1}/${content.length}`;
  response.writeHead(206, { 'content-range': range, etag: '"one"' });
  response.end(content.subarray(from));
}

function whole(_: IncomingMessage, response: ServerResponse): void {
  response.end(content);
}

function status(code: number) {
  return (_: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(code).end('no');
  };
}

test('the source resumes where the connection broke, if the file is unchanged', async () => {
  const { source, asked } = await serve(breaksAfter(100_000), status(503), ranged);
  expect((await read(source)).equals(content)).toBe(true);
  expect(asked[0]).toEqual({ range: undefined, ifRange: undefined, token: 'Bearer t' });
  for (const each of asked.slice(1)) {
    expect(each).toMatchObject({ range: expect.stringMatching(/^bytes=\d+-$/), ifRange: '"one"' });
  }
  expect(asked).toHaveLength(3);
});

test('the source reads on from a server without ranges', async () => {
  const { source } = await serve(breaksAfter(100_000), whole);
  expect((await read(source)).equals(content)).toBe(true);
});

test('the source reports the size, and an answer of the server in place of the file', async () => {
  const short = await serve(breaksAfter(0));
  await expect(read(short.source, 5)).rejects.toMatchObject({ fault: 'tooLong' });
  for (const code of [401, 404, 416]) {
    const { source, asked } = await serve(status(code));
    const message = expect.stringContaining(`the server answers ${code}`);
    await expect(read(source)).rejects.toMatchObject({ fault: 'unreachable', message });
    expect(asked).toHaveLength(1);
  }
  const { source, asked } = await serve(status(500));
  await expect(read(source)).rejects.toMatchObject({ fault: 'unreachable' });
  expect(asked).toHaveLength(5);
});
