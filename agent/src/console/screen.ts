/**
 * The text on a terminal's screen after any bytes: lines of plain text for people. It has no
 * effect outside this object.
 *
 * S1 Its size is bounded: rows, columns, and the lines that have scrolled away.
 * S2 Its lines hold no control, format or private characters: nothing that a machine writes can act
 *    on a reader's terminal.
 * S3 What is cleared away, as firmware does after a crash, is kept as if it had scrolled away.
 */

export interface ScreenSize {
  readonly rows: number;
  readonly columns: number;
}

/** Serial consoles have 24 or 25 rows; a kernel writes long lines. */
export const defaultScreenSize: ScreenSize = { rows: 40, columns: 132 };

/** Parameters of an escape sequence; further ones are dropped. */
const parametersMax = 16;
/** A larger parameter counts as this. */
const parameterMax = 9_999;

const escape = '\x1b';

type State = 'text' | 'escape' | 'charset' | 'csi' | 'string' | 'stringEscape';

export class Screen {
  readonly #size: ScreenSize;
  readonly #decoder = new TextDecoder();
  /** Oldest first, at most `rows`. */
  #gone: string[] = [];
  #cells: string[][];
  #row = 0;
  #column = 0;
  #state: State = 'text';
  #parameters: number[] = [];

  constructor(size: ScreenSize = defaultScreenSize) {
    this.#size = size;
    this.#cells = emptyRows(size.rows);
  }

  write(bytes: Uint8Array): void {
    for (const character of this.#decoder.decode(bytes, { stream: true })) this.#take(character);
  }

  /** The last lines, at most `rows`; without empty ones at either end. */
  lines(): readonly string[] {
    const all = [...this.#gone, ...this.#cells.map(textOf)];
    const first = all.findIndex((line) => line !== '');
    if (first === -1) return [];
    const last = all.findLastIndex((line) => line !== '');
    return all.slice(Math.max(first, last + 1 - this.#size.rows), last + 1);
  }

  #take(character: string): void {
    switch (this.#state) {
      case 'text':
        return this.#text(character);
      case 'escape':
        return this.#escaped(character);
      case 'charset':
        this.#state = 'text';
        return;
      case 'csi':
        return this.#control(character);
      case 'string':
        if (character === escape) this.#state = 'stringEscape';
        // A title has no line break: its sender has been cut off.
        else if (character === '\x07' || character === '\n') this.#state = 'text';
        return;
      case 'stringEscape':
        this.#state = 'text';
        return;
    }
  }

  #text(character: string): void {
    switch (character) {
      case escape:
        this.#state = 'escape';
        return;
      case '\r':
        this.#column = 0;
        return;
      case '\n':
      case '\v':
      case '\f':
        return this.#lineFeed();
      case '\b':
        this.#column = Math.max(0, this.#column - 1);
        return;
      case '\t':
        this.#column = Math.min(this.#size.columns - 1, this.#column - (this.#column % 8) + 8);
        return;
      default:
        if (!/[\p{C}\p{Zl}\p{Zp}]/u.test(character)) this.#put(character);
    }
  }

  #put(character: string): void {
    if (this.#column >= this.#size.columns) {
      this.#column = 0;
      this.#lineFeed();
    }
    const row = this.#cells[this.#row];
    if (row === undefined) return;
    while (row.length < this.#column) row.push(' ');
    row[this.#column] = character;
    this.#column += 1;
  }

  #lineFeed(): void {
    if (this.#row + 1 < this.#size.rows) {
      this.#row += 1;
      return;
    }
    const [first = []] = this.#cells.splice(0, 1);
    this.#cells.push([]);
    this.#keep([textOf(first)]);
  }

  #escaped(character: string): void {
    this.#state = 'text';
    switch (character) {
      case '[':
        this.#state = 'csi';
        this.#parameters = [0];
        return;
      case ']':
      case 'P':
      case 'X':
      case '^':
      case '_':
        this.#state = 'string';
        return;
      case '(':
      case ')':
      case '*':
      case '+':
      case '#':
      case '%':
        this.#state = 'charset';
        return;
      case 'D':
        return this.#lineFeed();
      case 'E':
        this.#column = 0;
        return this.#lineFeed();
      case 'M':
        this.#row = Math.max(0, this.#row - 1);
        return;
      case 'c':
        this.#clear();
        return this.#move(0, 0);
    }
  }

  #control(character: string): void {
    const at = this.#parameters.length - 1;
    if (character >= '0' && character <= '9') {
      const value = (this.#parameters[at] ?? 0) * 10 + Number(character);
      this.#parameters[at] = Math.min(value, parameterMax);
      return;
    }
    if (character === ';' || character === ':') {
      if (at + 1 < parametersMax) this.#parameters.push(0);
      return;
    }
    if (character >= ' ' && character <= '?') return;
    this.#state = character === escape ? 'escape' : 'text';
    if (character >= '@' && character <= '~') this.#act(character);
  }

  #act(final: string): void {
    const [first = 0, second = 0] = this.#parameters;
    const count = Math.max(1, first);
    switch (final) {
      case 'A':
        return this.#move(this.#row - count, this.#column);
      case 'B':
        return this.#move(this.#row + count, this.#column);
      case 'C':
        return this.#move(this.#row, this.#column + count);
      case 'D':
        return this.#move(this.#row, this.#column - count);
      case 'E':
        return this.#move(this.#row + count, 0);
      case 'F':
        return this.#move(this.#row - count, 0);
      case 'G':
        return this.#move(this.#row, count - 1);
      case 'd':
        return this.#move(count - 1, this.#column);
      case 'H':
      case 'f':
        return this.#move(count - 1, Math.max(1, second) - 1);
      case 'J':
        return this.#eraseScreen(first);
      case 'K':
        return this.#eraseLine(first);
    }
  }

  #move(row: number, column: number): void {
    this.#row = Math.min(Math.max(0, row), this.#size.rows - 1);
    this.#column = Math.min(Math.max(0, column), this.#size.columns - 1);
  }

  #eraseScreen(part: number): void {
    if (part >= 2 || (part === 0 && this.#row === 0 && this.#column === 0)) return this.#clear();
    this.#eraseLine(part);
    const [from, to] = part === 0 ? [this.#row + 1, this.#size.rows] : [0, this.#row];
    for (let row = from; row < to; row += 1) this.#cells[row] = [];
  }

  #eraseLine(part: number): void {
    const row = this.#cells[this.#row] ?? [];
    if (part === 0) row.length = Math.min(row.length, this.#column);
    else if (part === 1) row.fill(' ', 0, this.#column + 1);
    else row.length = 0;
  }

  /** (S3) */
  #clear(): void {
    this.#keep(this.#cells.map(textOf).filter((line) => line !== ''));
    this.#cells = emptyRows(this.#size.rows);
  }

  #keep(lines: readonly string[]): void {
    this.#gone = [...this.#gone, ...lines].slice(-this.#size.rows);
  }
}

function emptyRows(count: number): string[][] {
  return Array.from({ length: count }, () => []);
}

function textOf(row: readonly string[]): string {
  return row.join('').trimEnd();
}
