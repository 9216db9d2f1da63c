/**
 * Option 43 as the PXE specification 2.1 (§2.2, table 2-1) fills it for clients and servers whose
 * vendor class is PXEClient.
 */
import { ByteReader, ByteWriter } from '@rackwright/bytes';
import { decodeAddress, encodeAddress } from '../address.ts';
import type { OptionCodec } from './codec.ts';
import { type SubOptions, subOptions } from './sub-options.ts';

/** Bits of sub-option 6. */
export const discoveryControl = {
  noBroadcast: 1,
  noMulticast: 2,
  listedServersOnly: 4,
  /** When the offer names a boot file: load that, without prompt, menu or discovery. */
  bootFileAtOnce: 8,
} as const;

export interface BootServer {
  /** 0 is local boot; from 0x8000 on numbers are free for anyone. */
  readonly type: number;
  readonly addresses: readonly string[];
}

export interface BootMenuEntry {
  readonly type: number;
  readonly description: string;
}

export interface PxeOptions {
  /** Sub-option 6, bits of {@link discoveryControl}. */
  readonly discoveryControl?: number;
  /** Sub-option 8. */
  readonly bootServers?: readonly BootServer[];
  /** Sub-option 9, in the order of the menu. */
  readonly bootMenu?: readonly BootMenuEntry[];
  /** Sub-option 10; timeout in seconds, 0 takes the first entry at once, 255 waits for ever. */
  readonly menuPrompt?: { readonly timeoutSeconds: number; readonly prompt: string };
  /** Sub-option 71: the client's choice; the answer repeats it. */
  readonly bootItem?: { readonly type: number; readonly layer: number };
  /** Everything else, untouched. */
  readonly others: SubOptions;
}

const code = {
  discoveryControl: 6,
  bootServers: 8,
  bootMenu: 9,
  menuPrompt: 10,
  bootItem: 71,
} as const;

const layout = subOptions('option 43 (PXE)', 'withPadAndEnd');

export const pxe: OptionCodec<PxeOptions> = {
  decode(bytes) {
    let known: KnownSubOptions = {};
    const others: [number, Uint8Array][] = [];
    for (const [subCode, subValue] of layout.decode(bytes)) {
      const one = decodeKnown(subCode, subValue);
      if (one === undefined) others.push([subCode, subValue]);
      else known = { ...known, ...one };
    }
    return { ...known, others };
  },
  encode(value) {
    return layout.encode([...knownSubOptions(value), ...value.others]);
  },
};

type KnownSubOptions = Omit<PxeOptions, 'others'>;

function decodeKnown(subCode: number, subValue: Uint8Array): KnownSubOptions | undefined {
  const reader = new ByteReader(subValue, `option 43.${subCode} (PXE)`);
  switch (subCode) {
    case code.discoveryControl: {
      const bits = reader.uint8();
      reader.expectEnd();
      return { discoveryControl: bits };
    }
    case code.bootServers:
      return { bootServers: decodeBootServers(reader) };
    case code.bootMenu:
      return { bootMenu: decodeBootMenu(reader) };
    case code.menuPrompt:
      return { menuPrompt: { timeoutSeconds: reader.uint8(), prompt: latin1(reader.rest()) } };
    case code.bootItem: {
      const bootItem = { type: reader.uint16(), layer: reader.uint16() };
      reader.expectEnd();
      return { bootItem };
    }
    default:
      return undefined;
  }
}

function decodeBootServers(reader: ByteReader): BootServer[] {
  const servers: BootServer[] = [];
  while (reader.remaining > 0) {
    const type = reader.uint16();
    const count = reader.uint8();
    const addresses = Array.from({ length: count }, () => decodeAddress(reader));
    servers.push({ type, addresses });
  }
  return servers;
}

function decodeBootMenu(reader: ByteReader): BootMenuEntry[] {
  const entries: BootMenuEntry[] = [];
  while (reader.remaining > 0) {
    const type = reader.uint16();
    entries.push({ type, description: latin1(reader.bytes(reader.uint8())) });
  }
  return entries;
}

function knownSubOptions(value: PxeOptions): [number, Uint8Array][] {
  const known: [number, Uint8Array][] = [];
  const sub = (): ByteWriter => new ByteWriter(255);
  if (value.discoveryControl !== undefined) {
    known.push([code.discoveryControl, sub().uint8(value.discoveryControl).finish()]);
  }
  if (value.bootServers !== undefined) {
    const writer = sub();
    for (const { type, addresses } of value.bootServers) {
      writer.uint16(type).uint8(addresses.length);
      for (const address of addresses) writer.bytes(encodeAddress(address));
    }
    known.push([code.bootServers, writer.finish()]);
  }
  if (value.bootMenu !== undefined) {
    const writer = sub();
    for (const { type, description } of value.bootMenu) {
      writer.uint16(type).uint8(description.length).text(description);
    }
    known.push([code.bootMenu, writer.finish()]);
  }
  if (value.menuPrompt !== undefined) {
    const { timeoutSeconds, prompt } = value.menuPrompt;
    known.push([code.menuPrompt, sub().uint8(timeoutSeconds).text(prompt).finish()]);
  }
  if (value.bootItem !== undefined) {
    const { type, layer } = value.bootItem;
    known.push([code.bootItem, sub().uint16(type).uint16(layer).finish()]);
  }
  return known;
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}
