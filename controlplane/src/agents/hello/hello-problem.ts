/** What is wrong with a Hello, whoever brings it. Pure. */
import type { agent } from '@rackwright/messages';
import type { AgentLimits } from '../base/limits.ts';

/** Names and numbers that an agent makes up itself, in characters. */
const idCharsMax = 128;
const kindsMax = 64;
/** As the wire's words say. */
const earlierLivesMax = 32;
const stepsMax = 1_024;

/** Undefined: it can be taken in. */
export function helloProblem(
  hello: agent.Hello,
  { helloEntriesMax }: Pick<AgentLimits, 'helloEntriesMax'>,
): string | undefined {
  const { journal, incarnation, operationKinds } = hello;
  if (journal === undefined || journal.id === '') {
    return 'Hello must name its journal and generation';
  }
  const counts: readonly [string, number, number][] = [
    ['journal.id', journal.id.length, idCharsMax],
    ['journal.earlier_lives', journal.earlierLives.length, earlierLivesMax],
    ['incarnation', incarnation.length, idCharsMax],
    ['operation_kinds', operationKinds.length, kindsMax],
    ['operations', hello.operations.length, helloEntriesMax],
    ['runners', hello.runners.length, helloEntriesMax],
    ['grants', hello.grants.length, helloEntriesMax],
    ['steps', hello.steps.length, stepsMax],
    ['store_refused', hello.storeRefused.length, wordsCharsMax],
  ];
  const over = counts.find(([, has, most]) => has > most);
  if (over === undefined) return undefined;
  const [field, has, most] = over;
  return `Hello has ${has} of ${field}, at most ${most} are taken in`;
}

const wordsCharsMax = 10_000;
