/** rackwright host provision, host reimage */
import type { DeploySpec } from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import { resourceName, type SharedFlags } from '../../flags.ts';
import type { CliContext } from '../../world.ts';
import { agreeToDestroy, type DestructionFlags, destructionFlags } from '../frame/confirm.ts';
import {
  type HostClient,
  hostAliases,
  hostArgument,
  hostFlags,
  requestFlag,
  showHost,
  withHosts,
} from './client.ts';
import { type DeployFlags, deployFlags, deployFrom } from './deploy-spec.ts';

/** A host, and the image that comes onto it. */
export const imageArguments = {
  kind: 'tuple',
  parameters: [
    ...hostArgument.parameters,
    {
      parse: String,
      brief: 'OCI reference by tag or digest, or https://HOST/PATH#sha256=HEX',
      placeholder: 'image',
    },
  ],
} as const;

export const provisionHost = imageCommand(
  'provision',
  'Write an image onto an available host, and let it prove that it runs',
  'The image comes onto the disk that the host’s hints mean (host update --root-disk), or the ' +
    'only one that can be written. All that is on it is lost; `host plan provision` shows it ' +
    'before. A tag is looked up once, now.',
  (hosts, call) => hosts.provisionHost(call),
);

export const reimageHost = imageCommand(
  'reimage',
  'Write another image onto a provisioned host that you claim',
  'Its root disk is written over. Without any flag of the deployment it is deployed as it was ' +
    'before; with one, only as the flags say.',
  (hosts, call) => hosts.reimageHost(call),
);

interface ImageCall {
  readonly name: string;
  readonly image: string;
  readonly requestId: string;
  readonly reason: string;
  readonly deploy?: DeploySpec;
}

function imageCommand(
  kind: 'provision' | 'reimage',
  brief: string,
  fullDescription: string,
  ask: (hosts: HostClient, call: ImageCall) => ReturnType<HostClient['provisionHost']>,
) {
  return buildCommand({
    docs: { brief, fullDescription: `${brief}. ${fullDescription}` },
    parameters: {
      flags: { ...hostFlags, ...deployFlags, ...requestFlag, ...destructionFlags },
      positional: imageArguments,
      aliases: hostAliases,
    },
    async func(
      this: CliContext,
      flags: SharedFlags & DeployFlags & DestructionFlags & { requestId: string },
      id: string,
      image: string,
    ) {
      const { world } = this;
      const { requestId, reason } = flags;
      const { deploy, paths } = await deployFrom(world, flags);
      const call: ImageCall = {
        ...{ name: resourceName('hosts', id), image, requestId, reason },
        ...(paths.length === 0 ? {} : { deploy }),
      };
      const what = { kind, image, netboot: deploy.netboot };
      const host = await withHosts(world, flags, async (hosts) => {
        await agreeToDestroy(world, flags, hosts, call.name, what);
        return ask(hosts, call);
      });
      showHost(world, flags, host);
    },
  });
}
