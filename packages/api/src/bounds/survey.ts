/**
 * What decoding a message would cost, found by walking its bytes before any object is made of them.
 *
 * V1 Nothing is allocated per field: the walk of 4 MiB takes some tens of milliseconds, and it ends
 *    at the first limit that is passed.
 * V2 It reads the wire format alone (protobuf encoding) and knows no transport.
 * V3 Bytes that are no message are not judged here: the decoder refuses them, with its own words.
 */
import type { DescField, DescMessage } from '@bufbuild/protobuf';

/** How much may stand in one message. */
export interface SurveyLimits {
  /** Largest size, in bytes. */
  readonly bytesMax: number;
  /** Fields that are set and elements of lists and maps, those of all nested messages included. */
  readonly elementsMax: number;
  /** Fields that the schema does not name, likewise. */
  readonly unknownFieldsMax: number;
}

/** What a message holds. */
export interface Survey {
  readonly elements: number;
  readonly unknownFields: number;
}

/** Why a message is refused; `found` is at least this. */
export interface Excess {
  readonly what: 'bytes' | 'elements' | 'unknownFields';
  readonly found: number;
  readonly most: number;
}

/** Groups and messages in each other; the decoder's own limit is higher. */
const depthMax = 64;
/** A varint of 64 bits has no more bytes. */
const varintBytesMax = 10;

/** Walks a message of this schema; answers what it holds, or the first limit that it passes. */
export function survey(
  schema: DescMessage,
  bytes: Uint8Array,
  limits: SurveyLimits,
): Survey | Excess {
  if (bytes.length > limits.bytesMax) {
    return { what: 'bytes', found: bytes.length, most: limits.bytesMax };
  }
  const walk = new Walk(bytes, limits);
  walk.message(schema, bytes.length, 0);
  return walk.excess ?? { elements: walk.elements, unknownFields: walk.unknownFields };
}

/** Bytes that a message costs to decode: its own, and what its objects take. */
export function decodeCost(bytes: number, { elements, unknownFields }: Survey): number {
  return bytes + elementCostBytes * (elements + unknownFields);
}

/** An object of a field or an element, measured: 80 to 250 bytes. */
const elementCostBytes = 128;

class Walk {
  readonly #bytes: Uint8Array;
  readonly #limits: SurveyLimits;
  #at = 0;
  elements = 0;
  unknownFields = 0;
  excess: Excess | undefined;

  constructor(bytes: Uint8Array, limits: SurveyLimits) {
    this.#bytes = bytes;
    this.#limits = limits;
  }

  /** Fields up to `end`; false: it is over, by a limit or because it is no message (V3). */
  message(schema: DescMessage, end: number, depth: number): boolean {
    const fields = fieldsOf(schema);
    while (this.#at < end) {
      const tag = this.#varint(end);
      if (tag === undefined) return false;
      const field = fields.get(tag >>> 3);
      const isWell =
        field === undefined ? this.#unknown(tag, end, depth) : this.#known(field, tag, end, depth);
      if (!isWell) return false;
    }
    return true;
  }

