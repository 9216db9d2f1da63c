/** Checks of the small texts that several resources share. */
import { toJson } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { quote, type Violations } from './violations.ts';

const labelsMax = 64;
const labelKey = /^[a-z0-9]([a-z0-9._/-]{0,61}[a-z0-9])?$/;
const labelValueCharsMax = 63;
const reasonCharsMax = 500;
const requestId = /^[A-Za-z0-9._:-]{1,64}$/;

/** Any character that controls a terminal or a log. */
export const controlCharacters = /\p{Cc}/u;

/** Labels: at most 64, keys like "site" or "example.com/site", values up to 63 characters. */
export function checkLabels(
  field: string,
  labels: Readonly<Record<string, string>>,
  violations: Violations,
): void {
  const entries = Object.entries(labels);
  if (entries.length > labelsMax) {
    violations.add(field, `has ${entries.length} labels; at most ${labelsMax} are kept`);
    return;
  }
  for (const [key, value] of entries) {
    if (!labelKey.test(key)) {
      const wanted =
        '1 to 63 characters of a-z, 0-9, ".", "_", "/" and "-", letters or digits at both ends';
      violations.add(field, `has the key ${quote(key)}; a key has ${wanted}`);
    }
    if (value.length > labelValueCharsMax || controlCharacters.test(value)) {
      const wanted = `at most ${labelValueCharsMax} characters without control characters`;
      violations.add(`${field}[${quote(key)}]`, `must have ${wanted}`);
    }
  }
}

/** "2026-01-01T00:00:00Z" */
export function timeText(time: Timestamp): string {
  return toJson(TimestampSchema, time);
}

/** A person's reason: one line. */
export function checkReason(field: string, reason: string, violations: Violations): void {
  if (reason.length <= reasonCharsMax && !controlCharacters.test(reason)) return;
  violations.add(field, `must be one line of at most ${reasonCharsMax} characters`);
}

/** An id that makes a request repeatable; empty is allowed. */
export function checkRequestId(id: string, violations: Violations): void {
  if (id === '' || requestId.test(id)) return;
  violations.add(
    'request_id',
    'must have 1 to 64 characters of A-Z, a-z, 0-9 and "._:-", a UUID say',
  );
}
