/**
 * Confirmation before a loss of data.
 *
 * Invariant: no request is sent that a person has not agreed to. Where nobody can be asked, only
 * --yes agrees.
 */

import type { CommandIo } from '../../command-io.ts';
import { DeclinedError, UsageError } from '../../failure.ts';
import { resourceName } from '../../flags.ts';
import { type Destruction, lossLines } from '../../output/loss.ts';
import { clean } from '../../output/text.ts';
import type { HostClient } from '../host/client.ts';

/** `--yes` and `--reason` of a command that destroys something. */
export interface DestructionFlags {
  readonly yes: boolean;
  readonly reason: string;
}

/** Shows the loss and asks. Throws `UsageError` or `Declined` unless a person agrees. */
export async function agreeToDestroy(
  io: CommandIo,
  { yes }: Pick<DestructionFlags, 'yes'>,
  hosts: HostClient,
  id: string,
  destruction: Destruction,
): Promise<void> {
  if (yes) return;
  const host = await hosts.getHost({ name: resourceName('hosts', id) });
  const lines = lossLines(destruction, host, io.clock);
  for (const line of lines.slice(0, -1)) io.err.write(`${clean(line)}\n`);
  await agree(io, lines.at(-1) ?? '');
}

/**
 * Asks for the number of hosts, which is not typed by habit. Throws `UsageError` where nobody can
 * be asked, `Declined` for anything else.
 */
export async function agreeToNumber(
  io: CommandIo,
  question: string,
  number: number,
): Promise<void> {
  const answer = await io.ask?.(question);
  if (answer === undefined) throw new UsageError(nobody);
  if (answer.trim() !== String(number)) throw new DeclinedError('nothing was asked of any host');
}

const nobody = 'nobody can be asked here; give --yes';

/** Asks one question. Throws `UsageError` where nobody can be asked, `Declined` without a yes. */
export async function agree(io: CommandIo, question: string): Promise<void> {
  const answer = await io.ask?.(question);
  if (answer === undefined) throw new UsageError(nobody);
  if (!/^y(es)?$/i.test(answer.trim())) throw new DeclinedError('nothing was asked of any host');
}
