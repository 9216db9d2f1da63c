import { type BoundService, type CallContext, HostService } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { References } from '@rackwright/platform/testing';
import { openMemoryStore } from '@rackwright/store';
import { expect, test } from 'vitest';
import { guarded } from './guard.ts';
import { HostLocations } from './host-locations.ts';
import { type SignIn, trustedSignIn } from './sign-in.ts';

const locations = new HostLocations({ rows: () => [] as never });
const clock = nodeClock();
const context = { signal: new AbortController().signal } as CallContext;

/** A stream behind the guard that yields what `watchHosts` does. */
async function guardedStream(
  watchHosts: () => AsyncGenerator<object, void, undefined>,
  signIn: SignIn = trustedSignIn,
): Promise<AsyncGenerator<object, void, undefined>> {
  const store = await openMemoryStore({ random: nodeRandom() });
  const make = (): BoundService => ({ service: HostService, handlers: { watchHosts } });
  const [bound] = guarded([make], { store, signIn, locations, clock });
  return bound?.handlers['watchHosts']?.({} as never, context) as never;
}

test('a stream that is still open keeps no response that its caller has taken', async () => {
  const references = new References();
  const stream = await guardedStream(async function* () {
    for (let at = 0; ; at += 1) {
      const response = { at };
      references.observe(response);
      yield response;
    }
  });
  const take = async () => void (await stream.next());
  for (let taken = 0; taken < 20; taken += 1) await take();
  // Some of the latest may still be on their way.
  expect(await references.taken(15)).toBeGreaterThanOrEqual(15);
  await stream.return(undefined);
});

test('a stream ends with its caller’s credential, also while nothing comes', async () => {
  let end = () => {};
  const signIn: SignIn = {
    ...trustedSignIn,
    onEnd: (_, told) => {
      end = told;
      return () => undefined;
    },
  };
  const stream = await guardedStream(async function* () {
    yield { at: 0 };
    await new Promise(() => undefined);
  }, signIn);
  expect(await stream.next()).toEqual({ done: false, value: { at: 0 } });
  const waiting = stream.next();
  end();
  await expect(waiting).rejects.toMatchObject({ error: { kind: 'unauthenticated' } });
});
