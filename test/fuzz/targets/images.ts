/** What a registry or a web server sends: manifests, layers, disk images, and its headers. */
import { crc32, gunzipSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { DecodeError } from '../../../packages/bytes/src/index.ts';
import { ImageError } from '../../../packages/disk-image/src/failure.ts';
import { formatOf, magicBytes } from '../../../packages/disk-image/src/format.ts';
import { openQcow2 } from '../../../packages/disk-image/src/qcow2/reader.ts';
import { zstdFrameBytes } from '../../../packages/disk-image/src/qcow2/zstd-frame.ts';
import { fitTable } from '../../../packages/disk-image/src/table/fit.ts';
import { writeMbrEntry } from '../../../packages/disk-image/src/table/mbr.ts';
import { unpack } from '../../../packages/disk-image/src/unpack.ts';
import { parseArtifact } from '../../../packages/oci/src/disk/artifact.ts';
import { declaredBy, roleOf } from '../../../packages/oci/src/disk/media-type.ts';
import { OciError } from '../../../packages/oci/src/failure.ts';
import { layerTarget, pathParts } from '../../../packages/oci/src/layer/path.ts';
import { captures } from '../../../packages/oci/src/layer/tar.fixture.ts';
import { readTar } from '../../../packages/oci/src/layer/tar.ts';
import { parseConfig, parseManifest } from '../../../packages/oci/src/manifest.ts';
import { parseReference } from '../../../packages/oci/src/reference.ts';
import { parseChallenges } from '../../../packages/oci/src/registry/challenge.ts';
import { defaultWebLimits } from '../../../packages/oci/src/registry/exchange.ts';
import { retryAfterMs } from '../../../packages/oci/src/registry/retry-after.ts';
import { fetchToken, tokenUrl } from '../../../packages/oci/src/registry/token.ts';
import { writeImage, writeIndex, writeTar } from '../../../packages/oci/src/testing/tar-writer.ts';
import { pagesWeb } from '../../../packages/oci/src/testing/web.ts';
import { type Target, textOf, texts } from '../target.ts';

const image = writeImage([writeTar([{ name: 'a', content: 'hello' }])]);
const bytesOf = (digest: (typeof image)['config']): Uint8Array =>
  Uint8Array.from(image.blobs.get(digest) ?? []);
const manifestSeeds = [
  bytesOf(image.manifest),
  Uint8Array.from(writeIndex({ amd64: image, arm64: image })),
];
const digest = `sha256:${'ab'.repeat(32)}`;
const diskManifest = texts(
  JSON.stringify({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    artifactType: 'application/vnd.rackwright.disk.v1',
    config: { mediaType: 'application/vnd.oci.empty.v1+json', digest, size: 2 },
    layers: [
      {
        mediaType: 'application/vnd.rackwright.disk.v1.raw+zstd',
        digest,
        size: 100,
        annotations: { 'org.opencontainers.image.title': 'disk.raw.zst', 'a.b': 'c' },
      },
    ],
    annotations: { 'org.opencontainers.image.version': '1' },
  }),
);
const manifestTokens = [
  ...['config', 'layers', 'manifests', 'mediaType', 'digest', 'size', 'platform', 'annotations'],
  ...['rootfs', 'diff_ids', 'Env', 'User', 'schemaVersion', digest],
];

async function* once(input: Uint8Array) {
  yield input;
}

async function tarEntries(input: Uint8Array): Promise<unknown> {
  const found: unknown[] = [];
  const limits = { entriesMax: 1_000, contentBytesMax: 1_000_000, headerBytesMax: 4_096 };
  for await (const entry of readTar(once(input), limits)) {
    let bytes = 0;
    if (entry.kind === 'file') for await (const part of entry.content) bytes += part.length;
    found.push([entry.name, entry.kind, bytes, layerTarget(entry.name), pathParts(entry.name)]);
  }
  return found;
}

const mebibyte = 1_048_576;

/** The head of an image with a table; a guid table with one partition, or an MBR. */
function gptHead(): Uint8Array {
  const head = Buffer.alloc(34 * 512);
  head.set([0x55, 0xaa], 510);
  writeMbrEntry(head, { number: 1, type: 0xee, active: false, firstBlock: 1, lastBlock: 65_535 });
  head.write('EFI PART', 512, 'latin1');
  head.writeUInt32LE(0x1_0000, 512 + 8);
  head.writeUInt32LE(92, 512 + 12);
  head.writeUInt32LE(1, 512 + 24);
  head.writeUInt32LE(65_535, 512 + 32);
  head.writeUInt32LE(34, 512 + 40);
  head.writeUInt32LE(65_502, 512 + 48);
  head.writeUInt32LE(2, 512 + 72);
  head.writeUInt32LE(128, 512 + 80);
  head.writeUInt32LE(128, 512 + 84);
  const entry = 1_024;
  head.write('28732ac11ff8d211ba4b00a0c93ec93b', entry, 'hex');
  head.write('0102030405060708090a0b0c0d0e0f10', entry + 16, 'hex');
  head.writeUInt32LE(2_048, entry + 32);
  head.writeUInt32LE(32_767, entry + 40);
  head.write('root', entry + 56, 'utf16le');
  return Uint8Array.from(head);
}

/** The checksums of a table are made right, or no mutation would get past them. */
function withChecksums(input: Uint8Array): Uint8Array {
  const head = Buffer.from(input);
  if (head.length < 34 * 512 || head.toString('latin1', 512, 520) !== 'EFI PART') return input;
  const count = Math.min(head.readUInt32LE(512 + 80), 1_000);
  const size = Math.min(head.readUInt32LE(512 + 84), 4_096);
  head.writeUInt32LE(crc32(head.subarray(1_024, 1_024 + count * size)), 512 + 88);
  head.writeUInt32LE(0, 512 + 16);
  const headerBytes = Math.min(head.readUInt32LE(512 + 12), 512);
  head.writeUInt32LE(crc32(head.subarray(512, 512 + headerBytes)), 512 + 16);
  return head;
}

function mbrHead(): Uint8Array {
  const head = new Uint8Array(4_096);
  head.set([0x55, 0xaa], 510);
  for (const [at, firstBlock] of [2_048, 8_192].entries()) {
    const lastBlock = firstBlock + 4_095;
    writeMbrEntry(head, { number: at + 1, type: 0x83, active: at === 0, firstBlock, lastBlock });
  }
  return head;
}

function tables(input: Uint8Array): unknown {
  const head = Uint8Array.from(withChecksums(input));
  const seed = { sizeBytes: mebibyte, name: 'cidata' };
  const { head: fitted, ...rest } = fitTable({
    ...{ head, diskBytes: 64 * mebibyte, blockBytes: 512, grow: true, seed },
  });
  return [rest.kind, rest.partitions, fitted.length];
}

/** A qcow2 file of one cluster of 64 KiB, with its tables. */
function qcow2File(version: 2 | 3): Uint8Array {
  const file = Buffer.alloc(4 * 512 + 512);
  file.write('QFI\xfb', 0, 'latin1');
  file.writeUInt32BE(version, 4);
  // Clusters of 512 bytes.
  file.writeUInt32BE(9, 20);
  file.writeUInt32BE(1_024, 28);
  file.writeUInt32BE(1, 36);
  file.writeUInt32BE(512, 44);
  file.writeUInt32BE(1_536, 52);
  file.writeUInt32BE(1, 56);
  if (version === 3) {
    file.writeUInt32BE(4, 96);
    file.writeUInt32BE(104, 100);
  }
  file.writeUInt32BE(0x8000_0000, 512);
  file.writeUInt32BE(1_024, 516);
  file.writeUInt32BE(0x8000_0000, 1_024);
  file.writeUInt32BE(2_048, 1_028);
  file.write('content', 2_048, 'latin1');
  return Uint8Array.from(file);
}

/** So many pieces are read: an image may declare petabytes of zeros. */
const piecesMax = 200;

async function qcow2Content(input: Uint8Array): Promise<unknown> {
  const file = {
    sizeBytes: input.length,
    read: async (offset: number, length: number) => {
      if (offset + length > input.length) throw new ImageError('truncated', 'beyond the end');
      return input.subarray(offset, offset + length);
    },
    close: async () => {},
  };
  const { header, content } = await openQcow2(file);
  let [bytes, pieces] = [0, 0];
  for await (const piece of content()) {
    bytes += piece.kind === 'bytes' ? piece.bytes.length : piece.length;
    pieces += 1;
    if (pieces >= piecesMax) break;
  }
  return [header, bytes];
}

async function unpacked(input: Uint8Array): Promise<unknown> {
  const format = formatOf(input.subarray(0, magicBytes), {});
  const { signal } = new AbortController();
  let bytes = 0;
  for await (const piece of unpack(format.compression, once(input), (chunks) => chunks, signal)) {
    bytes += piece.length;
    if (bytes > 10 * mebibyte) break;
  }
  return [format, bytes];
}

async function tokenOf(input: Uint8Array): Promise<unknown> {
  const { web } = pagesWeb(() => ({ body: input }));
  const parts = { credential: undefined, caPem: undefined, internal: undefined };
  const url = 'https://registry.example/token';
  return fetchToken(web, { url, ...parts, limits: defaultWebLimits, signal: undefined });
}

export const targets: readonly Target[] = [
  {
    name: 'images.manifest',
    form: 'json',
    seeds: manifestSeeds,
    parse: parseManifest,
    refusals: [OciError],
    tokens: manifestTokens,
  },
  {
    name: 'images.disk-manifest',
    form: 'json',
    seeds: [...diskManifest, ...manifestSeeds],
    parse: parseArtifact,
    refusals: [OciError],
    tokens: manifestTokens,
  },
  {
    name: 'images.config',
    form: 'json',
    seeds: [
      bytesOf(image.config),
      ...texts(
        JSON.stringify({
          os: 'linux',
          architecture: 'amd64',
          config: {
            User: '1:2',
            Env: ['A=b', 'C'],
            Entrypoint: ['/x'],
            Cmd: ['y'],
            WorkingDir: '/',
          },
          rootfs: { type: 'layers', diff_ids: [digest] },
        }),
      ),
    ],
    parse: (input) => parseConfig(input, 1),
    refusals: [OciError],
    tokens: manifestTokens,
  },
  {
    name: 'images.tar',
    form: 'bytes',
    seeds: [
      ...(['ustar', 'gnu', 'pax', 'v7'] as const).map((form) =>
        Uint8Array.from(gunzipSync(Buffer.from(captures[form], 'base64'))),
      ),
      Uint8Array.from(writeTar([{ name: '../x', content: 'y' }])),
    ],
    parse: tarEntries,
    refusals: [OciError],
    tokens: ['../', './', 'ustar\0', 'path=', '30 mtime=1.5\n', 'GNU.sparse', '\0\0\0\0\0\0\0'],
  },
  {
    name: 'images.reference',
    form: 'text',
    seeds: texts(
      `registry.example.org:5000/tools/check@${digest}`,
      'localhost/a/b:tag',
      '[::1]:5000/a__b/c-d.e:1.0',
    ),
    parse: (input) => parseReference(textOf(input)),
    refusals: [],
    tokens: ['/', ':', '@', 'sha256:', '..', '[', ']', '__', '--'],
  },
  {
    name: 'images.challenge',
    form: 'text',
    seeds: texts(
      'Bearer realm="https://auth.example/token",service="registry",scope="repository:a:pull"',
      'Basic realm="a, \\"b\\"", Negotiate abc==, Bearer realm=x',
    ),
    parse: (input) => {
      const found = parseChallenges(textOf(input));
      return [found, found.map((each) => tokenUrl(each, 'a/b', 'pull', false))];
    },
    refusals: [OciError],
    tokens: ['Bearer ', 'Basic ', 'realm=', 'service=', 'scope=', '"', ', ', '\\"', '=='],
  },
  {
    name: 'images.token',
    form: 'json',
    seeds: texts('{"token":"abc","expires_in":300}', '{"access_token":"abc"}'),
    parse: tokenOf,
    refusals: [OciError],
    tokens: ['token', 'access_token'],
  },
  {
    name: 'images.retry-after',
    form: 'text',
    seeds: texts('7', 'Mon, 23 Nov 2026 00:00:00 GMT', '99999999'),
    parse: (input) => retryAfterMs({ 'retry-after': textOf(input) }),
    refusals: [],
  },
  {
    name: 'images.partition-table',
    form: 'bytes',
    seeds: [gptHead(), mbrHead()],
    parse: tables,
    refusals: [ImageError],
  },
  {
    name: 'images.qcow2',
    form: 'bytes',
    seeds: [qcow2File(2), qcow2File(3)],
    parse: qcow2Content,
    refusals: [ImageError],
  },
  {
    name: 'images.unpack',
    form: 'bytes',
    seeds: [
      ...[zstdCompressSync, gzipSync].map((compress) =>
        Uint8Array.from(compress(Buffer.from('hello '.repeat(50)))),
      ),
      ...texts('raw'),
    ],
    parse: unpacked,
    refusals: [ImageError],
  },
  {
    name: 'images.media-type',
    form: 'text',
    seeds: texts(
      'application/vnd.rackwright.disk.v1.raw+zstd',
      'machine.x86_64.qcow2.zst',
      'application/vnd.rackwright.kernel.v1',
    ),
    parse: (input) => {
      const text = textOf(input);
      return [roleOf(text), declaredBy(text, text)];
    },
    refusals: [OciError],
    tokens: ['.qcow2', '.zst', '.gz', '+gzip', '.', 'application/vnd.rackwright.'],
  },
  {
    name: 'images.zstd-frame',
    form: 'bytes',
    seeds: ['', 'hello', 'a'.repeat(5_000)].map((text) =>
      Uint8Array.from(zstdCompressSync(Buffer.from(text))),
    ),
    parse: zstdFrameBytes,
    refusals: [DecodeError],
  },
];
