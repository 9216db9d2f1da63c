/**
 * Where the demo shows itself: on a terminal a picture that stays at the bottom while messages
 * appear above it, elsewhere plain lines, one for each change of state.
 *
 * V1 A picture is only painted where it fits, in columns and rows; else it says so, once.
 * V2 After `close` the terminal is as it was: cursor shown, picture left as text.
 */
import { clipLine, columnsMin, lineOf, type Picture, paint } from './paint.ts';
import type { HostProgress } from './progress.ts';
import { wrap } from './wrap.ts';

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
const keysRemembered = 3;

export class DemoScreen {
  readonly #terminal: Terminal;
  readonly #isVerbose: boolean;
  #picture: Picture | undefined;
  /** Lines of the picture that are on the terminal now. */
  #painted = 0;
  #hasShownWhy = false;
  #isClosed = false;
  /** The latest line of each host, and the one before that. */
  readonly #shown = new Map<string, readonly string[]>();

  /** `isVerbose`: plain lines show every step, and not only every state. */
  constructor(terminal: Terminal, isVerbose: boolean) {
    this.#terminal = terminal;
    this.#isVerbose = isVerbose;
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
    // Later output comes below the last picture.
    this.#picture = undefined;
    this.#painted = 0;
    if (this.#terminal.isTerminal) this.#terminal.write(showCursor);
  }

  #fits(picture: Picture): boolean {
    const { columns, rows } = this.#terminal.size();
    const lines = picture.hosts.length + rowsSpare + 3;
    return this.#terminal.isTerminal && columns >= columnsMin && rows >= lines;
  }

  #sayWhy({ hosts }: Picture): void {
    if (this.#hasShownWhy || !this.#terminal.isTerminal) return;
    this.#hasShownWhy = true;
    const { columns, rows } = this.#terminal.size();
    const text =
      `This terminal has ${columns} columns and ${rows} rows; the bars need ${columnsMin} and ` +
      `${hosts.length + rowsSpare + 3}. Here are plain lines instead.`;
    this.#terminal.write(`${wrap(text, columns - 1, '')}\n`);
  }

  #sayChange(of: HostProgress, elapsedMs: number): void {
    const host = this.#isVerbose || of.mood !== 'busy' ? of : { ...of, detail: '' };
    // Percents would be a line each; numbers in messages are times and counts: no news either.
    const key = `${host.state} ${host.detail.replace(/ \d+ %$/, '').replace(/\d+/g, '#')}`;
    const before = this.#shown.get(host.name) ?? [];
    // Alternating waits and retries are shown once, until something else happens.
    if (before.includes(key)) return;
    this.#shown.set(host.name, [...before, key].slice(-keysRemembered));
    const line = lineOf(host, elapsedMs);
    const { isTerminal } = this.#terminal;
    // A terminal would break it in the middle of a word.
    const shown = isTerminal ? clipLine(line, this.#terminal.size().columns - 1) : line;
    this.#terminal.write(`${shown}\n`);
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
