/**
 * Names that identify one disk among all others, so that two hosts with the same disk are noticed.
 * Pure.
 *
 * Bad firmware gives many disks one name. A name that firmware, emulators or blank memory make up
 * counts as none, and two disks that have it are never taken for one.
 */
import type { DeviceFacts } from './facts.ts';
import { meaningfulSerial } from './identity.ts';

export interface DiskName {
  readonly kind: 'serial' | 'wwn';
  /** Upper case, without blanks around it. */
  readonly value: string;
}

/** People make up shorter serials, and give one to several disks. */
const serialCharactersMin = 5;
/** Blank controllers count from one, with zeros in front. Emulators have the other values. */
const madeUp = /^(?:[A-Z]{0,4}0+[0-9]?|QM0000[0-9]|DEADBEEF|0123456789ABCDEF)$/;

/** All trustworthy names of a disk; none where nothing tells it from others. */
export function diskNames({ serial, wwn }: Pick<DeviceFacts, 'serial' | 'wwn'>): DiskName[] {
  const names: DiskName[] = [];
  const ofSerial = meaningfulSerial(serial);
  if (ofSerial !== undefined && ofSerial.length >= serialCharactersMin && !madeUp.test(ofSerial)) {
    names.push({ kind: 'serial', value: ofSerial });
  }
  const ofWwn = meaningfulSerial(wwn)?.replace(/^(?:0X|NAA\.|EUI\.|UUID\.)/, '');
  if (ofWwn !== undefined && isWwn(ofWwn)) names.push({ kind: 'wwn', value: ofWwn });
  return names;
}

/** Eight bytes or more that are no filler. */
function isWwn(value: string): boolean {
  return /^[0-9A-F-]{16,}$/.test(value) && !/^[05]?0+[0-9]?$/.test(value);
}
