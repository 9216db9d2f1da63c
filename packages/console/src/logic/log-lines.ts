/** The output of a step while it arrives, bounded. Pure but for the decoder that it keeps. */

/** Characters that a page keeps of one step's output; the oldest go first. */
export const logCharsMax = 200_000;

export interface LogText {
  readonly text: string;
  /** Something before it is not shown: it was not kept, here or there. */
  readonly isCut: boolean;
  /** The offset of the next piece. */
  readonly nextOffset: bigint;
}

export const emptyLog: LogText = { text: '', isCut: false, nextOffset: 0n };

/** The text with a piece that begins at `offset` of the whole. */
export function withPiece(log: LogText, piece: string, offset: bigint, bytes: number): LogText {
  const isGap = offset > log.nextOffset;
  const gap = isGap && log.text !== '' ? '\n… not kept …\n' : '';
  // Only the line that is not over may still be written over.
  const open = log.text.lastIndexOf('\n') + 1;
  const whole = log.text.slice(0, open) + printable(`${log.text.slice(open)}${gap}${piece}`);
  const isCut = log.isCut || isGap || whole.length > logCharsMax;
  return {
    text: whole.length > logCharsMax ? tail(whole) : whole,
    isCut,
    nextOffset: offset + BigInt(bytes),
  };
}

/** From the beginning of a line. */
function tail(text: string): string {
  const kept = text.slice(-logCharsMax);
  const line = kept.indexOf('\n');
  return line < 0 ? kept : kept.slice(line + 1);
}

const escape = String.fromCharCode(27);
const sequences = new RegExp(`${escape}\\[[0-9;?]*[A-Za-z]`, 'g');

/** Without the control sequences of terminals; of a line that was written over, the last form. */
function printable(text: string): string {
  return text.replace(sequences, '').split('\n').map(lastForm).join('\n');
}

function lastForm(line: string, index: number, lines: readonly string[]): string {
  const isOver = index < lines.length - 1;
  const written = isOver && line.endsWith('\r') ? line.slice(0, -1) : line;
  return written.slice(written.lastIndexOf('\r', written.length - 2) + 1);
}
