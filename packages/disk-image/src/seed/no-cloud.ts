/** The documents of cloud-init's NoCloud, for a partition or to be fetched by HTTP. Pure. */
import type { Seed } from './seed.ts';

export interface NoCloudFirstBoot {
  /** cloud-init does its work once for each. */
  readonly instanceId: string;
  readonly hostName: string;
  /** Beside the two. */
  readonly metaData: Readonly<Record<string, string>>;
  readonly userData: string;
  /** Empty: as cloud-init finds it. */
  readonly networkConfig: string;
  /** The URL of the image's phone-home; undefined: none. */
  readonly phoneHomeUrl: string | undefined;
}

/** How often cloud-init calls before it gives up; it waits a few seconds between two calls. */
const callsMax = 30;

export function noCloudSeed(boot: NoCloudFirstBoot): Extract<Seed, { kind: 'noCloud' }> {
  const { instanceId, hostName, metaData, userData, networkConfig, phoneHomeUrl } = boot;
  const own = { 'instance-id': instanceId, 'local-hostname': hostName };
  return {
    kind: 'noCloud',
    // JSON is YAML.
    metaData: `${JSON.stringify({ ...metaData, ...own })}\n`,
    userData,
    ...(networkConfig === '' ? {} : { networkConfig }),
    ...(phoneHomeUrl === undefined ? {} : { vendorData: cloudConfigToCall(phoneHomeUrl) }),
  };
}

/** cloud-init's own module that reports the end of the first boot. */
export function cloudConfigToCall(url: string): string {
  const call = { url, post: ['instance_id', 'hostname', 'fqdn'], tries: callsMax };
  return `#cloud-config\n${JSON.stringify({ phone_home: call })}\n`;
}
