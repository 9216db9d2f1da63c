/** The end of a program's output, bounded, and its whole length. */

/** The kept part of one step's output: its final report and its record hold it. */
export const outputTailBytesMax = 64 * 1024;
/** The last lines of it that are shown everywhere. */
export const lastOutputCharactersMax = 512;
const lastLinesMax = 5;
/** The length of the last line in the message of a failure. */
export const lastLineCharactersMax = 200;

/** Bytes go in, the last `bytesMax` of them stay. */
export class OutputTail {
  readonly #bytesMax: number;
  #kept: Uint8Array[] = [];
  #keptBytes = 0;
  #totalBytes = 0;

  constructor(bytesMax: number = outputTailBytesMax) {
    this.#bytesMax = bytesMax;
  }

  /** All that was written so far. */
  get totalBytes(): number {
    return this.#totalBytes;
  }

  push(piece: Uint8Array): void {
    this.#totalBytes += piece.length;
    this.#kept.push(piece.slice(Math.max(0, piece.length - this.#bytesMax)));
    this.#keptBytes += Math.min(piece.length, this.#bytesMax);
    // Twice the bound before it is copied: small pieces cost no copy each.
    if (this.#keptBytes <= 2 * this.#bytesMax) return;
    this.#kept = [this.tail()];
    this.#keptBytes = this.#bytesMax;
  }

  /** The last bytes, at most `bytesMax`. */
  tail(): Uint8Array {
    const whole = new Uint8Array(Buffer.concat(this.#kept));
    return whole.slice(Math.max(0, whole.length - this.#bytesMax));
  }
}

/** The last lines of an output as text, without control characters; empty when there is none. */
export function lastLines(tail: Uint8Array): string {
  const lines = linesOf(tail).slice(-lastLinesMax);
  return cutFront(lines.join('\n'), lastOutputCharactersMax);
}

/** The last line that is not empty; empty when there is none. */
export function lastLine(tail: Uint8Array): string {
  return cutFront(linesOf(tail).at(-1) ?? '', lastLineCharactersMax);
}

function linesOf(tail: Uint8Array): string[] {
  // The tail may begin within a character.
  const start = tail.findIndex((byte) => (byte & 0xc0) !== 0x80);
  const text = new TextDecoder().decode(tail.subarray(Math.max(0, start)));
  return text
    .split(/\r\n|\n|\r/)
    .map((line) => line.replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, '').trimEnd())
    .filter((line) => line.trim() !== '');
}

/** The end of the text, whole characters. */
function cutFront(text: string, charactersMax: number): string {
  return text.length <= charactersMax ? text : text.slice(-charactersMax).toWellFormed();
}
