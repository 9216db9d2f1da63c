/**
 * Where the demo shows itself: on a terminal a picture that stays at the bottom while the story is
 * told above it, elsewhere plain lines, one for each change.
 *
 * V1 A picture is only painted where it fits, in columns and rows; else it says so, once.
 * V2 After `close` the terminal is as it was: cursor shown, picture left as text.
 */
import { columnsMin, lineOf, type Picture, paint } from './paint.ts';
import type { HostProgress } from './progress.ts';

/** What the screen needs of standard output. */
export interface Terminal {
  readonly isTerminal: boolean;
  readonly inColour: boolean;
  /** Now; it may change. */
  size(): { readonly columns: number; readonly rows: number };
  write(text: string): void;
}

const clearBelow = '\x1b[J';
const hideCursor = '\x1b[?25l';
const showCursor = '\x1b[?25h';
const rowsSpare = 2;

export class Screen {
  readonly #terminal: Terminal;
  #picture: Picture | undefined;
  /** Lines of the picture that stand on the terminal now. */
  #painted = 0;
  #hasSaidWhy = false;
  #isClosed = false;
  readonly #said = new Map<string, string>();

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    if (terminal.isTerminal) terminal.write(hideCursor);
  }

  /** A part of the story: stays, and scrolls away upward. */
  say(text: string): void {
    this.#erase();
    this.#terminal.write(`${text}\n`);
    this.#paint();
  }

  show(picture: Picture): void {
    this.#picture = picture;
    if (this.#fits(picture)) {
      this.#erase();
      this.#paint();
      return;
    }
    this.#erase();
    this.#sayWhy(picture);
    for (const host of picture.hosts) this.#sayChange(host, picture.elapsedMs);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#terminal.isTerminal) this.#terminal.write(showCursor);
  }

  #fits(picture: Picture): boolean {
    const { columns, rows } = this.#terminal.size();
    const lines = picture.hosts.length + rowsSpare + 3;
    return this.#terminal.isTerminal && columns >= columnsMin && rows >= lines;
  }

  #sayWhy({ hosts }: Picture): void {
    if (this.#hasSaidWhy || !this.#terminal.isTerminal) return;
    this.#hasSaidWhy = true;
    const { columns, rows } = this.#terminal.size();
    this.#terminal.write(
      `This terminal has ${columns} columns and ${rows} rows; the bars need ${columnsMin} and ` +
        `${hosts.length + rowsSpare + 3}. Here are plain lines instead.\n`,
    );
  }

  #sayChange(host: HostProgress, elapsedMs: number): void {
    // Percents would be a line each; a change of state or step is what counts.
    const key = `${host.state} ${host.detail.replace(/ \d+ %$/, '')}`;
    if (this.#said.get(host.name) === key) return;
    this.#said.set(host.name, key);
    this.#terminal.write(`${lineOf(host, elapsedMs)}\n`);
  }

  #paint(): void {
    const picture = this.#picture;
    if (picture === undefined || !this.#fits(picture)) return;
    const { columns } = this.#terminal.size();
    const lines = paint(picture, columns, this.#terminal.inColour);
    this.#terminal.write(`${lines.join('\n')}\n`);
    this.#painted = lines.length;
  }

  #erase(): void {
    if (this.#painted > 0) this.#terminal.write(`\x1b[${this.#painted}F${clearBelow}`);
    this.#painted = 0;
  }
}
