/**
 * Captures of `tcpdump -w`, and the neighbours whose frames are in one. The file may still be
 * written to, and any device on the cable can choose the content of its frames.
 *
 * C1 Decoding throws DecodeError and nothing else. A last record that is not whole yet is left out.
 * C2 A frame that is no LLDP is left out. The latest frame of a neighbour counts; a neighbour that
 *    has signed off is none.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ByteReader, DecodeError } from '@rackwright/bytes';
import type { LldpNeighborSchema } from '@rackwright/messages';
import { boundText } from '@rackwright/results';
import { decodeLldp, type LldpFrame } from './frame.ts';

/** Neighbours of one interface that are kept: the most recently heard ones. */
export const neighborsMax = 4;
/** The size of each kept text of a neighbour: inventories are one bounded record. */
const textBytesMax = 128;
/** A capture has few frames: the ramdisk stops after 16. */
const framesMax = 64;
const captureBytesMax = 128 * 1024;

/** Magic of files whose times have microseconds, as a reader of big-endian fields sees it. */
const magics = { big: 0xa1b2c3d4, little: 0xd4c3b2a1 } as const;
const majorVersion = 2;
const ethernet = 1;

/** A captured frame; `atMs` is wall time. */
export interface CapturedFrame {
  readonly atMs: number;
  readonly bytes: Uint8Array;
}

/** https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html */
export function decodeCapture(file: Uint8Array): readonly CapturedFrame[] {
  const reader = new ByteReader(file, 'packet capture');
  if (file.length > captureBytesMax) {
    throw reader.error(`${file.length} bytes, at most ${captureBytesMax} are read,`);
  }
  const magic = reader.uint32();
  if (magic !== magics.big && magic !== magics.little) throw reader.error('no packet capture');
  const isLittle = magic === magics.little;
  const uint32 = (from = reader): number => {
    const bytes = from.bytes(4);
    return new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, isLittle);
  };
  const versions = reader.bytes(4);
  if (versions[isLittle ? 0 : 1] !== majorVersion) throw reader.error('another version');
  reader.bytes(12);
  const linkType = uint32();
  if (linkType !== ethernet) throw reader.error(`link type ${linkType}, not Ethernet`);
  const frames: CapturedFrame[] = [];
  while (reader.remaining >= 16 && frames.length < framesMax) {
    const header = new ByteReader(reader.bytes(16), 'packet record');
    const [seconds, micros, kept] = [uint32(header), uint32(header), uint32(header)];
    if (kept > reader.remaining) break;
    frames.push({ atMs: seconds * 1_000 + micros / 1_000, bytes: reader.bytes(kept) });
  }
  return frames;
}

export type Neighbor = MessageInitShape<typeof LldpNeighborSchema>;

/** The neighbours in a capture, the last heard first; none where it cannot be read. */
export function neighborsIn(file: Uint8Array): Neighbor[] {
  const heard = new Map<string, { readonly frame: LldpFrame; readonly atMs: number }>();
  for (const { atMs, bytes } of framesIn(file)) {
    const frame = ifReadable(() => decodeLldp(bytes));
    if (frame === undefined) continue;
    const key = `${frame.chassisId}\n${frame.portId}`;
    heard.delete(key);
    if (frame.ttlSeconds > 0) heard.set(key, { frame, atMs });
  }
  return [...heard.values()].toReversed().slice(0, neighborsMax).map(neighborOf);
}

function framesIn(file: Uint8Array): readonly CapturedFrame[] {
  return ifReadable(() => decodeCapture(file)) ?? [];
}

function neighborOf({ frame, atMs }: { frame: LldpFrame; atMs: number }): Neighbor {
  const { chassisId, portId, systemName, portDescription, systemDescription, portVlan } = frame;
  return {
    chassisId: boundText(chassisId, textBytesMax),
    portId: boundText(portId, textBytesMax),
    systemName: boundText(systemName, textBytesMax),
    portDescription: boundText(portDescription, textBytesMax),
    systemDescription: boundText(systemDescription, textBytesMax),
    managementAddresses: [...frame.managementAddresses],
    ...(portVlan === undefined ? {} : { portVlan }),
    heardTime: timestampFromMs(Math.floor(atMs)),
  };
}

function ifReadable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}
