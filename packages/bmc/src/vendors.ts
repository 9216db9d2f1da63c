/**
 * Where BMCs differ from the specification, as one table, so that the driver has no branch per
 * maker. A row needs evidence: name where it was seen.
 */
export interface VendorDifference {
  readonly maker: string;
  /**
   * What the read-back of boot flags can be trusted for. `selectorOnly`: the device selector
   * comes back, "valid" and "EFI" do not.
   */
  readonly bootFlagsReadBack: 'full' | 'selectorOnly';
}

const plain: VendorDifference = { maker: 'any', bootFlagsReadBack: 'full' };

/** By IANA enterprise number, as Get Device ID answers it. */
const differences: ReadonlyMap<number, VendorDifference> = new Map([
  // OpenIPMI's ipmi_sim 2.0.33 (MontaVista's number in its examples): every set is accepted,
  // data 1 of the boot flags always reads back as 0.
  [0x1291, { maker: 'OpenIPMI simulator', bootFlagsReadBack: 'selectorOnly' }],
]);

export function vendorDifference(manufacturerId: number | undefined): VendorDifference {
  if (manufacturerId === undefined) return plain;
  return differences.get(manufacturerId) ?? plain;
}
