/**
 * The kind of a layer, by its media type or its file name. Pure.
 *
 * Ours: "application/vnd.rackwright.disk.v1.raw+zstd", "….disk.v1.qcow2", "….kernel.v1",
 * "….initrd.v1". Others use the name of the file, for example "machine.x86_64.qcow2.zst".
 */

export const diskFormats = ['raw', 'qcow2'] as const;
export type OciDiskFormat = (typeof diskFormats)[number];

export const diskCompressions = ['none', 'gzip', 'zstd', 'xz'] as const;
export type DiskCompression = (typeof diskCompressions)[number];

/** Undeclared properties follow from the first bytes of the file. */
export interface DeclaredDisk {
  readonly format?: OciDiskFormat;
  readonly compression?: DiskCompression;
}

export type LayerRole =
  | ({ readonly role: 'disk' } & DeclaredDisk)
  | { readonly role: 'kernel' }
  | { readonly role: 'initrd' };

/** "artifactType" of images that we publish, and of those that other builders make for us. */
export const diskArtifactType = 'application/vnd.rackwright.disk.v1';
const kernelType = 'application/vnd.rackwright.kernel.v1';
const initrdType = 'application/vnd.rackwright.initrd.v1';
const diskForm = /^application\/vnd\.rackwright\.disk\.v1\.(raw|qcow2)(?:\+(gzip|zstd|xz))?$/;

/** The role of a layer of ours; undefined for any other media type. */
export function roleOf(mediaType: string): LayerRole | undefined {
  if (mediaType === kernelType) return { role: 'kernel' };
  if (mediaType === initrdType) return { role: 'initrd' };
  const found = diskForm.exec(mediaType);
  if (found === null) return undefined;
  const [, format, compression = 'none'] = found;
  return {
    ...{ role: 'disk', format: format as OciDiskFormat },
    compression: compression as DiskCompression,
  };
}

/** The media type of a layer. */
export function mediaTypeOf(role: LayerRole): string {
  switch (role.role) {
    case 'kernel':
      return kernelType;
    case 'initrd':
      return initrdType;
    case 'disk': {
      const { format = 'raw', compression = 'none' } = role;
      return `${diskArtifactType}.${format}${compression === 'none' ? '' : `+${compression}`}`;
    }
  }
}

const compressionSuffixes: Readonly<Record<string, DiskCompression>> = {
  ...{ gz: 'gzip', gzip: 'gzip', zst: 'zstd', zstd: 'zstd', xz: 'xz' },
};
/** ".img" is either. */
const formatSuffixes: Readonly<Record<string, OciDiskFormat>> = { raw: 'raw', qcow2: 'qcow2' };
const mediaCompression = /(?:^application\/|[+.])(?:x-)?(gzip|zstd|xz)$/;

/** The declaration that a foreign file name and media type make together. */
export function declaredBy(fileName: string, mediaType: string): DeclaredDisk {
  const parts = fileName.toLowerCase().split('.').slice(1);
  const byName = compressionSuffixes[parts.at(-1) ?? ''];
  const format = formatSuffixes[parts.at(byName === undefined ? -1 : -2) ?? ''];
  const byType = mediaCompression.exec(mediaType)?.[1] as DiskCompression | undefined;
  const compression = byName ?? byType;
  return {
    ...(format === undefined ? {} : { format }),
    ...(compression === undefined ? {} : { compression }),
  };
}
