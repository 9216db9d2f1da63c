/** Messages that people write as one value in files, as they do in flags. Pure. */
import { type DescMessage, toJson } from '@bufbuild/protobuf';
import { DurationSchema, durationFromMs } from '@bufbuild/protobuf/wkt';
import { PoolAmountSchema } from '@rackwright/messages';
import { parseDuration, parseInstant } from '../output/time.ts';
import type { Plain } from './plain.ts';

/** A value, or the text that would be right. */
export type ReadShort =
  | { readonly kind: 'ok'; readonly plain: Plain }
  | { readonly kind: 'bad'; readonly right: string };

const durationShape = /^\d{1,12}(\.\d{1,9})?s$/;

/** The short form of a message, as JSON has it; undefined: it has to be an object. */
export function readShort({ typeName }: DescMessage, value: unknown): ReadShort | undefined {
  switch (typeName) {
    case 'google.protobuf.Duration':
      return readDuration(value);
    case 'google.protobuf.Timestamp': {
      const isTime = typeof value === 'string' && parseInstant(value) !== undefined;
      if (isTime) return { kind: 'ok', plain: value };
      return { kind: 'bad', right: 'text as "2026-01-31T12:00:00Z"' };
    }
    case PoolAmountSchema.typeName:
      return readAmount(value);
    default:
      return undefined;
  }
}

function readDuration(value: unknown): ReadShort {
  const text = typeof value === 'string' ? value : '';
  const ms = parseDuration(text);
  if (ms !== undefined) return { kind: 'ok', plain: toJson(DurationSchema, durationFromMs(ms)) };
  // The form that `get` prints.
  if (durationShape.test(text)) return { kind: 'ok', plain: text };
  return { kind: 'bad', right: 'text as 90s, 30m, 2h or 3d' };
}

/** 2 or 25%; any other value may be an object still. */
function readAmount(value: unknown): ReadShort | undefined {
  if (value === undefined) return undefined;
  const text = typeof value === 'string' || typeof value === 'number' ? `${value}` : '';
  const [, digits, sign] = /^(\d{1,4})(%?)$/.exec(text) ?? [];
  if (digits === undefined) {
    return { kind: 'bad', right: '2, 25%, {count: 2} or {percent: 25}' };
  }
  return { kind: 'ok', plain: { [sign === '%' ? 'percent' : 'count']: Number(digits) } };
}
