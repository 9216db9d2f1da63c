/** The site's own DHCP server: it gives addresses and knows nothing of us. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LAB_ADDRESS, type LabNetwork } from './netns.ts';
import { type Started, startProcess } from './processes.ts';
import type { Undo } from './undo.ts';

/** What the server says about booting, for the tests of the ramdisk alone. Absent: nothing. */
export interface DirectBoot {
  /** What iPXE is to load: an http:// address of a script. */
  readonly scriptUrl: string;
}

/** What it says of booting beside its leases. */
export interface SiteWords {
  /** The address that it names with each lease (`siaddr`, RFC 2131 §2), without a file's name. */
  readonly nextServer?: string;
  /** It gives IPv6 addresses as well, and these URLs with them (RFC 5970). */
  readonly boot6?: { readonly loaderUrl: string; readonly scriptUrl: string };
}

/**
 * For option 16 (vendor class). UEFI takes a URL for its own only where "HTTPClient" stands behind
 * six bytes, enterprise number and length; dnsmasq writes a length of its own into the first two.
 */
const HTTP_CLIENT = '0000HTTPClient';

/** As OPERATING.md says: the same two URLs for every host. */
function dhcp6Lines({ loaderUrl, scriptUrl }: NonNullable<SiteWords['boot6']>): string[] {
  return [
    'dhcp-range=fd77::100,fd77::1ff,64,1h',
    'dhcp-userclass=set:ipxe,iPXE',
    `dhcp-option-force=tag:!ipxe,option6:16,${HTTP_CLIENT}`,
    `dhcp-option=tag:!ipxe,option6:bootfile-url,${loaderUrl}`,
    `dhcp-option=tag:ipxe,option6:bootfile-url,${scriptUrl}`,
  ];
}

/**
 * Starts dnsmasq in the site's namespace.
 */
export function startDhcpServer(
  undo: Undo,
  network: LabNetwork,
  folder: string,
  boot?: DirectBoot,
  { nextServer, boot6 }: SiteWords = {},
): Started {
  const lines = [
    'port=0',
    'bind-interfaces',
    'interface=site0',
    'no-ping', // three seconds of probing would make a firmware give up
    'log-dhcp',
    `dhcp-range=${LAB_ADDRESS.leasesFrom},${LAB_ADDRESS.leasesTo},255.255.255.0,1h`,
    `dhcp-leasefile=${join(folder, 'dnsmasq.leases')}`,
    `pid-file=${join(folder, 'dnsmasq.pid')}`,
    'user=root',
    ...(boot === undefined ? [] : [`dhcp-boot=${boot.scriptUrl}`]),
    ...(boot6 === undefined ? [] : dhcp6Lines(boot6)),
    ...(nextServer === undefined ? [] : [`dhcp-boot=,,${nextServer}`]),
  ];
  const config = join(folder, 'dnsmasq.conf');
  writeFileSync(config, `${lines.join('\n')}\n`);
  return startProcess(undo, {
    name: 'dnsmasq',
    file: 'dnsmasq',
    args: ['--keep-in-foreground', `--conf-file=${config}`, '--log-facility=-'],
    logFile: join(folder, 'dnsmasq.log'),
    namespace: network.siteNamespace,
  });
}
