/**
 * Where BMCs differ from the specification or from each other: one table, so that no driver has a
 * branch per maker. The answers of a service decide, never its name: a row of `differences` applies
 * to a service that shows the row's property, and the entries of `ways` are tried with every
 * service, in order, until one of them is accepted.
 *
 * Each row names its source: where the difference was seen, or where it is written.
 */

/** Differences that a driver has to know before it can read an answer. */
export interface VendorDifference {
  readonly maker: string;
  /**
   * How far the read-back of IPMI boot flags can be trusted. `selectorOnly`: the device selector is
   * returned, "valid" and "EFI" are not.
   */
  readonly bootFlagsReadBack: 'full' | 'selectorOnly';
  /** Redfish: `Continuous` read back after `Once` was set is how it says `Once`. */
  readonly onceMayReadContinuous: boolean;
  /** Redfish: the property that holds the serial of SMBIOS type 1. */
  readonly serialProperty: 'SerialNumber' | 'SKU';
}

const plain: VendorDifference = {
  maker: 'any',
  bootFlagsReadBack: 'full',
  onceMayReadContinuous: false,
  serialProperty: 'SerialNumber',
};

interface Row extends Partial<VendorDifference> {
  readonly maker: string;
  readonly source: string;
  /** A property in its own answer. */
  readonly shows:
    | { readonly enterprise: number }
    /** Redfish: `Manufacturer` of its system. */
    | { readonly manufacturer: RegExp };
}

export const differences: readonly Row[] = [
  {
    maker: 'OpenIPMI simulator',
    // MontaVista's number, in the examples of OpenIPMI.
    shows: { enterprise: 0x1291 },
    source: 'ipmi_sim 2.0.33: takes every set; data 1 of the boot flags always reads as 0',
    bootFlagsReadBack: 'selectorOnly',
  },
  {
    maker: 'sushy-tools',
    shows: { manufacturer: /^Sushy Emulator$/ },
    source: 'sushy-tools of 2026-03, libvirt driver: boots as asked, and reads "Continuous"',
    onceMayReadContinuous: true,
  },
  {
    maker: 'Rackwright simulation',
    shows: { manufacturer: /^Rackwright$/ },
    source: 'packages/sim, which has this habit on demand',
    onceMayReadContinuous: true,
  },
  {
    maker: 'Dell',
    shows: { manufacturer: /^Dell\b/ },
    source:
      'ansible/ansible#53461 (PowerEdge R650, R740xd2, R750xa): SKU is the service tag, which ' +
      'dmidecode shows as serial of the system; SerialNumber is the serial of the board',
    serialProperty: 'SKU',
  },
];

/** The differences of this BMC, by either of the two properties that it shows. */
export function vendorDifference(of: {
  readonly enterprise?: number | undefined;
  readonly manufacturer?: string | undefined;
}): VendorDifference {
  const { enterprise, manufacturer = '' } = of;
  const row = differences.find(({ shows }) =>
    'enterprise' in shows ? shows.enterprise === enterprise : shows.manufacturer.test(manufacturer),
  );
  return { ...plain, ...row };
}

/** One of several ways to ask for the same. */
interface Way<T> {
  readonly way: T;
  readonly source: string;
}

