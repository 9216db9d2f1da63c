/** rackwright host explain, rackwright rack explain */
import { durationMs } from '@bufbuild/protobuf/wkt';
import { type Explanation, ExplanationSchema } from '@rackwright/messages';
import type { CommandIo } from '../../command-io.ts';
import type { SharedFlags } from '../../flags.ts';
import { isForPrograms, printAs, printLines } from '../../output/show.ts';
import { ago, duration } from '../../output/time.ts';

/** Prints an explanation: what, why, since when, what comes next, what to do. */
export function showExplanation(
  io: CommandIo,
  { output }: SharedFlags,
  explanation: Explanation,
): void {
  if (isForPrograms(output)) printAs(io, output, ExplanationSchema, explanation);
  else printLines(io, explanationLines(explanation, io));
}

function explanationLines(explanation: Explanation, { clock }: CommandIo): string[] {
  const { subject, headline, causes, blocker, unblock, lastEvidence, lastScreen } = explanation;
  const since = explanation.since === undefined ? '' : `, since ${ago(clock, explanation.since)}`;
  const times = [
    ...(explanation.nextAttemptTime === undefined
      ? []
      : [`  next attempt: ${ago(clock, explanation.nextAttemptTime)}`]),
    ...(explanation.deadline === undefined
      ? []
      : [`  given up: ${ago(clock, explanation.deadline)}`]),
    ...(explanation.usualDuration === undefined
      ? []
      : [`  usually takes: ${duration(durationMs(explanation.usualDuration))}`]),
  ];
  return [
    `${subject}: ${headline}`,
    ...causes.map((cause) => `  because ${cause.text}`),
    ...(blocker === '' ? [] : [`  waits for ${blocker}${since}`]),
    ...times,
    ...unblock.map((line) => `  to do: ${line}`),
    ...(lastEvidence === '' ? [] : [`  last seen: ${lastEvidence}`]),
    ...(lastScreen.length === 0 ? [] : ['  its serial console showed last:']),
    ...lastScreen.map((line) => `  | ${line}`),
  ];
}
