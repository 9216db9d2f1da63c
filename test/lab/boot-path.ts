/**
 * By which way a machine has come up, judged from outside: packets on the wire and what the giver
 * of addresses wrote down.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { hasVirtualDrive, isSecure, type LabFirmware, speaksIpv6 } from './firmware.ts';
import { runProgram } from './processes.ts';
import type { LabMachine } from './qemu.ts';
import type { Site } from './site.ts';

const TABLE = 'inet rackwright-lab';
/** Opcodes of RFC 1350 are the first two bytes after the UDP header. */
const OPCODE_DATA = 3;
const OPCODE_ACKNOWLEDGEMENT = 4;
/** No well-known port: the ends of a TFTP transfer. DHCP and IPMI stay out. */
const TRANSFER_PORTS = '1024-65535';
/** EDK2 asks for 4 blocks at a time (RFC 7440); without windows it would be one to one. */
const BLOCKS_PER_ACKNOWLEDGEMENT_MIN = 3;

/** Begins to count the TFTP packets of this site's agent; answers how to read the counts. */
async function countTftp({ lab }: Site): Promise<() => Promise<{ data: number; acks: number }>> {
  const { namespace } = lab.network;
  const nft = (text: string): Promise<string> => runProgram('nft', text.split(' '), { namespace });
  const count = async (hook: 'input' | 'output', opcode: number): Promise<void> => {
    await nft(`add chain ${TABLE} ${hook} { type filter hook ${hook} priority 0 ; }`);
    const ports = `udp sport ${TRANSFER_PORTS} udp dport ${TRANSFER_PORTS}`;
    await nft(`add rule ${TABLE} ${hook} ${ports} @th,64,16 ${opcode} counter`);
  };
  const read = async (hook: 'input' | 'output'): Promise<number> => {
    const packets = /counter packets (\d+)/.exec(await nft(`list chain ${TABLE} ${hook}`))?.[1];
    if (packets === undefined) throw new Error(`nft shows no counter in chain ${hook}`);
    return Number(packets);
  };
  await nft(`add table ${TABLE}`);
  await count('output', OPCODE_DATA);
  await count('input', OPCODE_ACKNOWLEDGEMENT);
  return async () => ({ data: await read('output'), acks: await read('input') });
}

/** Call before the machine is switched on; call what it answers once the machine has booted. */
export async function watchBootPath(site: Site, machine: LabMachine): Promise<() => Promise<void>> {
  const readCounts = await countTftp(site);
  return async () => {
    checkAddress(site, machine);
    const { data, acks } = await readCounts();
    checkLoader(site, machine, data, acks);
  };
}

/** The address came from the one who is to give it in this mode. */
function checkAddress({ lab, findings }: Site, { mac }: LabMachine): void {
  const ofAgent = readOrEmpty(join(lab.folder, 'agent/dhcp-leases')).includes(mac);
  const ofSite = readOrEmpty(join(lab.folder, 'dnsmasq.leases')).includes(mac);
  const { dhcp } = lab.boot;
  const detail = `agent: ${ofAgent}, site: ${ofSite}`;
  if (dhcp !== 'reservation') {
    findings.check("the address is from the site's own server", ofSite && !ofAgent, detail);
  } else findings.check('the address is from the agent', ofAgent && !ofSite, detail);
}

/** The firmware that was meant loaded it, and as it should. */
function checkLoader(site: Site, machine: LabMachine, data: number, acks: number): void {
  const { lab, findings } = site;
  const { firmware } = lab.boot;
  const counts = `${data} blocks, ${acks} acknowledgements`;
  findings.say(`       TFTP: ${counts}`);
  if (isSecure(firmware)) {
    // Its GRUB asks for one block at a time.
    findings.check('the loaders came by TFTP', data > 0 && acks > 0, counts);
  } else if (firmware === 'u-boot') {
    findings.check('its script and all files came by TFTP', data > 0 && acks > 0, counts);
  } else if (firmware === 'uefi') {
    const inWindows = acks > 0 && data >= acks * BLOCKS_PER_ACKNOWLEDGEMENT_MIN;
    findings.check('the loader came by TFTP, several blocks at a time', inWindows, counts);
  } else findings.check('nothing came by TFTP', data === 0 && acks === 0, counts);
  const text = machine.console();
  const ofUefi = text.includes('BdsDxe: starting Boot');
  if (firmware === 'bios') findings.check('the BIOS booted', !ofUefi && text.includes('SeaBIOS'));
  else if (firmware === 'u-boot') {
    const hasBooted = /Rackwright: \S+ starts the runner[^]*Starting kernel/.test(text);
    findings.check('U-Boot booted the configuration of its host', !ofUefi && hasBooted);
  } else {
    const option = bootOption(firmware);
    const isStarted = new RegExp(`BdsDxe: starting Boot[0-9A-F]+ "${option}`).test(text);
    findings.check(`the firmware started "${option}"`, isStarted);
  }
  if (isSecure(firmware)) checkLockdown(site, text);
}

/** How the firmware names what it boots from: the beginning of that. */
function bootOption(firmware: Exclude<LabFirmware, 'bios' | 'u-boot'>): string {
  // EDK2's word for whatever is on USB and can be read in blocks, a drive for CDs too.
  if (hasVirtualDrive(firmware)) return 'UEFI QEMU QEMU USB HARDDRIVE';
  if (speaksIpv6(firmware)) return 'UEFI HTTPv6';
  return firmware === 'uefi-http' ? 'UEFI HTTPv4' : 'UEFI PXEv4';
}

/** What the kernel says of itself, which it does at its level "notice". */
function checkLockdown({ findings }: Site, text: string): void {
  const isLocked = text.includes('Kernel is locked down from EFI Secure Boot');
  findings.check('the kernel is locked down by Secure Boot', isLocked);
}

function readOrEmpty(path: string): string {
  return statSync(path, { throwIfNoEntry: false }) === undefined ? '' : readFileSync(path, 'utf8');
}
