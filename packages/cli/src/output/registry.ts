/** How registries of the fleet are shown. */
import type { ImageMirror, ImageRegistry } from '@rackwright/messages';
import type { TextColumn } from './table.ts';

/** Columns of `fleet registry list`. */
export const registryColumns: readonly TextColumn<ImageRegistry>[] = [
  { title: 'REGISTRY', value: ({ registry }) => registry },
  { title: 'ASKED', value: askedText, widthMin: 12 },
  { title: 'MIRRORS', value: ({ mirrors }) => mirrors.map(mirrorText).join(' '), dropOrder: 1 },
];

type Access = Pick<ImageRegistry, 'credential' | 'plainHttp' | 'caPem' | 'tokenService'>;

/** "by plain HTTP, with robot" */
export function askedText({ credential, plainHttp, caPem, tokenService }: Access): string {
  const parts = [
    plainHttp ? 'by plain HTTP' : 'by HTTPS',
    caPem === '' ? '' : 'authorities of its own',
    credential === '' ? 'as nobody' : `with ${credential.replace(/^credentials\//, '')}`,
    tokenService === '' ? '' : `tokens by ${tokenService}`,
  ];
  return parts.filter((part) => part !== '').join(', ');
}

function mirrorText({ registry, prefix }: ImageMirror): string {
  return prefix === '' ? registry : `${registry}/${prefix}`;
}
