/** rackwright rack join-token, revoke: the agent of a rack. */
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { type JoinToken, JoinTokenSchema } from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext } from '../../command-io.ts';
import {
  connectionFlags,
  idArgument,
  outputFlag,
  resourceName,
  type SharedFlags,
} from '../../flags.ts';
import { isForPrograms, printAs, printLines } from '../../output/show.ts';
import { readSettings } from '../../settings.ts';
import { type BrakeFlags, brakeFlags } from '../frame/limits.ts';
import { showRack, withRacks } from './client.ts';

const shared = { ...connectionFlags, ...outputFlag };
const aliases = { o: 'output' } as const;
const positional = idArgument('rack', 'Id of the rack');
const loopback = /^(localhost|127\.|\[?::1\]?)/;

export const joinToken = buildCommand({
  docs: {
    brief: 'Make a join token for the rack’s agent: one use, 15 minutes',
    fullDescription:
      'The token alone goes to standard output; what to do with it, to standard error. A rack ' +
      'that has an agent gets a token only with --replace: whoever uses it takes that agent’s ' +
      'place, and the old one, should it still run, is out at once and for good.',
  },
  parameters: {
    flags: {
      ...shared,
      replace: { kind: 'boolean', default: false, brief: 'Let it replace the agent that is there' },
    },
    positional,
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags & { replace: boolean }, id: string) {
    const rack = resourceName('racks', id);
    const made = await withRacks(this.io, flags, (racks) =>
      racks.createJoinToken({ rack, replaceAgent: flags.replace }),
    );
    if (isForPrograms(flags.output)) {
      printAs(this.io, flags.output, JoinTokenSchema, made);
      return;
    }
    printLines(this.io, [made.token]);
    const { server } = await readSettings(this.io, flags);
    this.io.err.write(`${advice(rack, made, server).join('\n')}\n`);
  },
});

/** The person's next action, and what the agent will check. */
function advice(rack: string, made: JoinToken, server: string): string[] {
  const until = made.expireTime && timestampDate(made.expireTime).toISOString();
  // A control plane without a configured name of its own knows itself as localhost only.
  const isUnknown = made.enrolmentAddress === '' || loopback.test(made.enrolmentAddress);
  const address = isUnknown ? server : made.enrolmentAddress;
  return [
    `For one agent of ${rack}, until ${until}. It is shown only now.`,
    ...(made.replacesKeySha256 === ''
      ? []
      : [`It replaces the agent with the key ${made.replacesKeySha256}.`]),
    `Certificate authority (SHA-256): ${made.caSha256}`,
    `On the rack box: rackwright-agent join ${address} -    (paste the token, Enter, Ctrl-D)`,
  ];
}

export const revokeAgent = buildCommand({
  docs: {
    brief: 'Take the key of a rack’s agent away, for good',
    fullDescription:
      'Its streams end within seconds, on every replica, and it gets no certificate any more. ' +
      'Steps that run in hosts at that time run to their end; their results are lost. Another ' +
      'agent, or this one with a new key, joins with a token of its own.',
  },
  parameters: { flags: { ...shared, ...brakeFlags }, positional, aliases },
  async func(this: CliContext, flags: SharedFlags & BrakeFlags, id: string) {
    const name = resourceName('racks', id);
    const { reason, requestId } = flags;
    const rack = await withRacks(this.io, flags, (racks) =>
      racks.revokeAgent({ name, reason, requestId }),
    );
    showRack(this.io, flags, rack);
  },
});
