/**
 * What a person can do about each kind of failure. Each line names an action that frees the host.
 */
import { BmcProtocol, type store } from '@rackwright/api';

/** Lines for a failure's type; never empty. */
export function adviceFor(type: string, record: store.HostRecord): string[] {
  const host = record.host?.name.replace(/^hosts\//, '') ?? 'HOST';
  const credential =
    record.host?.spec?.bmc?.credential.replace(/^credentials\//, '') ?? 'CREDENTIAL';
  const again = `then: rackwright host ${nextCommand(record)} ${host}`;
  const place = bmcPlace(record);
  switch (type) {
    case 'authentication':
      return [
        `correct user name or password: rackwright credential update ${credential} --username USER`,
        'the host is tried again at once by itself',
      ];
    case 'credentialUnusable':
      return [
        `give its password again: rackwright credential update ${credential} --username USER`,
        'the host is tried again at once by itself',
      ];
    case 'unreachable':
      return [
        `see that the BMC at ${place} has power and network; it is tried again by itself`,
        `or correct its address: rackwright host update ${host} --bmc ADDRESS`,
      ];
    case 'protocol':
      return [
        `see what answers at ${place}: it does not speak the protocol of a BMC`,
        `correct address or protocol: rackwright host update ${host} --bmc ADDRESS`,
      ];
    case 'certificateMismatch':
      return [
        `the BMC at ${place} shows another certificate than the pinned one; if that is right: ` +
          `rackwright host update ${host} --bmc-certificate SHA256`,
      ];
    case 'notApplied':
      return [`the BMC at ${place} says yes and does nothing: reset or replace it`, again];
    case 'identityMismatch':
      return [
        'correct the BMC addresses of the two hosts (or their cables)',
        `rackwright host update ${host} --bmc ADDRESS, ${again}`,
      ];
    case 'identityUnproven':
      return [
        'give the machine a serial number in SMBIOS and FRU, ' +
          `or accept it as it is: rackwright host update ${host} --allow-unproven-identity`,
        again,
      ];
    case 'noDevices':
      return [
        `see why no disk is there, or accept it: rackwright host update ${host} --allow-diskless`,
        again,
      ];
    case 'notErased':
    case 'unverified':
    case 'ioError':
    case 'deviceRefused':
    case 'deviceChanged':
      return ['take the disk that is named out of the host, or replace it', again];
    default:
      return [`look at the cause above, ${again}`];
  }
}

/** The command that starts what failed last. */
function nextCommand(record: store.HostRecord): string {
  const kind = record.host?.status?.lastError?.run.split(' ')[0] ?? '';
  return ['verify', 'inspect', 'clean'].includes(kind) ? kind : 'verify';
}

/** Where a host's BMC is, in one word for people. */
function bmcPlace(record: store.HostRecord): string {
  const bmc = record.host?.spec?.bmc;
  const redfish = bmc?.protocol === BmcProtocol.REDFISH;
  const port = bmc?.port ?? (redfish ? 443 : 623);
  return `${bmc?.address ?? '?'}:${port} (${redfish ? 'Redfish' : 'IPMI'})`;
}
