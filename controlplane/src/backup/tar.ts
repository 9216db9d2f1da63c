/** A tar archive of plain files (POSIX.1-1988 ustar; sizes above 8 GiB as GNU has them). Pure. */
const blockBytes = 512;
const nameBytesMax = 100;
const octalSizeMax = 0o77777777777;

/** The header before a file's contents; all files are readable only by their owner. */
export function tarHeader(name: string, sizeBytes: number, atMs: number): Uint8Array {
  if (Buffer.byteLength(name) > nameBytesMax) throw new Error(`${name} is too long for an archive`);
  const block = Buffer.alloc(blockBytes);
  const octal = (value: number, at: number, length: number) =>
    block.write(
      `${Math.trunc(value)
        .toString(8)
        .padStart(length - 1, '0')}\0`,
      at,
      'ascii',
    );
  block.write(name, 0, 'utf8');
  octal(0o600, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  if (sizeBytes <= octalSizeMax) octal(sizeBytes, 124, 12);
  else {
    block[124] = 0x80;
    block.writeBigUInt64BE(BigInt(sizeBytes), 128);
  }
  octal(atMs / 1_000, 136, 12);
  block.write('        ', 148, 'ascii');
  block.write('0', 156, 'ascii');
  block.write('ustar\u000000', 257, 'ascii');
  const sum = block.reduce((before, byte) => before + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'ascii');
  return block;
}

/** The padding of a file's contents to whole blocks. */
export function tarPadding(sizeBytes: number): Uint8Array {
  return new Uint8Array((blockBytes - (sizeBytes % blockBytes)) % blockBytes);
}

/** The end of an archive. */
export const tarEnd: Uint8Array = new Uint8Array(2 * blockBytes);
