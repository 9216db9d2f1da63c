/** Every call is counted once, by the code that its caller gets. */
import { ApiFailure, type BoundService, type CallContext, HostService } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { countCalls } from './counted-calls.ts';

function contextOf(signal: AbortSignal): CallContext {
  const nothing = () => undefined;
  const none = { header: nothing, method: '', peerAddress: '', peerCertificate: nothing };
  return { ...none, signal, deadlineMs: Infinity };
}

function counting(handlers: BoundService['handlers']) {
  const counted: string[] = [];
  const [service] = countCalls([{ service: HostService, handlers }], (method, code) =>
    counted.push(`${method} ${code}`),
  );
  const going = new AbortController();
  const call = (name: string) => service?.handlers[name]?.({} as never, contextOf(going.signal));
  const stream = (name: string) => (call(name) as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  return { counted, going, call, stream };
}

const missing = () => new ApiFailure({ kind: 'notFound', message: 'no', reason: 'NOT_FOUND' });

test('a call is counted by its code, and its answer or error is the same', async () => {
  const failures: (Error | undefined)[] = [undefined, missing(), new Error('a fault of ours')];
  const { counted, call } = counting({
    getHost: async () => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      return 'the answer';
    },
  });
  expect(await call('getHost')).toBe('the answer');
  await expect(call('getHost')).rejects.toThrow('no');
  await expect(call('getHost')).rejects.toThrow('a fault of ours');
  const codes = ['OK', 'NOT_FOUND', 'INTERNAL'];
  expect(counted).toEqual(codes.map((code) => `HostService.GetHost ${code}`));
});

test('a call whose caller has gone is cancelled, whatever came of it', async () => {
  const { counted, going, call } = counting({
    getHost: async () => {
      going.abort();
      throw missing();
    },
  });
  await expect(call('getHost')).rejects.toThrow();
  expect(counted).toEqual(['HostService.GetHost CANCELLED']);
});

test('a stream is counted when it is over, once', async () => {
  async function* watch() {
    yield 1;
    yield 2;
  }
  const { counted, stream } = counting({ watchHosts: watch });
  const whole = stream('watchHosts');
  await whole.next();
  await whole.next();
  expect(counted).toEqual([]);
  expect(await whole.next()).toMatchObject({ done: true });
  expect(counted).toEqual(['HostService.WatchHosts OK']);
  const left = stream('watchHosts');
  await left.next();
  await left.return?.();
  expect(counted.slice(1)).toEqual(['HostService.WatchHosts CANCELLED']);
});

test('a stream that fails is counted by why; as cancelled if its caller went', async () => {
  async function* watch() {
    yield 1;
    throw missing();
  }
  const { counted, going, stream } = counting({ watchHosts: watch });
  const failing = stream('watchHosts');
  await failing.next();
  await expect(failing.next()).rejects.toThrow('no');
  const gone = stream('watchHosts');
  await gone.next();
  going.abort();
  await expect(gone.next()).rejects.toThrow('no');
  const ends = ['NOT_FOUND', 'CANCELLED'];
  expect(counted).toEqual(ends.map((code) => `HostService.WatchHosts ${code}`));
});
