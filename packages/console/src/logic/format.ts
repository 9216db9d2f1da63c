/** Times, sizes and names as the console writes them. Pure. */
import type { Timestamp } from '@bufbuild/protobuf/wkt';

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

const steps = [
  [dayMs, 'd'],
  [hourMs, 'h'],
  [minuteMs, 'min'],
  [secondMs, 's'],
] as const;

/** "45 s", "12 min", "3 h 20 min", "2 d 4 h": the largest unit and the one below it. */
export function span(durationMs: number): string {
  const wholeMs = Math.max(0, Math.round(durationMs / secondMs)) * secondMs;
  const at = steps.findIndex(([unitMs]) => wholeMs >= unitMs);
  const largest = steps[at];
  if (largest === undefined) return '0 s';
  const [unitMs, unit] = largest;
  const count = Math.floor(wholeMs / unitMs);
  const below = steps[at + 1];
  const isPlain = below === undefined || unit === 'min' || count >= 10;
  const rest = isPlain ? 0 : Math.floor((wholeMs % unitMs) / below[0]);
  return rest === 0 ? `${count} ${unit}` : `${count} ${unit} ${rest} ${below?.[1]}`;
}

/** "5 min ago", "in 2 h", "now". */
export function ago(nowMs: number, thenMs: number): string {
  const apartMs = nowMs - thenMs;
  if (Math.abs(apartMs) < secondMs) return 'now';
  return apartMs > 0 ? `${span(apartMs)} ago` : `in ${span(-apartMs)}`;
}

/** Milliseconds of a time on the wire; undefined: unset. */
export function msOf(time: Timestamp | undefined): number | undefined {
  return time && Number(time.seconds) * secondMs + Math.floor(time.nanos / 1_000_000);
}

/** "2026-03-01 14:05:09 UTC" */
export function utc(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

const prefixes = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** "3.84 TB", "16.8 MB", "512 B": powers of 1000, as on the label of a disk. */
export function bytesText(bytes: bigint | number): string {
  let value = Number(bytes);
  let at = 0;
  while (value >= 1_000 && at < prefixes.length - 1) {
    value /= 1_000;
    at += 1;
  }
  const digits = at === 0 ? String(value) : String(Number(value.toPrecision(3)));
  return `${digits} ${prefixes[at]}`;
}

/** "64 GiB": powers of 1024, as of memory. */
export function memoryText(bytes: bigint): string {
  const gib = Number(bytes) / 2 ** 30;
  return gib >= 1 ? `${Number(gib.toPrecision(3))} GiB` : `${Math.round(gib * 1_024)} MiB`;
}

/** "1,234" */
export function grouped(count: number | bigint): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** "h1" of "hosts/h1"; a text without a slash stays. */
export function idOf(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

/** "registry/web@sha256:0123456789ab…" of an image by digest; a tag stays whole. */
export function shortImage(image: string): string {
  return image.replace(/(sha256[:=][0-9a-f]{12})[0-9a-f]+/, '$1…');
}

/** Hex of bytes. */
export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** "identity mismatch" of "identityMismatch" or "identity-mismatch". */
export function spaced(word: string): string {
  return word
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .replaceAll(/[-_]/g, ' ')
    .toLowerCase();
}
