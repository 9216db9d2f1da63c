/** rackwright host boots: the last boots into the runner, step by step. */
import { type BootTrace, bootLines, bootText } from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext } from '../../command-io.ts';
import { resourceName, type SharedFlags } from '../../flags.ts';
import { isForPrograms, printLines } from '../../output/show.ts';
import { instant } from '../../output/time.ts';
import { hostAliases as aliases, hostArgument, hostFlags, showHost, withHosts } from './client.ts';

export const hostBoots = buildCommand({
  docs: {
    brief: 'Show the last boot over the network, and the last that failed, step by step',
    fullDescription:
      'As the agent of the rack saw them: when each step came, how often, and how much was sent. ' +
      'The last line of a boot that failed names the step that never came. Neighbours on the ' +
      'provisioning network can forge it. Programs read status.boots of the host.',
  },
  parameters: { flags: hostFlags, positional: hostArgument, aliases },
  async func(this: CliContext, flags: SharedFlags, id: string) {
    const { io } = this;
    const name = resourceName('hosts', id);
    const host = await withHosts(io, flags, (hosts) => hosts.getHost({ name }));
    if (isForPrograms(flags.output)) return showHost(io, flags, host);
    const boots = host.status?.boots ?? [];
    if (boots.length === 0) printLines(io, [`no boot of ${name} into the runner is known`]);
    for (const boot of boots) printLines(io, linesOf(boot));
  },
});

function linesOf(boot: BootTrace): string[] {
  const mac = boot.mac === '' ? '' : ` from ${boot.mac}`;
  return [`${instant(boot.startTime)}${mac}: ${bootText(boot)}`, ...bootLines(boot), ''];
}
