/** rackwright host delete, cancel-delete, release-hold */
import { DeletionMode, HostState } from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import { requestFlag, resourceName } from '../../flags.ts';
import { stateText } from '../../output/host.ts';
import { printLines } from '../../output/show.ts';
import type { CliContext } from '../../world.ts';
import { agreeToDestroy, type DestructionFlags, destructionFlags } from '../frame/confirm.ts';
import {
  hostAliases,
  hostArgument,
  hostFlags,
  type ReasonFlags,
  reasonedCommand,
  reasonFlag,
  showHost,
  withHosts,
} from './client.ts';

const aliases = hostAliases;

export const deleteHost = buildCommand({
  docs: {
    brief: 'Ask for a host to be deleted; refused while it is busy',
    fullDescription:
      'Ask for a host to be deleted; refused while it is busy, forced or not.\n\n' +
      'A host that runs an image is released and erased, then it is switched off, then the ' +
      'agent forgets it; what fails is tried again until it succeeds. With --force agent and ' +
      'BMC are asked once each, whatever they answer: the record goes, and what may still be ' +
      'is written down (rackwright abandoned list).',
  },
  parameters: {
    flags: {
      ...hostFlags,
      ...destructionFlags,
      ...requestFlag,
      force: {
        kind: 'boolean',
        default: false,
        brief: 'Remove it whatever agent and BMC say; data and power may be left as they are',
      },
    },
    positional: hostArgument,
    aliases,
  },
  async func(
    this: CliContext,
    flags: ReasonFlags & DestructionFlags & { force: boolean },
    id: string,
  ) {
    const name = resourceName('hosts', id);
    const { reason, requestId } = flags;
    const mode = flags.force ? DeletionMode.FORCE : DeletionMode.NORMAL;
    const { world } = this;
    const what = { kind: 'delete', force: flags.force } as const;
    const host = await withHosts(world, flags, async (hosts) => {
      await agreeToDestroy(world, flags, hosts, name, what);
      return hosts.deleteHost({ name, reason, requestId, mode });
    });
    if (flags.output === 'json') {
      showHost(this.world, flags, host);
      return;
    }
    const gone = host.status?.state === HostState.GONE;
    printLines(this.world, [`${name} ${gone ? 'removed' : stateText(host)}`]);
    if (gone && flags.force) {
      this.world.err.write(`What it may have left: rackwright abandoned get ${host.uid}\n`);
    }
  },
});

export const cancelDelete = reasonedCommand(
  { brief: 'Take a deletion back, until the removal has begun' },
  (hosts, call) => hosts.cancelHostDeletion(call),
);

export const releaseHold = buildCommand({
  docs: { brief: 'Lift a hold once its reason has been seen to' },
  parameters: {
    flags: {
      ...hostFlags,
      ...reasonFlag,
      ...requestFlag,
      hold: {
        kind: 'parsed',
        parse: String,
        default: '',
        brief: 'The hold’s reason, or fencePending; without, all',
      },
      physicallyDisconnected: {
        kind: 'boolean',
        default: false,
        brief: 'For fencePending: the machine removed by force can reach nothing any more',
      },
    },
    positional: hostArgument,
    aliases,
  },
  async func(
    this: CliContext,
    flags: ReasonFlags & { hold: string; physicallyDisconnected: boolean },
    id: string,
  ) {
    const name = resourceName('hosts', id);
    const { reason, hold, requestId, physicallyDisconnected } = flags;
    const host = await withHosts(this.world, flags, (hosts) =>
      hosts.releaseHold({ name, hold, reason, requestId, physicallyDisconnected }),
    );
    showHost(this.world, flags, host);
  },
});
