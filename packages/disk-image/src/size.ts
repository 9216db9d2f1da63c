/**
 * The size of a disk or an image, in the units that people buy disks by. A package entry of its
 * own: a program that only prints a size does not load the readers of images.
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
