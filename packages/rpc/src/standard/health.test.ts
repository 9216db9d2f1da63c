/** Watches of the health: anybody may have one, and nobody may take all. */
import { create } from '@bufbuild/protobuf';
import {
  type CallContext,
  HealthCheckRequestSchema,
  type HealthCheckResponse,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { createHealthBoard, type HealthBoard } from './health.ts';

function watch(
  board: HealthBoard,
  peerAddress: string,
  signal: AbortSignal,
): AsyncIterator<HealthCheckResponse> {
  const context: CallContext = {
    method: '/grpc.health.v1.Health/Watch',
    header: () => undefined,
    peerAddress,
    peerCertificate: () => undefined,
    signal,
    deadlineMs: Number.POSITIVE_INFINITY,
  };
  const handler = board.service.handlers['watch'];
  const request = create(HealthCheckRequestSchema) as never;
  const answers = handler?.(request, context) as AsyncIterable<HealthCheckResponse>;
  return answers[Symbol.asyncIterator]();
}

test('an address has few watches of the health, and those that end give room back', async () => {
  const board = createHealthBoard([]);
  const over = new AbortController();
  const watches: AsyncIterator<HealthCheckResponse>[] = [];
  const begin = async (address: string) => {
    const answers = watch(board, address, over.signal);
    await answers.next();
    watches.push(answers);
  };
  for (let port = 0; port < 16; port += 1) await begin(`192.0.2.1:${port}`);
  const refused = { error: { reason: 'TOO_MANY_WATCHES', retryAfterMs: 30_000 } };
  await expect(begin('192.0.2.1:99')).rejects.toMatchObject(refused);
  for (let host = 16; host < 512; host += 1) await begin(`198.51.100.${host}:1`);
  await expect(begin('203.0.113.1:1')).rejects.toMatchObject(refused);
  over.abort();
  for (const each of watches) await each.return?.();
  await expect(watch(board, '192.0.2.1:1', new AbortController().signal).next()).resolves.toEqual(
    expect.objectContaining({ done: false }),
  );
});
