/**
 * Which bytes of a console are shown, and which keys end the view. No effect outside these objects.
 *
 * 1. A file or a program gets text without control sequences.
 * 2. A terminal gets sequences that are known to draw on it. All others are left out, such as those
 *    that make it answer or act beyond its screen (titles, clipboard, printers, files): the writer
 *    to a console is not its viewer.
 */

const escape = '\x1b';
/** The maximum length of a control sequence; a longer one is none. */
const sequenceCharactersMax = 64;
/**
 * Sequences that draw, behind the ESC (ECMA-48, xterm): functions that move, erase, insert, scroll
 * and colour, and the modes that control them; of private modes those of the cursor and of the
 * other screen. The modes of mouse and focus are left out, because a terminal answers by them.
 */
const draws = [
  /^\[[\d;:]*[@A-MPSTXZ`abd-hlmrsu]$/,
  /^\[\?[\d;]*[JK]$/,
  /^\[\?(?:(?:[13567]|12|25|47|104[789])(?:;(?!$|[hl])|(?=[hl])))+[hl]$/,
  /^\[!p$/,
];
/** After ESC: identify (Z), and the beginnings of strings. */
const leftOutAfterEscape = new Set(['Z']);
const stringsAfterEscape = new Set([']', 'P', 'X', '^', '_']);
const eightBitStrings = new Set(['\u0090', '\u0098', '\u009d', '\u009e', '\u009f']);

type State = 'text' | 'escape' | 'sequence' | 'string' | 'stringEscape';

export class ConsoleText {
  readonly #isTerminal: boolean;
  readonly #decoder = new TextDecoder();
  #state: State = 'text';
  #sequence = '';

  constructor(isTerminal: boolean) {
    this.#isTerminal = isTerminal;
  }

  take(bytes: Uint8Array): string {
    let shown = '';
    for (const character of this.#decoder.decode(bytes, { stream: true })) {
      shown += this.#take(character);
    }
    return shown;
  }

  #take(character: string): string {
    switch (this.#state) {
      case 'text':
        return this.#text(character);
      case 'escape':
        return this.#escaped(character);
      case 'sequence':
        return this.#inSequence(character);
      case 'string':
        if (character === escape) this.#state = 'stringEscape';
        // One that was cut off must not swallow all that follows.
        else if (character === '\x07' || character === '\u009c' || character === '\n') {
          this.#state = 'text';
        }
        return '';
      case 'stringEscape':
        this.#state = 'text';
        return character === '\\' ? '' : this.#escaped(character);
    }
  }

  #text(character: string): string {
    if (character === escape) {
      this.#state = 'escape';
      return '';
    }
    if (eightBitStrings.has(character)) {
      this.#state = 'string';
      return '';
    }
    if (character === '\u009b') return this.#begin(`${escape}[`);
    if (character >= ' ' && !(character >= '\x7f' && character <= '\x9f')) return character;
    if (character === '\n' || character === '\t') return character;
    return this.#isTerminal && (character === '\r' || character === '\b') ? character : '';
  }

  #escaped(character: string): string {
    this.#state = 'text';
    if (character === '[') return this.#begin(`${escape}[`);
    if (character === escape) {
      this.#state = 'escape';
      return '';
    }
    if (stringsAfterEscape.has(character)) {
      this.#state = 'string';
      return '';
    }
    // Intermediate characters: a designation of a character set, with one more behind it.
    if (character >= ' ' && character <= '/') return this.#begin(`${escape}${character}`);
    const isShown = character > '/' && character <= '~' && !leftOutAfterEscape.has(character);
    return isShown && this.#isTerminal ? `${escape}${character}` : '';
  }

  #begin(sequence: string): string {
    this.#state = 'sequence';
    this.#sequence = sequence;
    return '';
  }

  #inSequence(character: string): string {
    if (character === escape) {
      this.#state = 'escape';
      return '';
    }
    if (character < ' ' || character > '~') {
      this.#state = 'text';
      return this.#text(character);
    }
    this.#sequence += character;
    const isControl = this.#sequence.startsWith(`${escape}[`);
    if (character < (isControl ? '@' : '0')) {
      if (this.#sequence.length > sequenceCharactersMax) this.#state = 'text';
      return '';
    }
    this.#state = 'text';
    const isDrawn =
      this.#isTerminal && (!isControl || draws.some((each) => each.test(this.#sequence.slice(1))));
    return isDrawn ? this.#sequence : '';
  }
}

/** Like ssh: `~.` at the beginning of a line ends; and Ctrl-C, since nothing is written. */
export class EndKeys {
  #at: 'lineStart' | 'tilde' | 'line' = 'lineStart';

  /** True when these keys end the view. */
  take(keys: string): boolean {
    for (const key of keys) {
      if (key === '\x03' || (this.#at === 'tilde' && key === '.')) return true;
      const isStart = this.#at === 'lineStart';
      if (key === '\r' || key === '\n') this.#at = 'lineStart';
      else this.#at = isStart && key === '~' ? 'tilde' : 'line';
    }
    return false;
  }
}