/** The order in which ways are tried. Each is safe with a service that wants another one. */
export const variants = {
  /** Form of the ETag that goes along with a PATCH, until one is not answered 412 or 428. */
  etag: [
    { way: 'asGiven', source: 'DSP0266 §6.5' },
    {
      way: 'strong',
      source: 'RFC 9110 §13.1.1 compares strongly: a weak tag never matches there',
    },
    { way: 'none', source: 'sushy-tools of 2026-03 takes no tag' },
    { way: 'any', source: 'DSP0266 §6.5: 428 wants a tag, and some services match only "*"' },
  ],
  /** Body that removes a boot override, until one is not refused. */
  bootOff: [
    { way: 'enabledAlone', source: 'DSP0268, ComputerSystem' },
    {
      way: 'targetNone',
      source: 'sushy-tools of 2026-03 answers 400 where the target is missing',
    },
    {
      way: 'targetAsFound',
      source: 'sushy-tools of 2026-03, libvirt driver: knows no target "None"',
    },
  ],
  /** Answers to a sign-in by which a service says that it has no sessions: basic is used. */
  noSessions: [
    { way: 404, source: 'sushy-tools of 2026-03, which guards its root as well' },
    { way: 405, source: 'DSP0266 §7.11: a method that the resource does not support' },
    { way: 501, source: 'DSP0266 §7.11: not implemented' },
  ],
  /** Id of the log of the machine's events, among logs of the BMC's own actions. */
  eventLogId: [
    { way: /^sel$/i, source: 'Dell iDRAC: Managers/iDRAC.Embedded.1/LogServices/Sel' },
    { way: /^iml$/i, source: 'HPE iLO: Systems/1/LogServices/IML' },
    { way: /^log1$/i, source: 'DMTF’s public-rackmount1 mockup' },
    { way: /^event.?log$/i, source: 'OpenBMC bmcweb: Systems/system/LogServices/EventLog' },
    { way: /^system.?event.?log$/i, source: 'IPMI 2.0 §31, which SEL abbreviates' },
  ],
  /** Property of `Status` that covers a resource and all below it. */
  healthRollup: [
    { way: 'HealthRollup', source: 'DSP0268, Status' },
    { way: 'HealthRollUp', source: 'sushy-tools of 2026-03' },
  ],
  /** The property by which a list names its next page. */
  nextPage: [
    { way: 'Members@odata.nextLink', source: 'DSP0266 §7.5' },
    { way: '@odata.nextLink', source: 'DMTF’s public-rackmount1 mockup' },
  ],
  /** The resource that has the virtual drives. */
  virtualMedia: [
    { way: 'system', source: 'DSP0268 since 2020.4' },
    { way: 'manager', source: 'DSP0268 until 2020.4; iLO 5, iDRAC 9, DMTF’s public-rackmount1' },
  ],
  /** Body that inserts a medium, until one is not refused. */
  insertMedia: [
    { way: 'plain', source: 'DSP0268, VirtualMedia.InsertMedia' },
    { way: 'imageAlone', source: 'DSP0268: all parameters but Image are optional' },
    { way: 'withTransfer', source: 'DSP0268: a service may require TransferProtocolType' },
  ],
  /**
   * Bodies that order an update of firmware, tried until one is not refused. Each names its target:
   * an image is never applied to every component that it fits.
   */
  simpleUpdate: [
    { way: 'imageAlone', source: 'DSP0268, UpdateService.SimpleUpdate: the URI says the protocol' },
    { way: 'withTransfer', source: 'DSP0268: a service may require TransferProtocol' },
  ],
  /**
   * Bodies that create a volume, tried until one is not refused. Each names its drives, because a
   * service must not choose them.
   */
  createVolume: [
    { way: 'named', source: 'Lenovo XCC2 REST API, Create a Volume: Name is mandatory' },
    {
      way: 'nameless',
      source: 'DSP0268, Volume; HPE iLO 6, HewlettPackard/python-redfish-utility#115',
    },
  ],
  /** The places of a system's network adapters, tried until one has any. */
  networkAdapters: [
    { way: 'system', source: 'DSP0268, ComputerSystem.NetworkInterfaces' },
    { way: 'chassis', source: 'DSP0268, Chassis.NetworkAdapters' },
  ],
  /** Link of a function to its port. */
  portOfFunction: [
    { way: 'PhysicalNetworkPortAssignment', source: 'DSP0268, NetworkDeviceFunction: to a Port' },
    { way: 'PhysicalPortAssignment', source: 'DSP0268, the same before: to a NetworkPort' },
  ],
  /** The property of a port that reports its link. */
  linkUp: [
    { way: 'LinkUp', source: 'DSP0268, Port.LinkStatus' },
    { way: 'Up', source: 'DSP0268, NetworkPort.LinkStatus' },
  ],
  linkDown: [
    { way: 'LinkDown', source: 'DSP0268, Port.LinkStatus' },
    { way: 'NoLink', source: 'DSP0268, Port.LinkStatus' },
    { way: 'Down', source: 'DSP0268, NetworkPort.LinkStatus' },
  ],
  /** How the lamp is set, and read back. */
  indicator: [
    { way: 'LocationIndicatorActive', source: 'DSP0268 since 2020.3' },
    { way: 'IndicatorLED', source: 'DSP0268 until 2020.3; sushy-tools, iLO 5, iDRAC 9' },
  ],
} as const satisfies Readonly<Record<string, readonly Way<string | number | RegExp>[]>>;

/** What `VolumeType` says where there is no `RAIDType`; parity may be of RAID 5 or 6. */
export const volumeTypes = [
  { way: 'RawDevice', raidType: 'None', source: 'DSP0268, Volume.VolumeType: no RAID' },
  { way: 'NonRedundant', raidType: 'RAID0', source: 'DSP0268, Volume.VolumeType' },
  { way: 'Mirrored', raidType: 'RAID1', source: 'DSP0268, Volume.VolumeType' },
  { way: 'SpannedMirrors', raidType: 'RAID10', source: 'DSP0268, Volume.VolumeType' },
] as const satisfies readonly (Way<string> & { readonly raidType: string })[];

/** The ways alone, in their order. */
export function variantsOf<K extends keyof typeof variants>(
  kind: K,
): readonly (typeof variants)[K][number]['way'][] {
  return variants[kind].map(({ way }) => way);
}
