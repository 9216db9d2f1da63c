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

/**
 * Starts dnsmasq in the site's namespace. `nextServer`: the address that it names beside each lease
 * (`siaddr`, RFC 2131 §2), without the name of a file.
 */
export function startDhcpServer(
  undo: Undo,
  network: LabNetwork,
  folder: string,
  boot?: DirectBoot,
  nextServer?: string,
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
