/** rackwright host provision, host reimage */
import type { DeploySpec } from '@rackwright/messages';
import { type HostClient, hostArgument } from './client.ts';
import { type DeployFlags, deployFlags, deployFrom } from './deploy-spec.ts';
import { hostVerb, type VerbCall } from './verb.ts';

const imageArgument = {
  brief: 'OCI reference by tag or digest, or https://HOST/PATH#sha256=HEX',
  placeholder: 'image',
} as const;

/** A host, and the image to deploy. */
export const imageArguments = {
  kind: 'tuple',
  parameters: [...hostArgument.parameters, { ...imageArgument, parse: String }],
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

function imageCommand(
  kind: 'provision' | 'reimage',
  brief: string,
  fullDescription: string,
  ask: (hosts: HostClient, call: VerbCall & ImageCall) => ReturnType<HostClient['getHost']>,
) {
  return hostVerb<DeployFlags>({
    word: kind,
    docs: { brief, fullDescription: `${brief}. ${fullDescription}` },
    flags: deployFlags,
    hasReason: true,
    waitsFor: 'run',
    second: imageArgument,
    prepare: async (io, flags, image) => {
      const { deploy, paths } = await deployFrom(io, flags);
      const request = { image, ...(paths.length === 0 ? {} : { deploy }) };
      return {
        loss: { kind, image, netboot: deploy.netboot },
        ask: (hosts, call) => ask(hosts, { ...call, ...request }),
      };
    },
  });
}

interface ImageCall {
  readonly image: string;
  readonly deploy?: DeploySpec;
}
