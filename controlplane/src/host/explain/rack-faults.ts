/** Faults of a rack's provisioning network, and what a person can do about them. Pure. */
import { type HostName, type RackFault, RackFaultType, type RackName } from '@rackwright/messages';
import { idOf } from '../../records/index.ts';

type About = Pick<RackFault, 'mac' | 'address' | 'host'>;

interface FaultTexts {
  readonly message: (about: About) => string;
  /** `rack`: without "racks/". */
  readonly advice: (about: About, rack: string) => readonly string[];
}

const unknown: FaultTexts = {
  message: () => 'its agent tells of a fault that this version does not know',
  advice: () => ['update the control plane'],
};

/** Each type of fault has its texts. */
const table: Readonly<Record<RackFaultType, FaultTexts>> = {
  [RackFaultType.UNSPECIFIED]: unknown,
  [RackFaultType.FOREIGN_DHCP_SERVER]: {
    message: ({ address }) =>
      `another DHCP server, ${address}, gives addresses on the provisioning network: the agent ` +
      'offers none until it is gone',
    advice: ({ address }) => [
      `take the DHCP server ${address} off the provisioning network`,
      'or let it give the addresses: set dhcp.mode to proxy in the configuration of the agent',
    ],
  },
  [RackFaultType.ADDRESS_DECLINED]: {
    message: ({ mac, address }) =>
      `${mac} found somebody else at ${address}, the address that it was given`,
    advice: ({ address }) => [
      `find the machine that uses ${address} without a lease, and give it another address`,
      'or leave that address out of the ranges of the agent',
    ],
  },
  [RackFaultType.RANGE_EXHAUSTED]: {
    message: ({ mac }) => `no address is left for ${mac}: the range is used up`,
    advice: () => ['make the range larger in the configuration of the agent (dhcp)'],
  },
  [RackFaultType.BOOT_MAC_NOT_SEEN]: {
    message: ({ mac, host }) =>
      `${host} was switched on to boot, and its network card ${mac} has not been seen on the ` +
      'provisioning network',
    advice: ({ mac, host }) => [
      `see that ${mac} of ${host} has link, is cabled and switched to this network, and boots ` +
        'from the network',
      'see whether another rack tells of that MAC: rackwright rack list',
      `or correct its boot MACs: rackwright host update ${idOf(host)} --mac MAC`,
    ],
  },
  [RackFaultType.MAC_OF_OTHER_RACK]: {
    message: ({ mac }) => `${mac}, a boot MAC of a host of another rack, asks for a boot here`,
    advice: ({ mac }, rack) => [
      `move the cable or the switch port of ${mac} to the network of its rack`,
      `or make its host anew in the rack ${rack}, where it is`,
    ],
  },
};

const textsOf = (type: RackFaultType): FaultTexts => table[type] ?? unknown;

/** Whether this version knows the fault type. */
export function isKnownRackFault(type: RackFaultType): boolean {
  return type !== RackFaultType.UNSPECIFIED && table[type] !== undefined;
}

export function rackFaultText({ type, ...about }: About & Pick<RackFault, 'type'>): string {
  return textsOf(type).message(about);
}

/** Lines for people; `rack`: "racks/RACK". */
export function rackFaultAdvice(fault: RackFault, rack: RackName): readonly string[] {
  return textsOf(fault.type).advice(fault, idOf(rack));
}

/** Faults that keep this host from its boot: its own, and those of the whole network. */
export function faultsAround(
  faults: readonly RackFault[],
  host: HostName,
  macs: readonly string[],
): RackFault[] {
  return faults.filter(
    (fault) => fault.host === host || isShared(fault) || macs.includes(fault.mac),
  );
}

function isShared({ type }: RackFault): boolean {
  return type === RackFaultType.FOREIGN_DHCP_SERVER || type === RackFaultType.RANGE_EXHAUSTED;
}
