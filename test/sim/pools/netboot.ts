/**
 * How a machine without an operating system of its own gets one from the rack's agent: what the
 * script names, and what stands in its first-boot data.
 */
import type { HostUid } from '@rackwright/messages';
import type { DiskImage } from '../drives.ts';
import type { LiveAgent } from '../part-view.ts';

const root = 'http://agent.sim';

/** What it is to run; undefined: its agent has it not yet, or nothing tells where to call. */
export function netbootedImage({ core }: LiveAgent, hostUid: HostUid): DiskImage | undefined {
  const { deploys } = core;
  const boot = deploys.netboot(hostUid);
  if (boot.kind === 'waiting') return undefined;
  const [, id = '', token = ''] = /^\/seed\/([^/]+)\/([^/]+)\/$/.exec(boot.seedPath ?? '') ?? [];
  const read = (name: string): string => deploys.seedFile(id, token, name, root) || '{}';
  const meta = JSON.parse(read('meta-data')) as { 'instance-id'?: string };
  const vendor = JSON.parse(read('vendor-data').replace(/^#.*\n/, '')) as {
    phone_home?: { url: string };
  };
  const phoneHome = vendor.phone_home?.url ?? '';
  const digest = `sha256:${boot.kernel}`;
  return { digest, whole: true, deployment: meta['instance-id'] ?? '', phoneHome };
}
