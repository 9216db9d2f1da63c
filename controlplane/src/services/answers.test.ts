/**
 * Every (state × run × request) through the API of a control plane on loopback: a move, or a
 * refusal that says what to do instead and changes nothing. `answers.txt` has the results.
 */
import { ApiFailure, HostState, RunKind } from '@rackwright/messages';
import { type StateStore, storeKey } from '@rackwright/store';
import { expect, test } from 'vitest';
import {
  asks,
  offerAgentStep,
  preparedHost,
  putHost,
  type Situation,
  situations,
} from './prepared.fixture.ts';
import { addSurroundings, type Fixture, settled, startFixture } from './rpc.fixture.ts';

/** Calls at once. */
const widthMax = 32;

interface Combination {
  readonly id: string;
  readonly situation: Situation;
  readonly ask: string;
}

const combinations: readonly Combination[] = situations
  .flatMap((situation) => Object.keys(asks).map((ask) => ({ situation, ask })))
  .map((each, index) => ({ id: `h${index}`, ...each }));

const nameIn = (names: Readonly<Record<string, number>>, value: number | undefined) =>
  Object.keys(names)
    .find((name) => names[name] === value)
    ?.toLowerCase() ?? 'none';

/** A text without the parts that vary with host and day. */
function general(text: string, id: string): string {
  return text
    .replaceAll(`hosts/${id}: `, '')
    .replaceAll(`hosts/${id}`, 'HOST')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME');
}

async function inGroups<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += widthMax) {
    results.push(...(await Promise.all(items.slice(at, at + widthMax).map(work))));
  }
  return results;
}

/** The result of one call: "+", or the refusal. Fails for another error, or if anything changed. */
async function answer(
  { id, ask }: Combination,
  hosts: Fixture['hosts'],
  store: StateStore,
): Promise<string> {
  const key = storeKey('hosts', id);
  const before = await store.get(key);
  const failure = await asks[ask]?.(hosts, `hosts/${id}`, '').then(
    () => undefined,
    (error: unknown) => error,
  );
  if (failure === undefined) return '+';
  if (!(failure instanceof ApiFailure)) throw new Error(`${ask} broke`, { cause: failure });
  const { kind, message } = failure.error;
  expect(['failedPrecondition', 'invalidArgument'], `${ask}: ${message}`).toContain(kind);
  expect.soft(message, 'says what to do instead').toMatch(/; \S{2,}/);
  expect(await store.get(key), `${ask} was refused and changed the host`).toEqual(before);
  return general(message, id);
}

/** One line for each situation, with a number for each text; the texts below. */
function written(answers: readonly string[]): string {
  const texts = [...new Set(answers)].filter((each) => each !== '+').sort();
  const row = (situation: Situation) =>
    combinations
      .map((each, index) => ({ ...each, answer: answers[index] ?? '' }))
      .filter((each) => each.situation === situation)
      .map((each) => `${each.ask} ${each.answer === '+' ? '+' : texts.indexOf(each.answer) + 1}`)
      .join(', ');
  const rows = situations.map((situation) => {
    const { state, kind } = situation;
    return `${nameIn(HostState, state)}, ${nameIn(RunKind, kind)}:\n  ${row(situation)}`;
  });
  const legend = texts.map((text, index) => `${index + 1}: ${text}`);
  return `${[...rows, '', ...legend].join('\n')}\n`;
}

test('every request in every state and run is accepted, or refused with a remedy', async () => {
  const fixture = await startFixture();
  const { store, hosts } = fixture;
  await addSurroundings(fixture);
  await offerAgentStep(store);
  for (const [index, { situation }] of combinations.entries()) {
    await putHost(store, preparedHost(index, situation));
  }
  // The first pass over a host may write it, which is not the request's doing.
  await settled(store);
  const answers = await inGroups(combinations, (each) => answer(each, hosts, store));
  await expect(written(answers)).toMatchFileSnapshot('answers.txt');
  await fixture.stop();
});
