/** Writes small archives and images, for tests: ustar headers and nothing else. */
import { gzipSync } from 'node:zlib';
import { type Digest, digestOf } from '../digest.ts';

export interface WrittenEntry {
  readonly name: string;
  /** The type's character; "0" by default. */
  readonly type?: string;
  readonly content?: string | Uint8Array;
  readonly mode?: number;
  readonly target?: string;
  /** Instead of the content's length. */
  readonly size?: number;
}

const blockBytes = 512;

/** The entries as an archive, ended by two blocks of zeros. */
export function writeTar(entries: readonly WrittenEntry[]): Buffer {
  const blocks = entries.flatMap((entry) => {
    const content = Buffer.from(entry.content ?? '');
    const padding = Buffer.alloc((blockBytes - (content.length % blockBytes)) % blockBytes);
    return [writeHeader(entry, content.length), content, padding];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * blockBytes)]);
}

function writeHeader(entry: WrittenEntry, contentBytes: number): Buffer {
  const { name, type = '0', mode = 0o644, target = '', size = contentBytes } = entry;
  const block = Buffer.alloc(blockBytes);
  const octal = (value: number, at: number, digits: number): void => {
    block.write(value.toString(8).padStart(digits, '0'), at, 'latin1');
  };
  block.write(name, 0, 100, 'utf8');
  octal(mode, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(size, 124, 11);
  octal(0, 136, 11);
  block.write('        ', 148, 'latin1');
  block.write(type, 156, 'latin1');
  block.write(target, 157, 100, 'utf8');
  block.write('ustar\x0000', 257, 'latin1');
  let sum = 0;
  for (const byte of block) sum += byte;
  octal(sum, 148, 6);
  block.write('\0 ', 154, 'latin1');
  return block;
}

/** An image of one architecture: its blobs by digest, and the digest of its manifest. */
export interface WrittenImage {
  readonly manifest: Digest;
  readonly config: Digest;
  readonly layers: readonly Digest[];
  /** Manifest, configuration and layers. */
  readonly blobs: ReadonlyMap<Digest, Buffer>;
}

export interface ImageOptions {
  readonly config?: Readonly<Record<string, unknown>>;
  readonly architecture?: string;
  readonly compression?: 'none' | 'gzip';
}

/** Each layer is an archive; the lowest first. */
export function writeImage(layers: readonly Buffer[], options: ImageOptions = {}): WrittenImage {
  const { config = {}, architecture = 'amd64', compression = 'gzip' } = options;
  const blobs = new Map<Digest, Buffer>();
  const keep = (bytes: Buffer): Digest => {
    const digest = digestOf(bytes);
    blobs.set(digest, bytes);
    return digest;
  };
  const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
  const described = layers.map((layer) => {
    const blob = compression === 'gzip' ? gzipSync(layer) : layer;
    const suffix = compression === 'gzip' ? '+gzip' : '';
    const mediaType = `application/vnd.oci.image.layer.v1.tar${suffix}`;
    return { mediaType, digest: keep(blob), size: blob.length };
  });
  const diffIds = layers.map((layer) => digestOf(layer));
  const configBytes = json({
    os: 'linux',
    architecture,
    config,
    rootfs: { type: 'layers', diff_ids: diffIds },
  });
  const configDigest = keep(configBytes);
  const manifest = keep(
    json({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: {
        mediaType: 'application/vnd.oci.image.config.v1+json',
        digest: configDigest,
        size: configBytes.length,
      },
      layers: described,
    }),
  );
  return { manifest, config: configDigest, layers: described.map(({ digest }) => digest), blobs };
}

/** An index of images by architecture, with its own bytes. */
export function writeIndex(images: Readonly<Record<string, WrittenImage>>): Buffer {
  const manifests = Object.entries(images).map(([architecture, { manifest, blobs }]) => ({
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    digest: manifest,
    size: blobs.get(manifest)?.length,
    platform: { os: 'linux', architecture },
  }));
  const mediaType = 'application/vnd.oci.image.index.v1+json';
  return Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, manifests }));
}
