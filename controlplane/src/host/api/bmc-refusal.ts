/** Why a caller gets no BMC data of a host from the agent of its rack. */
import {
  FailureType,
  failedPrecondition,
  failureWord,
  type Host,
  unavailable,
} from '@rackwright/messages';
import type { BmcReadResult, ConsoleViewResult } from '../../agents/index.ts';

/** An agent's message is bounded here, too. */
export const messageCharactersMax = 1_024;

export function notVerified({ name }: Host) {
  const command = `rackwright host verify ${name.replace('hosts/', '')}`;
  const text = `${name}: its BMC was never verified; do so first: ${command}.`;
  return failedPrecondition('BMC_NOT_VERIFIED', text);
}

export function bmcFailed(type: FailureType, message: string) {
  const failure = failureWord(type).replaceAll(/[A-Z]/g, (letter) => `_${letter}`);
  return failedPrecondition('BMC_FAILED', message, { failure: failure.toUpperCase() });
}

/** The request to the agent, for messages. */
interface RequestText {
  /** As in "cannot …". */
  readonly verb: string;
  /** As in "16 … are under way". */
  readonly many: string;
}

export function bmcRefusal(
  result: Exclude<BmcReadResult | ConsoleViewResult, { readonly kind: 'answered' | 'open' }>,
  { name, spec }: Host,
  { verb, many }: RequestText,
) {
  const rack = spec?.rack ?? '';
  switch (result.kind) {
    case 'noAgent': {
      const text = `no agent of ${rack} is connected here`;
      return unavailable('AGENT_AWAY', `${name}: ${text}; try again when it is.`);
    }
    case 'agentCannot': {
      const text = `the agent of ${rack} cannot ${verb}; upgrade it`;
      return bmcFailed(FailureType.UNSUPPORTED, `${name}: ${text}.`);
    }
    case 'noSecret':
      return bmcFailed(FailureType.CREDENTIAL_UNUSABLE, `${name}: ${result.message}.`);
    case 'tooMany': {
      const text = `${result.waiting} ${many} of ${rack} are under way`;
      return unavailable('TOO_MANY_READS', `${name}: ${text}; try again later.`);
    }
    case 'noAnswer':
      return unavailable('AGENT_AWAY', `${name}: the agent of ${rack} gave no answer; try again.`);
  }
}
