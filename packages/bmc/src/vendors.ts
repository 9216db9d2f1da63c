/**
 * Where BMCs differ from the specification, as one table, so that no driver has a branch per
 * maker. A row needs evidence: name where it was seen.
 */
export interface VendorDifference {
  readonly maker: string;
  /**
   * What the read-back of IPMI boot flags can be trusted for. `selectorOnly`: the device selector
   * comes back, "valid" and "EFI" do not.
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
  /** IANA enterprise number, as IPMI's Get Device ID answers it. */
  readonly enterprise?: number;
  /** What a Redfish system says as its Manufacturer. */
  readonly manufacturer?: RegExp;
}

const rows: readonly Row[] = [
  {
    // OpenIPMI's ipmi_sim 2.0.33 (MontaVista's number in its examples): every set is accepted,
    // data 1 of the boot flags always reads back as 0.
    maker: 'OpenIPMI simulator',
    enterprise: 0x1291,
    bootFlagsReadBack: 'selectorOnly',
  },
  {
    // sushy-tools of 2026-03, libvirt driver: boots as asked, and reads "Continuous".
    maker: 'sushy-tools',
    manufacturer: /^Sushy Emulator$/,
    onceMayReadContinuous: true,
  },
  {
    // The simulated machines of this repository (packages/sim), which have this habit on demand.
    maker: 'Rackwright simulation',
    manufacturer: /^Rackwright$/,
    onceMayReadContinuous: true,
  },
  {
    // iDRAC: SKU is the service tag, which dmidecode shows as the system's serial; SerialNumber
    // is the board's (ansible/ansible#53461; PowerEdge R650, R740xd2, R750xa).
    maker: 'Dell',
    manufacturer: /^Dell\b/,
    serialProperty: 'SKU',
  },
];

/** How this BMC differs, by whichever of the two it says. */
export function vendorDifference(of: {
  readonly enterprise?: number | undefined;
  readonly manufacturer?: string | undefined;
}): VendorDifference {
  const { enterprise, manufacturer } = of;
  const row = rows.find(
    (one) =>
      (enterprise !== undefined && one.enterprise === enterprise) ||
      (manufacturer !== undefined && one.manufacturer?.test(manufacturer) === true),
  );
  return { ...plain, ...row };
}
