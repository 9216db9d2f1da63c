/**
 * Raspberry Pi firmware: its boot ROM or its EEPROM. It says of itself that it is PXE firmware of a
 * BIOS machine, so only its MAC tells what it is. It loads its files by TFTP under names of its
 * own, and reads no boot file name.
 */
import { ByteWriter } from '@rackwright/bytes';
import type { Mac } from './mac.ts';
import { subOptions } from './option/sub-options.ts';
import { dhcpOption, writeOption } from './options.ts';

/** The prefix of the boards that boot by their ROM, up to the Raspberry Pi 3. */
const olderBoards = 'b8:27:eb';
/** The prefixes (OUI) of Raspberry Pis. */
const prefixes: ReadonlySet<string> = new Set([
  olderBoards,
  'dc:a6:32',
  'e4:5f:01',
  '28:cd:c1',
  'd8:3a:dd',
  '2c:cf:67',
]);

/** Whether the MAC is that of a Raspberry Pi. */
export function isRaspberryPi(mac: Mac): boolean {
  return prefixes.has(prefixOf(mac));
}

/**
 * The options that make the firmware boot from this server: newer boards take the address of the
 * TFTP server from option 66, older ones from the server identifier.
 */
export function raspberryPiOptions(
  mac: Mac,
  serverAddress: string,
): readonly (readonly [code: number, value: Uint8Array])[] {
  return [
    writeOption(dhcpOption.vendorClass, 'PXEClient'),
    writeOption(dhcpOption.tftpServerName, serverAddress),
    [dhcpOption.pxe.code, bootMenu(mac)],
  ];
}

const menu = subOptions('option 43 (Raspberry Pi)', 'withPadAndEnd');

/**
 * The menu of PXE that the firmware looks for, with the sub-options in the order that its
 * documentation shows. The boot ROM of the Raspberry Pi 3 counts the text three characters short.
 */
function bootMenu(mac: Mac): Uint8Array {
  const text = `Raspberry Pi Boot${prefixOf(mac) === olderBoards ? '   ' : ''}`;
  const sub = (): ByteWriter => new ByteWriter(255);
  return menu.encode([
    [6, sub().uint8(3).finish()],
    [10, sub().uint8(0).text('PXE').finish()],
    [9, sub().uint16(0).uint8(text.length).text(text).finish()],
  ]);
}

function prefixOf(mac: Mac): string {
  return mac.slice(0, 8);
}
