/** rackwright version: this command's, and the control plane's beside it. */
import { errorText } from '@rackwright/platform';
import { buildCommand } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { connectionFlags } from '../../flags.ts';
import type { ConnectionFlags } from '../../settings.ts';
import { version } from '../../version.ts';

/**
 * How long it waits for the control plane, milliseconds: the server's version is secondary here.
 */
const patienceMs = 3_000;

export const showVersion = buildCommand({
  docs: { brief: briefs.version },
  parameters: { flags: connectionFlags },
  async func(this: CliContext, flags: ConnectionFlags) {
    const { io } = this;
    io.out.write(`${['rackwright', version].join(' ')}\n`);
    io.out.write(`control plane ${await serverVersion(io, flags)}\n`);
  },
});

/** Never throws: the reason for a failure takes the version's place. */
async function serverVersion(io: CommandIo, flags: ConnectionFlags): Promise<string> {
  try {
    const [{ AccessService }, { callsOf }] = await Promise.all([
      import('@rackwright/messages'),
      import('../frame/calls.ts'),
    ]);
    const deadlineMs = io.clock.nowMs() + patienceMs;
    const caller = await callsOf(AccessService)(io, flags, (access) =>
      access.whoAmI({}, { deadlineMs }),
    );
    return caller.serverVersion || 'is older than this command: it does not tell its version';
  } catch (error) {
    return `is not known: ${errorText(error)}`;
  }
}
