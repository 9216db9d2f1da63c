/**
 * The cost of decoding a message, found by walking its bytes before any object is made of them.
 *
 * V1 Nothing is allocated per field: the walk of 4 MiB takes some tens of milliseconds, and it ends
 *    at the first limit that is passed.
 * V2 It reads the wire format alone (protobuf encoding) and knows no transport.
 * V3 A message that the walk cannot follow to its last byte is malformed, and is never decoded. A
 *    decoder reads a known field by its type, and ignores the wire type before it. A field with
 *    another wire type would lead the walk and the decoder apart, so it is malformed too.
 */
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';

/** The limits of one message. */
export interface SurveyLimits {
  /** Largest size, in bytes. */
  readonly bytesMax: number;
  /** Fields that are set and elements of lists and maps, those of all nested messages included. */
  readonly elementsMax: number;
  /** Fields that the schema does not name, likewise. */
  readonly unknownFieldsMax: number;
}

/** The counts of a message. */
export interface MessageSurvey {
  readonly elements: number;
  readonly unknownFields: number;
}

/** Why a message is refused; `found` is at least this. */
export interface Excess {
  readonly limit: 'bytes' | 'elements' | 'unknownFields';
  readonly found: number;
  readonly most: number;
}

/** Groups and messages in each other; more are malformed. */
const depthMax = 64;
/** A varint of 64 bits has no more bytes. */
const varintBytesMax = 10;

/** Walks a message of this schema; returns its counts, or the first limit that it passes. */
export function surveyMessage(
  schema: DescMessage,
  bytes: Uint8Array,
  limits: SurveyLimits,
): MessageSurvey | Excess | 'malformed' {
  if (bytes.length > limits.bytesMax) {
    return { limit: 'bytes', found: bytes.length, most: limits.bytesMax };
  }
  const walk = new Walk(bytes, limits);
  const isWell = walk.message(schema, bytes.length, 0);
  if (walk.excess !== undefined) return walk.excess;
  if (!isWell) return 'malformed';
  return { elements: walk.elements, unknownFields: walk.unknownFields };
}

/** Bytes that a message costs to decode: its own, and those of its objects. */
export function decodeCost(bytes: number, { elements, unknownFields }: MessageSurvey): number {
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
    const wireType = tag & 7;
    const isPacked = wireType === lengthDelimited && isPackable(field);
    if (!isPacked && wireType !== wireTypeOf(field)) return false;
    if (wireType !== lengthDelimited) return this.#skip(tag, end, depth);
    const length = this.#varint(end);
    if (length === undefined || this.#at + length > end || depth >= depthMax) return false;
    const stop = this.#at + length;
    const inner = messageOf(field);
    if (inner !== undefined) return this.message(inner, stop, depth + 1);
    if (field.fieldKind === 'map') return this.#mapEntry(field, stop, depth);
    if (isPacked) return this.#packed(field, stop);
    this.#at = stop;
    return true;
  }

  #mapEntry(field: DescField & { fieldKind: 'map' }, stop: number, depth: number): boolean {
    const value = field.mapKind === 'message' ? field.message : undefined;
    while (this.#at < stop) {
      const tag = this.#varint(stop);
      if (tag === undefined || !this.#count('elements', 1)) return false;
      if (!fitsEntry(field, tag)) return false;
      if (tag >>> 3 === mapValue && value !== undefined) {
        const length = this.#varint(stop);
        if (length === undefined || this.#at + length > stop || depth >= depthMax) return false;
        if (!this.message(value, this.#at + length, depth + 2)) return false;
      } else if (!this.#skip(tag, stop, depth)) return false;
    }
    return true;
  }

  /** The elements of a packed list, up to `stop`: none of them may reach behind it. */
  #packed(field: DescField, stop: number): boolean {
    const length = stop - this.#at;
    const size = fixedBytes.get(elementWireType(field));
    let count = 0;
    if (size !== undefined) count = length / size;
    else {
      // One varint for each byte that ends one.
      for (let at = this.#at; at < stop; at += 1) {
        if ((this.#bytes[at] as number) < 0x80) count += 1;
      }
    }
    const isWhole =
      size === undefined
        ? length === 0 || (this.#bytes[stop - 1] as number) < 0x80
        : length % size === 0;
    this.#at = stop;
    return isWhole && this.#count('elements', count);
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

  #count(limit: 'elements' | 'unknownFields', more: number): boolean {
    this[limit] += more;
    const most = limit === 'elements' ? this.#limits.elementsMax : this.#limits.unknownFieldsMax;
    if (this[limit] <= most) return true;
    this.excess = { limit, found: this[limit], most };
    return false;
  }
}

const lengthDelimited = 2;
const mapKey = 1;
const mapValue = 2;

/** Wire types of scalars (protobuf encoding, "Message Structure"); all others are varints. */
const scalarWireTypes: ReadonlyMap<ScalarType, number> = new Map([
  [ScalarType.DOUBLE, 1],
  [ScalarType.FIXED64, 1],
  [ScalarType.SFIXED64, 1],
  [ScalarType.FLOAT, 5],
  [ScalarType.FIXED32, 5],
  [ScalarType.SFIXED32, 5],
  [ScalarType.STRING, lengthDelimited],
  [ScalarType.BYTES, lengthDelimited],
]);

/** Bytes of a value, by its wire type, where all have the same. */
const fixedBytes: ReadonlyMap<number, number> = new Map([
  [1, 8],
  [5, 4],
]);

function scalarWireType(scalar: ScalarType | undefined): number {
  return scalar === undefined ? 0 : (scalarWireTypes.get(scalar) ?? 0);
}

/** The wire type of one value, not packed. Undefined: a kind that our schemas do not use. */
function wireTypeOf(field: DescField): number | undefined {
  switch (field.fieldKind) {
    case 'scalar':
      return scalarWireType(field.scalar);
    case 'enum':
      return 0;
    case 'map':
      return lengthDelimited;
    case 'message':
      return field.delimitedEncoding ? undefined : lengthDelimited;
    case 'list':
      return field.listKind === 'message' && field.delimitedEncoding
        ? undefined
        : elementWireType(field);
  }
}

/** The wire type of one element of a list that is not packed. */
function elementWireType(field: DescField): number {
  return messageOf(field) === undefined ? scalarWireType(field.scalar) : lengthDelimited;
}

/** Whether a field of a map's entry has the wire type of the map's keys or values. */
function fitsEntry(field: DescField & { fieldKind: 'map' }, tag: number): boolean {
  const wireType = tag & 7;
  if (tag >>> 3 === mapKey) return wireType === scalarWireType(field.mapKey);
  if (tag >>> 3 !== mapValue) return true;
  return (
    wireType === (field.message === undefined ? scalarWireType(field.scalar) : lengthDelimited)
  );
}

function messageOf(field: DescField): DescMessage | undefined {
  if (field.fieldKind === 'message') return field.message;
  return field.fieldKind === 'list' && field.listKind === 'message' ? field.message : undefined;
}

function isPackable(field: DescField): boolean {
  return field.fieldKind === 'list' && elementWireType(field) !== lengthDelimited;
}

const known = new WeakMap<DescMessage, ReadonlyMap<number, DescField>>();

function fieldsOf(schema: DescMessage): ReadonlyMap<number, DescField> {
  const found = known.get(schema);
  if (found !== undefined) return found;
  const fields = new Map(schema.fields.map((field) => [field.number, field]));
  known.set(schema, fields);
  return fields;
}
