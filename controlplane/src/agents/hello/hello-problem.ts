/** Validation of a Hello. Pure. */
import type { agent } from '@rackwright/messages';
import type { AgentLimits } from '../base/limits.ts';

/** Names and numbers of the agent's own choice, in characters. */
const idCharsMax = 128;
const kindsMax = 64;
/** As specified in the wire format. */
const earlierLivesMax = 32;
const stepsMax = 1_024;

/** Undefined: the Hello is valid. */
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
    ['store_refused', hello.storeRefused.length, textCharsMax],
  ];
  const over = counts.find(([, has, most]) => has > most);
  if (over === undefined) return undefined;
  const [field, has, most] = over;
  return `Hello has ${has} of ${field}, at most ${most} are taken in`;
}

const textCharsMax = 10_000;
