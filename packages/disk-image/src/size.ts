/**
 * How large a disk or an image is, in the words that people buy disks by. An entry of its own: who
 * only prints a size does not load what reads images.
 */
const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** "480 GB", "1.9 TB" */
export function sizeText(bytes: bigint): string {
  let value = Number(bytes);
  let unit = 0;
  while (value >= 1_000 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
