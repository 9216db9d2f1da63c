/**
 * The boot path's pages for hosts of deployments: phone-home, network boot, and the first-boot data
 * of hosts that have no disk to read it from.
 *
 * 1. First-boot data is given only to a host with the token of its deployment.
 * 2. All of it is answered from memory; only a proof waits for our disk.
 */

import { noCloudSeed } from '@rackwright/disk-image';
import { type agent, DeployProof, FirstBootFormat, type HostUid } from '@rackwright/messages';
import { hexOf } from '@rackwright/oci';
import type { DeployPages, NetbootBoot } from '../boot/index.ts';
import { netbootArguments } from './netboot-arguments.ts';
import type { NetbootImages } from './netboot-images.ts';
import type { Proofs } from './proofs.ts';
import { readDeploymentId } from './token.ts';

export interface DeployPagesParts {
  readonly proofs: Proofs;
  readonly images: Pick<NetbootImages, 'find'>;
  /** The host's netboot, as the boot snapshot says. */
  readonly netbootOf: (hostUid: HostUid) => agent.Deployment | undefined;
}

export function makeDeployPages({ proofs, images, netbootOf }: DeployPagesParts): DeployPages {
  return {
    phoneHome: (...call) => proofs.phoneHome(...call),
    netboot: (hostUid) => {
      const deployment = netbootOf(hostUid);
      if (deployment === undefined) return { kind: 'waiting', text: 'its image is not known' };
      const found = images.find(deployment);
      if (found.kind === 'waiting') return found;
      const { kernel, initrds, kernelArguments } = found.image;
      const parsed = netbootArguments(kernelArguments);
      if (parsed.kind === 'bad') return { kind: 'waiting', text: parsed.problem };
      return {
        kind: 'ready',
        kernel: hexOf(kernel.digest),
        initrds: initrds.map(({ digest }) => hexOf(digest)),
        kernelArguments: parsed.args,
        ...(isNoCloud(deployment) ? { seedPath: proofs.seedPath(deployment.id) } : {}),
      } satisfies NetbootBoot;
    },
    seedFile: (idText, token, name, root) => {
      const id = proofs.deploymentOf(idText, token);
      if (id === undefined) return false;
      const deployment = netbootOf(readDeploymentId(id)?.hostUid ?? '');
      if (deployment?.id !== id || !isNoCloud(deployment)) return undefined;
      if (name === 'user-data') proofs.noteFirstBoot(readDeploymentId(id)?.hostUid ?? '');
      return seedFile(deployment, name, `${root}${proofs.phoneHomePath(id)}`);
    },
  };
}

/** Whether it reads its first-boot data over HTTP. */
export function isNoCloud({ deploy }: agent.Deployment): boolean {
  const format = deploy?.firstBoot?.format ?? FirstBootFormat.UNSPECIFIED;
  return format === FirstBootFormat.UNSPECIFIED || format === FirstBootFormat.NO_CLOUD;
}

function seedFile(
  { id, hostName, deploy }: agent.Deployment,
  name: string,
  url: string,
): string | undefined {
  const { userData = '', metaData = {}, networkConfig = '' } = deploy?.firstBoot ?? {};
  const phoneHomeUrl = deploy?.proof === DeployProof.POWER_ON ? undefined : url;
  const own = { instanceId: id, hostName, phoneHomeUrl };
  const seed = noCloudSeed({ ...own, userData, metaData, networkConfig });
  switch (name) {
    case 'meta-data':
      return seed.metaData;
    case 'user-data':
      return seed.userData;
    case 'vendor-data':
      return seed.vendorData ?? '';
    case 'network-config':
      return seed.networkConfig;
    default:
      return undefined;
  }
}
