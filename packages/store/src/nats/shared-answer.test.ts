import { expect, test } from 'vitest';
import { SharedAnswer } from './shared-answer.ts';

test('callers during a question share the next one, which is asked after it', async () => {
  const asked: PromiseWithResolvers<string>[] = [];
  const shared = new SharedAnswer(() => {
    const answer = Promise.withResolvers<string>();
    asked.push(answer);
    return answer.promise;
  });
  const early = shared.get();
  await expect.poll(() => asked.length).toBe(1);
  const late = [shared.get(), shared.get(), shared.get()];
  await new Promise(setImmediate);
  expect(asked).toHaveLength(1);
  asked[0]?.reject(new Error('nobody answers'));
  await expect(early).rejects.toThrow('nobody answers');
  await expect.poll(() => asked.length).toBe(2);
  asked[1]?.resolve('now');
  expect(await Promise.all(late)).toEqual(['now', 'now', 'now']);
  expect(asked).toHaveLength(2);
});
