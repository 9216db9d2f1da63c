import { meaningfulSerial, meaningfulUuid } from '@rackwright/erasure';
import type { BmcIdentity } from '@rackwright/messages';

/**
 * Is the BMC behind this address still the one that was enrolled? Compared out of band with out of
 * band, so bytes must be equal as they are; guard 0 compares with the machine itself.
 *
 * A value that the expectation lacks, or has as filler, is not compared. Every other value must be
 * there and equal: a BMC that no longer reports its GUID may be another BMC.
 */
export function bmcIdentityDifference(
  expected: BmcIdentity | undefined,
  observed: Omit<BmcIdentity, '$typeName'>,
): string | undefined {
  if (expected === undefined) return undefined;
  const pairs: readonly (readonly [string, string | undefined, string | undefined])[] = [
    ['GUID', hex(meaningfulUuid(expected.guid)), hex(meaningfulUuid(observed.guid))],
    ...(['serial', 'boardSerial', 'chassisSerial'] as const).map(
      (field) =>
        [
          serialNames[field],
          meaningfulSerial(expected[field]),
          meaningfulSerial(observed[field]),
        ] as const,
    ),
  ];
  for (const [name, wanted, seen] of pairs) {
    if (wanted === undefined || wanted === seen) continue;
    return `${name} ${wanted} is expected, the BMC says ${seen ?? 'none'}`;
  }
  return undefined;
}

const serialNames = {
  serial: 'product serial',
  boardSerial: 'board serial',
  chassisSerial: 'chassis serial',
} as const;

function hex(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : Buffer.from(bytes).toString('hex');
}
