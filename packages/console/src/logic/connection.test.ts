/** The console knows whether its data is live, and since when it is not. */
import { expect, test } from 'vitest';
import { type ConnectionState, connectionAfter, pausesMs } from './connection.ts';

const after = (
  before: ConnectionState,
  ...events: [Parameters<typeof connectionAfter>[1], number][]
) => events.reduce((state, [event, nowMs]) => connectionAfter(state, event, nowMs), before);
const opening: ConnectionState = { kind: 'opening' };

test('data is stale since it was heard last, however long the failure took to be noticed', () => {
  const lost = after(opening, ['heard', 1_000], ['heard', 5_000], ['failed', 17_000]);
  expect(lost).toEqual({ kind: 'lost', heardMs: 5_000, attempts: 1, retryAtMs: 17_500 });
  const longer = after(lost, ['failed', 20_000], ['failed', 30_000]);
  expect(longer).toMatchObject({ kind: 'lost', heardMs: 5_000 });
});

test('the attempts never end, and their pauses grow to a limit', () => {
  let state = after(opening, ['heard', 0]);
  const pauses = Array.from({ length: 8 }, () => {
    state = connectionAfter(state, 'failed', 100_000);
    return state.kind === 'lost' ? state.retryAtMs - 100_000 : undefined;
  });
  expect(pauses).toEqual([...pausesMs, 8_000, 8_000, 8_000]);
});

test('a message makes the connection live; the next failure begins with the shortest pause', () => {
  const back = after(opening, ['failed', 0], ['failed', 500], ['heard', 2_000]);
  expect(back).toEqual({ kind: 'live', heardMs: 2_000 });
  expect(after(back, ['failed', 3_000])).toMatchObject({ attempts: 1, retryAtMs: 3_500 });
});

test('a control plane that was never heard leaves nothing that could be stale', () => {
  const lost = after(opening, ['failed', 100]);
  expect(lost).toMatchObject({ kind: 'lost', heardMs: undefined });
});

test('a page that is not seen rests, and opens again when it is', () => {
  const resting = after(opening, ['heard', 5], ['hidden', 60_000]);
  expect(resting).toEqual({ kind: 'resting', heardMs: 5 });
  expect(after(resting, ['shown', 90_000])).toEqual(opening);
  expect(after(opening, ['heard', 5], ['shown', 9])).toEqual({ kind: 'live', heardMs: 5 });
});
