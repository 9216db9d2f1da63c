/** Why a device is refused or left alone, and a person's action about a refusal. Pure tables. */

/** Why a device that is the host's own storage cannot be erased. */
export type RefusalKind =
  | 'usb'
  | 'twoPaths'
  | 'unknownTransport'
  | 'unnamed'
  | 'readOnly'
  | 'inUse'
  | 'noNamespace'
  | 'noCapacity'
  | 'unfitRegion'
  | 'methodNotOffered'
  | 'hiddenNamespaces'
  | 'namespacesUnlisted'
  | 'hiddenArea'
  | 'fixedHiddenArea'
  | 'securityFrozen'
  | 'securityLocked';

/**
 * The password of an ATA secure erase. No secret: it protects nothing, and a person who finds the
 * disk locked must be able to unlock it.
 */
export const securityErasePassword = 'rackwright';

/** The remedy; a main clause in the imperative, without a full stop. */
export const refusalActions: Readonly<Record<RefusalKind, string>> = {
  usb: 'pull it, or set cleaning.usb_disks to erase or to leave, or name it in cleaning.boot_media',
  twoPaths: 'leave one path to the disk, or replace one of two disks with the same serial number',
  unknownTransport: 'take the device out, or report how it is attached',
  unnamed: 'take the device out, or replace it with one that says a serial number',
  readOnly: 'lift its write protection, or take it out',
  inUse: 'end what uses it in the runner, or start the runner anew',
  noNamespace: 'give the controller a namespace, or take the device out',
  noCapacity:
    'format it with blocks of 512 or 4096 bytes (sg_format), wait until its work is over, ' +
    'or take it out',
  unfitRegion: 'format it with blocks of 512 or 4096 bytes, or take it out',
  methodNotOffered: 'choose a method that the device offers',
  hiddenNamespaces: 'attach or delete these namespaces, or erase by a method that reaches them',
  namespacesUnlisted: 'erase by a method that reaches all namespaces, or update its firmware',
  hiddenArea: 'set cleaning.hidden_areas to remove, or take the device out',
  fixedHiddenArea:
    'make all of it addressable (NVMe: a namespace over it; NVDIMM: a namespace in raw mode), ' +
    'or take the device out',
  securityFrozen: 'power the host off and on so that the firmware does not freeze it, or unplug it',
  securityLocked:
    'remove its password (hdparm --security-unlock, then --security-disable; ours is ' +
    `"${securityErasePassword}"), or take it out`,
};

/** Why a device is none of the host's own storage. */
export type ListedKind =
  | 'multipath'
  | 'virtualMedia'
  | 'bootMedium'
  | 'optical'
  | 'bootPartition'
  | 'kernelDevice'
  | 'usb'
  | 'remote'
  | 'emptyReader';