  #known(field: DescField, tag: number, end: number, depth: number): boolean {
    if (!this.#count('elements', 1)) return false;
    if ((tag & 7) !== lengthDelimited) return this.#skip(tag, end, depth);
    const length = this.#varint(end);
    if (length === undefined || this.#at + length > end || depth >= depthMax) return false;
    const stop = this.#at + length;
    const inner = messageOf(field);
    if (inner !== undefined) return this.message(inner, stop, depth + 1);
    if (field.fieldKind === 'map') return this.#mapEntry(field, stop, depth);
    if (isPackable(field) && !this.#count('elements', this.#packed(field, stop))) return false;
    this.#at = stop;
    return true;
  }

  #mapEntry(field: DescField & { fieldKind: 'map' }, stop: number, depth: number): boolean {
    const value = field.mapKind === 'message' ? field.message : undefined;
    while (this.#at < stop) {
      const tag = this.#varint(stop);
      if (tag === undefined || !this.#count('elements', 1)) return false;
      if (tag >>> 3 === mapValue && (tag & 7) === lengthDelimited && value !== undefined) {
        const length = this.#varint(stop);
        if (length === undefined || this.#at + length > stop || depth >= depthMax) return false;
        if (!this.message(value, this.#at + length, depth + 2)) return false;
      } else if (!this.#skip(tag, stop, depth)) return false;
    }
    return true;
  }

  /** Elements of a packed list: of varints as many as bytes that end one. */
  #packed(field: DescField, stop: number): number {
    const length = stop - this.#at;
    const fixed = field.scalar === undefined ? undefined : fixedBytes.get(field.scalar);
    if (fixed !== undefined) return length / fixed;
    let count = 0;
    for (let at = this.#at; at < stop; at += 1) if ((this.#bytes[at] as number) < 0x80) count += 1;
    return count;
  }

  #unknown(tag: number, end: number, depth: number): boolean {
    return this.#count('unknownFields', 1) && this.#skip(tag, end, depth);
  }

  #skip(tag: number, end: number, depth: number): boolean {
    switch (tag & 7) {
      case 0:
        return this.#varint(end) !== undefined;
      case 1:
        return this.#advance(8, end);
      case lengthDelimited: {
        const length = this.#varint(end);
        return length !== undefined && this.#advance(length, end);
      }
      case 3:
        return this.#group(end, depth);
      case 5:
        return this.#advance(4, end);
      default:
        return false;
    }
  }

  /** Its fields count as well: a decoder makes something of each. */
  #group(end: number, depth: number): boolean {
    while (this.#at < end && depth < depthMax) {
      const tag = this.#varint(end);
      if (tag === undefined) return false;
      if ((tag & 7) === 4) return true;
      if (!this.#count('unknownFields', 1) || !this.#skip(tag, end, depth + 1)) return false;
    }
    return false;
  }

  #advance(bytes: number, end: number): boolean {
    this.#at += bytes;
    return this.#at <= end;
  }

  /** Its low 32 bits; undefined: there is none before `end`. */
  #varint(end: number): number | undefined {
    let value = 0;
    for (let index = 0; index < varintBytesMax && this.#at < end; index += 1) {
      const byte = this.#bytes[this.#at] as number;
      this.#at += 1;
      if (index < 5) value |= (byte & 0x7f) << (7 * index);
      if (byte < 0x80) return value >>> 0;
    }
    return undefined;
  }

  #count(what: 'elements' | 'unknownFields', more: number): boolean {
    this[what] += more;
    const most = what === 'elements' ? this.#limits.elementsMax : this.#limits.unknownFieldsMax;
    if (this[what] <= most) return true;
    this.excess = { what, found: this[what], most };
    return false;
  }
}

const lengthDelimited = 2;
const mapValue = 2;

/** Of the numbers that descriptors give to scalar types: bytes of those of one size. */
const fixedBytes: ReadonlyMap<number, number> = new Map([
  [1, 8], // double
  [2, 4], // float
  [6, 8], // fixed64
  [7, 4], // fixed32
  [15, 4], // sfixed32
  [16, 8], // sfixed64
]);
const unpackableScalars: ReadonlySet<number> = new Set([9, 12]); // string, bytes

function messageOf(field: DescField): DescMessage | undefined {
  if (field.fieldKind === 'message') return field.message;
  return field.fieldKind === 'list' && field.listKind === 'message' ? field.message : undefined;
}

function isPackable(field: DescField): boolean {
  if (field.fieldKind !== 'list' || field.listKind === 'message') return false;
  return field.scalar === undefined || !unpackableScalars.has(field.scalar);
}

const known = new WeakMap<DescMessage, ReadonlyMap<number, DescField>>();

function fieldsOf(schema: DescMessage): ReadonlyMap<number, DescField> {
  const found = known.get(schema);
  if (found !== undefined) return found;
  const fields = new Map(schema.fields.map((field) => [field.number, field]));
  known.set(schema, fields);
  return fields;
}
